//! Blocking calls: pread, pwrite and fdatasync, a thread for each request in flight. It is what
//! works everywhere, and what a database's log writer does.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::thread;

use record::Direction;
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{BusyTime, Clock};
use crate::random::Random;

/// One thread's way to the kernel. It has one slot, numbered 0.
pub(crate) struct Blocking<'a> {
    file: &'a File,
    buffers: Buffers,
    clock: Clock,
    random: Random,
    busy: BusyTime,
    queued: Option<(Direction, u64)>,
    answer: Option<i32>,
}

impl<'a> Blocking<'a> {
    /// For requests of `block` bytes on `file`, on the calling thread.
    ///
    /// # Errors
    /// When the kernel gives no memory.
    pub(crate) fn new(file: &'a File, block: u32, seed: u64, clock: Clock) -> io::Result<Self> {
        // An open loop sleeps until a request is due. By default the kernel wakes us up to 50 us
        // later than asked (prctl(2), PR_SET_TIMERSLACK), which would go into the latency.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        Ok(Blocking {
            file,
            buffers: Buffers::new(block as usize, 1, 1, seed)?,
            clock,
            random: Random::new(seed ^ 0x5374_616d_7073),
            busy: BusyTime::of_this_thread(),
            queued: None,
            answer: None,
        })
    }

    fn call(&mut self, direction: Direction, offset: u64) -> Result<usize, Errno> {
        let fd = self.file.as_fd();
        loop {
            let moved = match direction {
                Direction::Read => rustix::io::pread(fd, self.buffers.slice(0), offset),
                Direction::Write => rustix::io::pwrite(fd, self.buffers.slice(0), offset),
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

    fn busy_nanos(&self) -> u64 {
        self.busy.nanos()
    }

    fn push(&mut self, _slot: u32, direction: Direction, offset: u64) {
        if direction == Direction::Write {
            self.buffers.stamp(0, &mut self.random);
        }
        self.queued = Some((direction, offset));
    }

    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        match self.queued.take() {
            Some((direction, offset)) => {
                self.answer = Some(match self.call(direction, offset) {
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
            self.answer
                .take()
                .map(|result| Completion { slot: 0, result }),
        );
    }
}
