//! Blocking calls (pread, pwrite, fdatasync and discards), with a thread for each request in flight. They work
//! everywhere, and are the calls of a database's log writer.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::{io, thread};

use record::Direction;
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{BusyTime, Clock};
use crate::discard;
use crate::positions::in_file;
use crate::random::Random;

/// The interface to the kernel of one thread, with a single slot, 0.
pub(crate) struct Blocking<'a> {
    files: &'a [&'a File],
    buffers: Buffers,
    clock: Clock,
    random: Random,
    busy: BusyTime,
    queued: Option<(Direction, u64, u32)>,
    completion: Option<i32>,
    rules: Rules,
}

/// Rules of a thread's calls.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// True if syncs are fsync instead of fdatasync.
    pub full_sync: bool,
    /// True if writes are made unique here, and not by the worker.
    pub stamps: bool,
    /// True if writes are discards.
    pub trims: bool,
    /// True if the job reads and writes, and the worker does not use the data.
    pub mixed: bool,
}

impl<'a> Blocking<'a> {
    /// Blocking calls of at most `block` bytes on `files`, for the calling thread.
    ///
    /// # Errors
    /// When the kernel cannot allocate the memory.
    pub(crate) fn new(
        files: &'a [&'a File],
        block: u32,
        seed: u64,
        clock: Clock,
        rules: Rules,
    ) -> io::Result<Self> {
        // An open loop sleeps until a request is due. By default the kernel wakes it up to 50 us late (prctl(2),
        // PR_SET_TIMERSLACK), which would be part of the latency.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        Ok(Blocking {
            files,
            buffers: match rules.mixed {
                true => Buffers::mixed(block as usize, 1, 1, seed)?,
                // Discards have no data.
                false => Buffers::new(if rules.trims { 1 } else { block as usize }, 1, 1, seed)?,
            },
            clock,
            random: Random::new(seed ^ 0x5374_616d_7073),
            busy: BusyTime::of_this_thread(),
            queued: None,
            completion: None,
            rules,
        })
    }

    fn call(&mut self, direction: Direction, position: u64, bytes: u32) -> Result<usize, Errno> {
        let (file, offset) = in_file(position);
        let fd = self.files[file as usize].as_fd();
        let discarded = || discard::of_device(fd, offset, bytes).map(|()| bytes as usize);
        loop {
            let moved = match direction {
                Direction::Read => {
                    let buffer = &mut self.buffers.read_slice(0)[..bytes as usize];
                    rustix::io::pread(fd, buffer, offset)
                }
                Direction::Trim => discarded(),
                Direction::Write if self.rules.trims => discarded(),
                Direction::Write => {
                    let buffer = &self.buffers.slice(0)[..bytes as usize];
                    rustix::io::pwrite(fd, buffer, offset)
                }
                _ if self.rules.full_sync => rustix::fs::fsync(fd).map(|()| 0),
                Direction::Sync | Direction::Commit => rustix::fs::fdatasync(fd).map(|()| 0),
            };
            if moved != Err(Errno::INTR) {
                return moved;
            }
        }
    }
}

impl Backend for Blocking<'_> {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn busy_share(&mut self) -> f64 {
        self.busy.share()
    }

    fn push(&mut self, _slot: u32, direction: Direction, position: u64, bytes: u32) {
        if direction == Direction::Write && self.rules.stamps {
            self.buffers.stamp(0, &mut self.random);
        }
        self.queued = Some((direction, position, bytes));
    }

    fn data(&mut self, _slot: u32, bytes: u32) -> &mut [u8] {
        &mut self.buffers.slice(0)[..bytes as usize]
    }

    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        match self.queued.take() {
            Some((direction, position, bytes)) => {
                self.completion = Some(match self.call(direction, position, bytes) {
                    Ok(moved) => moved as i32,
                    Err(errno) => -errno.raw_os_error(),
                });
            }
            None => {
                let left = self.clock.span(wake_at.saturating_sub(self.now()));
                thread::sleep(left.into());
            }
        }
        Ok(())
    }

    fn reap(&mut self, into: &mut Vec<Completion>) {
        into.extend(
            self.completion
                .take()
                .map(|result| Completion { slot: 0, result }),
        );
    }
}
