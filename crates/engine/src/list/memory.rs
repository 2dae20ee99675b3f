//! Buffers of a list's requests.

use std::cell::RefCell;
use std::io;

use crate::buffers::Buffers;
use crate::list::BufferMode;
use crate::random::Random;

/// Maximum memory for reads, and for writes, if a list has both.
const MAX_BYTES: usize = 64 << 20;

/// Memory for the data of a list's reads and writes.
pub(super) struct ListBuffers {
    reads: Option<Buffers>,
    writes: Option<Buffers>,
    /// Random numbers that make each write unique; `None` if all writes are zeros.
    stamps: Option<RefCell<Random>>,
}

impl ListBuffers {
    /// Buffers for requests of up to `largest` bytes, with up to `slots` in flight.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(super) fn new(memory: BufferMode, largest: usize, slots: u32) -> io::Result<ListBuffers> {
        Ok(match memory {
            BufferMode::Reads => ListBuffers {
                reads: Some(Buffers::one_each(largest, slots)?),
                writes: None,
                stamps: None,
            },
            BufferMode::Zeros => ListBuffers {
                reads: None,
                writes: Some(Buffers::zeros(largest)?),
                stamps: None,
            },
            BufferMode::Mixed { seed, compressible } => {
                let fitting = (MAX_BYTES / largest.max(1)).clamp(1, slots as usize) as u32;
                ListBuffers {
                    reads: Some(Buffers::one_each(largest, fitting)?),
                    writes: Some(Buffers::partly_zeros(largest, fitting, seed, compressible)?),
                    stamps: Some(RefCell::new(Random::new(seed))),
                }
            }
        })
    }

    /// Buffer that a slot reads into.
    pub(super) fn to_read(&self, slot: u32) -> *mut u8 {
        self.reads
            .as_ref()
            .map_or(std::ptr::null_mut(), |buffers| buffers.address(slot))
    }

    /// Buffer that a slot writes `len` bytes from.
    pub(super) fn to_write(&self, slot: u32, len: u32) -> *mut u8 {
        let Some(buffers) = &self.writes else {
            return std::ptr::null_mut();
        };
        if let Some(stamps) = &self.stamps {
            buffers.stamp_first(slot, len as usize, &mut stamps.borrow_mut());
        }
        buffers.address(slot)
    }
}
