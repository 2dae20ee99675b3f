//! The buffers of requests: one large mapping, aligned for direct I/O, in huge pages if the kernel provides them.

#![allow(unsafe_code)]

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::random::Random;

/// Alignment of buffers. Direct I/O requires the alignment of the device's logical block, at most 4 KiB in practice.
const ALIGNMENT: usize = 4096;
/// Size of a huge page on x86-64, and on aarch64 with 4 KiB pages.
const HUGE_PAGE: usize = 2 << 20;
/// Maximum memory for all workers of all jobs that run at the same time. Beyond it slots share buffers, which only
/// matters if the data is verified.
const MAX_BYTES: usize = 256 << 20;

/// Equal buffers in one mapping.
pub(crate) struct Buffers {
    base: NonNull<u8>,
    mapped: usize,
    stride: usize,
    block: usize,
    count: u32,
    /// Distance of the buffer that a slot reads into from the one that it writes from, in bytes; 0 if they are the
    /// same.
    reads_at: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to the thread that made it.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Buffers of `block` bytes for `slots` requests in flight, for one of `workers`, filled with random bytes, which
    /// cannot be compressed.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn new(block: usize, slots: u32, workers: u32, seed: u64) -> io::Result<Buffers> {
        Buffers::random(block, slots, MAX_BYTES / workers as usize, seed, 1)
    }

    /// Like [`Buffers::new`], for a job that reads and writes. Reads have separate buffers, so that no write has the
    /// data of an earlier read, which a device may compress.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn mixed(block: usize, slots: u32, workers: u32, seed: u64) -> io::Result<Buffers> {
        let bytes = MAX_BYTES / workers as usize;
        let mut buffers = Buffers::random(block, slots, bytes, seed, 2)?;
        buffers.count /= 2;
        buffers.reads_at = buffers.count as usize * buffers.stride;
        Ok(buffers)
    }

    /// Maps `parts` equal parts of at most `bytes` in total, with a random buffer for each slot in each part; slots
    /// share buffers beyond that.
    fn random(
        block: usize,
        slots: u32,
        bytes: usize,
        seed: u64,
        parts: usize,
    ) -> io::Result<Buffers> {
        let stride = block.next_multiple_of(ALIGNMENT);
        let count = (bytes / parts / stride).clamp(1, slots as usize);
        let buffers = Buffers::map(block, parts * count)?;
        buffers.fill(seed);
        Ok(buffers)
    }

    /// Creates a buffer of `block` bytes for each of `slots`. The kernel allocates the memory of a buffer at its first
    /// use, so unused slots cost nothing.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn one_each(block: usize, slots: u32) -> io::Result<Buffers> {
        Buffers::map(block, slots as usize)
    }

    /// Creates a buffer for each of `slots`, with random bytes followed by zeros in each 4 KiB; `zeros` is the share
    /// of the zeros, 0 to 1.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn partly_zeros(
        block: usize,
        slots: u32,
        seed: u64,
        zeros: f64,
    ) -> io::Result<Buffers> {
        let mut buffers = Buffers::map(block, slots as usize)?;
        buffers.fill(seed);
        let kept = ALIGNMENT - (ALIGNMENT as f64 * zeros.clamp(0.0, 1.0)) as usize;
        for slot in (0..slots).filter(|_| kept < ALIGNMENT) {
            for page in buffers.slice(slot).chunks_mut(ALIGNMENT) {
                let kept = kept.min(page.len());
                page[kept..].fill(0);
            }
        }
        Ok(buffers)
    }

    /// Creates one buffer of zeros that all slots share, for writes only.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn zeros(block: usize) -> io::Result<Buffers> {
        let mut buffers = Buffers::map(block, 1)?;
        // New memory already reads as zeros, but is the same page mapped repeatedly, and a request would need a
        // segment for each page.
        buffers.slice(0).fill(0);
        Ok(buffers)
    }

    /// Maps `count` buffers of `block` bytes of zeros.
    fn map(block: usize, count: usize) -> io::Result<Buffers> {
        let stride = block.next_multiple_of(ALIGNMENT);
        let needed = stride * count;
        // With a thread for each request there are many small mappings, for which huge pages would waste memory.
        let mapped = match needed {
            0..HUGE_PAGE => needed,
            _ => needed.next_multiple_of(HUGE_PAGE),
        };
        // SAFETY: a new anonymous mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address zero"))?;
        // SAFETY: the range is the mapping just made. Advice does not change its content, and a
        // kernel without huge pages refuses it, which does no harm.
        let _ = unsafe { madvise(base.as_ptr().cast(), mapped, Advice::LinuxHugepage) };
        Ok(Buffers {
            base,
            mapped,
            stride,
            block,
            count: count as u32,
            reads_at: 0,
        })
    }

    fn fill(&self, seed: u64) {
        let mut random = Random::new(seed);
        for word in 0..self.mapped / 8 {
            // SAFETY: `word * 8` lies inside the mapping, which is aligned to pages and ours alone.
            unsafe {
                self.base
                    .as_ptr()
                    .cast::<u64>()
                    .add(word)
                    .write(random.next())
            };
        }
    }

    /// The whole mapping, for registration with a ring.
    pub(crate) fn whole(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.mapped)
    }

    /// The address of the buffer that a slot writes from.
    #[inline(always)]
    pub(crate) fn address(&self, slot: u32) -> *mut u8 {
        let index = if slot < self.count {
            slot
        } else {
            slot % self.count
        };
        // SAFETY: `index` is below `count`, so the buffer lies inside the mapping.
        unsafe { self.base.as_ptr().add(index as usize * self.stride) }
    }

    /// The address of the buffer that a slot reads into.
    #[inline(always)]
    pub(crate) fn read_address(&self, slot: u32) -> *mut u8 {
        // SAFETY: `reads_at` is 0, or the mapping has as many buffers again from there on.
        unsafe { self.address(slot).add(self.reads_at) }
    }

    /// The bytes that one slot reads into.
    pub(crate) fn read_slice(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: as in `slice`.
        unsafe { std::slice::from_raw_parts_mut(self.read_address(slot), self.block) }
    }

    /// The bytes of one slot's buffer.
    pub(crate) fn slice(&mut self, slot: u32) -> &mut [u8] {
        // SAFETY: the buffer lies inside the mapping, and the exclusive borrow of `self` keeps other borrows away. It
        // is only called for slots without a request in flight that share their buffer with no other slot.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), self.block) }
    }

    /// Makes a slot's next write of a whole block unique, like [`Buffers::stamp_first`].
    #[inline]
    pub(crate) fn stamp(&self, slot: u32, random: &mut Random) {
        self.stamp_first(slot, self.block, random);
    }

    /// Makes a slot's next write of `len` bytes unique in each 4 KiB, so that a device that deduplicates stores it
    /// anew.
    #[inline]
    pub(crate) fn stamp_first(&self, slot: u32, len: usize, random: &mut Random) {
        let address = self.address(slot);
        let end = len.min(self.block);
        for offset in (0..end.saturating_sub(7)).step_by(ALIGNMENT) {
            // SAFETY: the word lies inside the buffer, at an aligned offset of an aligned buffer.
            // Slots may share a buffer while the kernel reads it for another write; the write is
            // volatile since it goes to memory that is shared in this sense, and whichever value
            // the device gets is fine.
            unsafe {
                address
                    .add(offset)
                    .cast::<u64>()
                    .write_volatile(random.next())
            };
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no borrow of it outlives `self`. Its users drain their
        // requests, or close their ring, before they drop it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_incompressible() {
        let mut buffers = Buffers::new(16 << 10, 20, 1, 1).unwrap();
        assert_eq!(buffers.count, 20);
        assert_eq!(buffers.address(0) as usize % ALIGNMENT, 0);
        assert_eq!(
            buffers.address(1) as usize - buffers.address(0) as usize,
            16 << 10
        );
        let mut seen = [0_u32; 256];
        buffers
            .slice(3)
            .iter()
            .for_each(|byte| seen[usize::from(*byte)] += 1);
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }

    #[test]
    fn a_stamp_changes_every_page_and_stays_inside() {
        let mut buffers = Buffers::new(16 << 10, 2, 1, 1).unwrap();
        let before = buffers.slice(0).to_vec();
        let other = buffers.slice(1).to_vec();
        buffers.stamp(0, &mut Random::new(5));
        let after = buffers.slice(0).to_vec();
        for page in 0..4 {
            let range = page * 4096..(page + 1) * 4096;
            assert_ne!(before[range.clone()], after[range]);
        }
        assert_eq!(buffers.slice(1), other);
    }

    #[test]
    fn reads_beside_writes_have_memory_of_their_own() {
        let mut buffers = Buffers::mixed(16 << 10, 20, 1, 1).unwrap();
        let written = buffers.slice(19).to_vec();
        for slot in 0..20 {
            buffers.read_slice(slot).fill(7);
        }
        assert_eq!(buffers.slice(19), written);
        let (base, mapped) = buffers.whole();
        assert!(buffers.read_address(19) as usize + (16 << 10) <= base as usize + mapped);
        // The same total memory as without reads, shared by the slots.
        assert_eq!(Buffers::mixed(1 << 20, 4096, 2, 1).unwrap().count, 64);
        let buffers = Buffers::new(16 << 10, 20, 1, 1).unwrap();
        assert_eq!(buffers.read_address(3), buffers.address(3));
    }

    #[test]
    fn many_large_slots_share() {
        let buffers = Buffers::new(1 << 20, 4096, 2, 1).unwrap();
        assert_eq!(buffers.count, 128);
        assert_eq!(buffers.address(0), buffers.address(128));
    }

    #[test]
    fn an_odd_block_still_gets_its_stamp() {
        let buffers = Buffers::new(512, 1, 1, 1).unwrap();
        buffers.stamp(0, &mut Random::new(5));
        Buffers::new(1, 1, 1, 1)
            .unwrap()
            .stamp(0, &mut Random::new(5));
    }
}
