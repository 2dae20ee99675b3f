//! Requests through io_uring.

#![allow(unsafe_code)]

use std::io;
use std::mem::ManuallyDrop;

use io_uring::{opcode, types};

use crate::clock::Clock;
use crate::discard;
use crate::job::EngineError;
use crate::list::memory::ListBuffers;
use crate::list::submitter::{SlotCompletion, Stopwatch, Submitter};
use crate::list::{List, Op, Request};
use crate::ring::{Ring, RingFeatures};
use record::Nanos;

/// A list's ring. Its buffers are not registered: to pin each costs little compared with requests of hundreds of
/// kibibytes, and to pin all of them would need memory for the maximum depth.
pub(super) struct ListRing {
    ring: Ring,
    /// Freed only when nothing is in flight: the kernel may use it until then.
    buffers: ManuallyDrop<ListBuffers>,
    stopwatch: Stopwatch,
    /// True for each file that is a block device.
    devices: Vec<bool>,
}

impl ListRing {
    /// The ring of a list, built on the thread that runs it.
    ///
    /// # Errors
    /// The kernel's error if it refused the ring.
    pub(super) fn new(list: &List<'_>, buffers: ListBuffers, clock: Clock) -> io::Result<ListRing> {
        let ring = Ring::new(list.files, list.max_in_flight, clock)?;
        // The kernel splits a large request, and blocks while it submits the parts.
        ring.allow_blocking(list.max_in_flight);
        Ok(ListRing {
            ring,
            buffers: ManuallyDrop::new(buffers),
            stopwatch: Stopwatch::start(clock),
            devices: list
                .files
                .iter()
                .map(|file| discard::is_device(file))
                .collect(),
        })
    }

    /// Features that the kernel granted.
    pub(super) fn granted(&self) -> RingFeatures {
        self.ring.granted()
    }
}

impl Drop for ListRing {
    fn drop(&mut self) {
        if self.ring.in_flight() == 0 {
            // SAFETY: nothing uses the buffers after this, and the kernel has no request on them. Otherwise, as after
            // a failure of the ring, their memory is freed at the end of the process.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl Submitter for ListRing {
    fn now(&self) -> Nanos {
        self.stopwatch.now()
    }

    fn push(&mut self, slot: u32, request: &Request) {
        let file = types::Fixed(u32::from(request.file));
        let entry = match request.op {
            Op::Read => opcode::Read::new(file, self.buffers.to_read(slot), request.len)
                .offset(request.offset)
                .build(),
            Op::Write | Op::WriteDurable => {
                let flags = match request.op {
                    Op::WriteDurable => libc::RWF_DSYNC,
                    _ => 0,
                };
                opcode::Write::new(file, self.buffers.to_write(slot, request.len), request.len)
                    .offset(request.offset)
                    .rw_flags(flags)
                    .build()
            }
            Op::Flush => opcode::Fsync::new(file)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
            Op::Discard => {
                let is_device = self.devices.get(usize::from(request.file)) == Some(&true);
                discard::entry(file, is_device, request.offset, request.len)
            }
        };
        // SAFETY: the request is not longer than a buffer (the loop checks that), and the buffers stay in place until
        // the completion has arrived. The data that was read is never used; if slots that write share a buffer, any of
        // its values may reach the device (`Buffers::stamp`).
        unsafe { self.ring.push(slot, entry) };
    }

    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
        self.ring
            .submit_and_wait(self.stopwatch.ticks_at(wake_at))
            .map_err(EngineError::Ring)
    }

    fn submit(&mut self, _: Nanos) -> Result<(), EngineError> {
        self.ring.submit().map_err(EngineError::Ring)
    }

    fn reap(&mut self, into: &mut Vec<SlotCompletion>) {
        let at = self.stopwatch.now();
        self.ring.reap(|completion| {
            into.push(SlotCompletion {
                slot: completion.slot,
                result: completion.result,
                at,
            });
        });
    }
}
