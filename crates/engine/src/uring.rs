//! io_uring: one ring a worker, built on the worker's own thread, with the file and the buffers
//! registered.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;

use io_uring::{opcode, squeue, types};
use record::Direction;

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{BusyTime, Clock};
use crate::places::in_file;
use crate::random::Random;
use crate::ring::{Ring, RingFeatures};

/// A worker's ring.
pub(crate) struct Uring {
    ring: Ring,
    /// Given back only when nothing is in flight: the kernel may write to it until then.
    buffers: ManuallyDrop<Buffers>,
    busy: BusyTime,
    clock: Clock,
    fixed: bool,
    /// Flags of a sync: none for fsync, or those of fdatasync.
    sync: types::FsyncFlags,
    random: Random,
}

impl Uring {
    /// Builds a ring for `slots` requests of at most `block` bytes on `files`. `full_sync` makes
    /// its syncs fsync instead of fdatasync. To be called on the thread
    /// that will use it.
    ///
    /// # Errors
    /// When the kernel refuses the ring or the memory.
    pub(crate) fn new(
        files: &[&File],
        block: u32,
        slots: u32,
        workers: u32,
        seed: u64,
        clock: Clock,
        full_sync: bool,
    ) -> io::Result<Uring> {
        let buffers = Buffers::new(block as usize, slots, workers, seed)?;
        let mut ring = Ring::new(files, slots, clock)?;
        let buffers = ManuallyDrop::new(buffers);
        // SAFETY: the buffers are given back only when nothing is in flight.
        let fixed = unsafe { ring.register(&buffers) };
        Ok(Uring {
            ring,
            buffers,
            busy: BusyTime::of_this_thread(),
            clock,
            fixed,
            sync: match full_sync {
                true => types::FsyncFlags::empty(),
                false => types::FsyncFlags::DATASYNC,
            },
            random: Random::new(seed ^ 0x5374_616d_7073),
        })
    }

    /// Features that the kernel granted.
    pub(crate) fn granted(&self) -> RingFeatures {
        self.ring.granted()
    }

    #[inline(always)]
    fn entry(&self, slot: u32, direction: Direction, place: u64, bytes: u32) -> squeue::Entry {
        let address = self.buffers.address(slot);
        let (file, offset) = in_file(place);
        let file = types::Fixed(file as u32);
        match (direction, self.fixed) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, address, bytes, 0)
                .offset(offset)
                .build(),
            (Direction::Read, false) => opcode::Read::new(file, address, bytes)
                .offset(offset)
                .build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, address, bytes, 0)
                .offset(offset)
                .build(),
            (Direction::Write, false) => opcode::Write::new(file, address, bytes)
                .offset(offset)
                .build(),
            (Direction::Sync | Direction::Commit, _) => {
                opcode::Fsync::new(file).flags(self.sync).build()
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.ring.in_flight() == 0 {
            // SAFETY: nothing uses the buffers after this, and the kernel has no request on them.
            // Otherwise, as after a failure of the ring, their memory is left to the process's end.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl Backend for Uring {
    #[inline(always)]
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn busy_share(&mut self) -> f64 {
        self.busy.share()
    }

    #[inline(always)]
    fn push(&mut self, slot: u32, direction: Direction, place: u64, bytes: u32) {
        if direction == Direction::Write {
            self.buffers.stamp(slot, &mut self.random);
        }
        let entry = self.entry(slot, direction, place, bytes);
        // SAFETY: the buffer lies in `self.buffers`, which stays in place until the answer has
        // come. What it holds does not matter to us, so the kernel may write to it until then.
        unsafe { self.ring.push(slot, entry) };
    }

    #[inline]
    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        self.ring.submit_and_wait(wake_at)
    }

    #[inline(always)]
    fn reap(&mut self, into: &mut Vec<Completion>) {
        self.ring.reap(|completion| into.push(completion));
    }
}
