//! The calls of the tests of one large file.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine::calls::{self, Task, Timer};
use engine::{EngineError, derive_seed};
use record::random::SplitMix64;
use record::{Bytes, Direction};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

/// Operation on each block of a file, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Write,
    Read,
    /// Reads a block, changes it and writes it back.
    Rewrite,
}

/// A file, with the memory of the calls on it.
struct Blocks {
    file: File,
    memory: Vec<u8>,
    /// True if each write is flushed at once.
    sync: bool,
    stamps: SplitMix64,
}

impl Blocks {
    fn new(file: File, block: Bytes, seed: u64, sync: bool) -> Blocks {
        // Data that neither a disk nor a file system can compress.
        let words = (0..block.0.div_ceil(8)).map(|word| derive_seed(seed, word));
        let mut memory: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        memory.truncate(block.0 as usize);
        Blocks {
            file,
            memory,
            sync,
            stamps: SplitMix64::new(seed),
        }
    }

    /// Changes the block, so that its contents were never written before.
    fn change(&mut self) {
        let stamp = self.stamps.bits().to_ne_bytes();
        self.memory.iter_mut().zip(stamp).for_each(|(a, b)| *a = b);
    }

    fn read(&mut self, timer: &mut Timer<'_>, at: u64, len: usize) -> Result<(), EngineError> {
        let fd = self.file.as_fd();
        let memory = &mut self.memory[..len];
        let moved = timer.time(Direction::Read, len as u64, || {
            retry_on_intr(|| pread(fd, &mut *memory, at))
        });
        check_complete(Direction::Read, at, len, moved)
    }

    fn write(&mut self, timer: &mut Timer<'_>, at: u64, len: usize) -> Result<(), EngineError> {
        let fd = self.file.as_fd();
        let memory = &self.memory[..len];
        let since = timer.start_call();
        let moved = timer.time(Direction::Write, len as u64, || {
            retry_on_intr(|| pwrite(fd, memory, at))
        });
        check_complete(Direction::Write, at, len, moved)?;
        if self.sync {
            self.flush(timer)?;
            timer.record(Direction::Commit, 0, since);
        }
        Ok(())
    }

    fn flush(&mut self, timer: &mut Timer<'_>) -> Result<(), EngineError> {
        let fd = self.file.as_fd();
        let done = timer.time(Direction::Sync, 0, || {
            retry_on_intr(|| rustix::fs::fsync(fd))
        });
        done.map_err(|errno| calls::call_error("fsync of the test file", errno))
    }
}

/// Checks that a call transferred all of its bytes.
fn check_complete(
    direction: Direction,
    offset: u64,
    asked: usize,
    moved: Result<usize, Errno>,
) -> Result<(), EngineError> {
    match moved {
        Ok(moved) if moved == asked => Ok(()),
        Ok(moved) => Err(EngineError::Short {
            direction,
            offset,
            moved: moved as u64,
            requested: asked as u64,
        }),
        Err(errno) => Err(EngineError::Io {
            direction,
            offset,
            source: errno.into(),
        }),
    }
}

/// Transfers a file from its start to its end.
pub(super) struct InOrder {
    blocks: Blocks,
    transfer: Transfer,
    at: u64,
    size: u64,
}

impl InOrder {
    /// A pass over `file` in blocks of `block`; if it writes, an fsync follows the last block.
    pub(super) fn new(
        file: File,
        transfer: Transfer,
        block: Bytes,
        size: Bytes,
        seed: u64,
        sync: bool,
    ) -> InOrder {
        InOrder {
            blocks: Blocks::new(file, block, seed, sync),
            transfer,
            at: 0,
            size: size.0,
        }
    }
}

impl Task for InOrder {
    #[inline]
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        let left = self.size - self.at;
        if left == 0 {
            if self.transfer != Transfer::Read {
                self.blocks.flush(timer)?;
            }
            return Ok(false);
        }
        let len = self.blocks.memory.len().min(left as usize);
        if self.transfer != Transfer::Write {
            self.blocks.read(timer, self.at, len)?;
        }
        if self.transfer != Transfer::Read {
            self.blocks.change();
            self.blocks.write(timer, self.at, len)?;
        }
        self.at += len as u64;
        Ok(true)
    }
}

/// A seeker writes one block back for each of this number that it reads.
const WRITES_BACK: u64 = 10;

/// Reads blocks at random positions, and writes some of them back.
pub(super) struct Seeker {
    blocks: Blocks,
    /// Number of blocks of the file.
    count: u64,
    /// The seeks that are left to all seekers.
    left: Arc<AtomicU64>,
    done: u64,
    seed: u64,
}

impl Seeker {
    /// A seeker on a file of `size`, which ends when no seeks are `left` and then calls fsync.
    pub(super) fn new(
        file: File,
        block: Bytes,
        size: Bytes,
        left: Arc<AtomicU64>,
        seed: u64,
        sync: bool,
    ) -> Seeker {
        Seeker {
            blocks: Blocks::new(file, block, seed, sync),
            count: (size.0 / block.0).max(1),
            left,
            done: 0,
            seed,
        }
    }

    /// The next position. A multiplication and a shift replace a division (Lemire, 2019).
    fn place(&self) -> u64 {
        let random = u128::from(derive_seed(self.seed, self.done));
        ((random * u128::from(self.count)) >> 64) as u64
    }
}

impl Task for Seeker {
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError> {
        let take = |left: u64| left.checked_sub(1);
        if self.left.fetch_update(Relaxed, Relaxed, take).is_err() {
            self.blocks.flush(timer)?;
            return Ok(false);
        }
        let len = self.blocks.memory.len();
        let at = self.place() * len as u64;
        self.blocks.read(timer, at, len)?;
        if self.done.is_multiple_of(WRITES_BACK) {
            self.blocks.change();
            self.blocks.write(timer, at, len)?;
        }
        self.done += 1;
        Ok(true)
    }
}
