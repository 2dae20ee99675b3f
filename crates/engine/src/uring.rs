//! io_uring: one ring for each worker, built on the worker's own thread, with the file and the buffers registered.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;

use io_uring::{opcode, squeue, types};
use record::{Direction, PriorityShare};

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{BusyTime, Clock};
use crate::positions::in_file;
use crate::random::Random;
use crate::ring::{Ring, RingFeatures};
use crate::thread_settings::packed;

/// A worker's ring.
pub(crate) struct Uring {
    ring: Ring,
    /// Freed only when nothing is in flight: the kernel may write to it until then.
    buffers: ManuallyDrop<Buffers>,
    busy: BusyTime,
    clock: Clock,
    fixed: bool,
    /// Flags of a sync: empty for fsync, or those of fdatasync.
    sync: types::FsyncFlags,
    random: Random,
    /// True if the worker fills the data of writes.
    own_data: bool,
    priorities: Vec<PriorityShare>,
}

/// Rules of a ring.
pub(crate) struct Rules {
    /// True if syncs are fsync instead of fdatasync.
    pub full_sync: bool,
    /// True if the worker fills and checks data: each slot then has a separate buffer.
    pub own_data: bool,
    /// True if the job reads and writes.
    pub mixed: bool,
    /// Share and priority of requests with a priority of their own.
    pub priorities: Vec<PriorityShare>,
}

impl Uring {
    /// Builds a ring for `slots` requests of at most `block` bytes on `files`. Called on the thread
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
        rules: Rules,
    ) -> io::Result<Uring> {
        let buffers = match (rules.own_data, rules.mixed) {
            (true, _) => Buffers::partly_zeros(block as usize, slots, seed, 0.0)?,
            (false, true) => Buffers::mixed(block as usize, slots, workers, seed)?,
            (false, false) => Buffers::new(block as usize, slots, workers, seed)?,
        };
        let mut ring = Ring::new(files, slots, clock)?;
        let buffers = ManuallyDrop::new(buffers);
        // SAFETY: the buffers are freed only when nothing is in flight.
        let fixed = unsafe { ring.register(&buffers) };
        Ok(Uring {
            ring,
            buffers,
            busy: BusyTime::of_this_thread(),
            clock,
            fixed,
            sync: match rules.full_sync {
                true => types::FsyncFlags::empty(),
                false => types::FsyncFlags::DATASYNC,
            },
            random: Random::new(seed ^ 0x5374_616d_7073),
            own_data: rules.own_data,
            priorities: rules.priorities,
        })
    }

    /// Features that the kernel granted.
    pub(crate) fn granted(&self) -> RingFeatures {
        self.ring.granted()
    }

    /// Priority of the next request; 0 is that of the thread.
    #[inline(always)]
    fn draw_priority(&mut self, direction: Direction, bytes: u32) -> u16 {
        if self.priorities.is_empty() {
            return 0;
        }
        let mut number = self.random.next() as f64 / u64::MAX as f64;
        for share in &self.priorities {
            let of_direction = match direction {
                Direction::Read => !share.writes,
                Direction::Write => share.writes,
                Direction::Sync | Direction::Commit | Direction::Trim => false,
            };
            if !of_direction || share.size.is_some_and(|size| size.0 != u64::from(bytes)) {
                continue;
            }
            if number < share.share {
                return packed(share.priority);
            }
            number -= share.share;
        }
        0
    }

    #[inline(always)]
    fn entry(
        &self,
        slot: u32,
        direction: Direction,
        position: u64,
        bytes: u32,
        priority: u16,
    ) -> squeue::Entry {
        let address = match direction {
            Direction::Read => self.buffers.read_address(slot),
            _ => self.buffers.address(slot),
        };
        let (file, offset) = in_file(position);
        let file = types::Fixed(file as u32);
        match (direction, self.fixed) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, address, bytes, 0)
                .offset(offset)
                .ioprio(priority)
                .build(),
            (Direction::Read, false) => opcode::Read::new(file, address, bytes)
                .offset(offset)
                .ioprio(priority)
                .build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, address, bytes, 0)
                .offset(offset)
                .ioprio(priority)
                .build(),
            (Direction::Write, false) => opcode::Write::new(file, address, bytes)
                .offset(offset)
                .ioprio(priority)
                .build(),
            (Direction::Sync | Direction::Commit, _) => {
                opcode::Fsync::new(file).flags(self.sync).build()
            }
            // Discards use threads (`disks::choose`); here they would be reported as failed, since they transfer
            // nothing.
            (Direction::Trim, _) => opcode::Nop::new().build(),
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.ring.in_flight() == 0 {
            // SAFETY: nothing uses the buffers after this, and the kernel has no request on them. Otherwise, as after
            // a failure of the ring, their memory is freed at the end of the process.
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
    fn push(&mut self, slot: u32, direction: Direction, position: u64, bytes: u32) {
        if direction == Direction::Write && !self.own_data {
            self.buffers.stamp(slot, &mut self.random);
        }
        let priority = self.draw_priority(direction, bytes);
        let entry = self.entry(slot, direction, position, bytes, priority);
        // SAFETY: the buffer lies in `self.buffers`, which stays in place until the completion has
        // arrived. Its content is not used until then, so the kernel may write to it.
        unsafe { self.ring.push(slot, entry) };
    }

    fn data(&mut self, slot: u32, bytes: u32) -> &mut [u8] {
        // The slot has no request in flight, and a separate buffer if the worker uses its data.
        &mut self.buffers.slice(slot)[..bytes as usize]
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
