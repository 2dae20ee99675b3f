//! A list of requests from a source: each is issued once, and the source is notified of what
//! came of it.
//!
//! Where a workload says what kind of I/O to make and is over when its figures are precise, a list
//! says which requests to make and is over when all are made: to read each block of a volume once,
//! or to write zeros to all of it. An error of one request is an answer like another; what it means
//! is the feed's to decide. The parts:
//!
//! - [`RequestSource`]: which request is next, and how many may be in flight;
//! - `drive`: the loop that keeps them in flight and times them, over a `way` to the kernel;
//! - `ring` and `pool`: io_uring, and threads that block;
//! - [`simulated`]: a volume in virtual time, for tests of what feeds lists.

mod drive;
mod memory;
mod pool;
mod real;
mod ring;
pub mod simulated;
mod submitter;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use real::run;
use record::{Bytes, CpuTime, EngineUsed, Nanos};
pub use rustix::io::Errno;

use crate::job::{Choice, EngineError};

/// A list may have at most so many requests in flight.
pub const MOST_IN_FLIGHT: u32 = 16_384;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads, and does not look at what it read.
    Read,
    /// Writes what [`List::memory`] holds for writes.
    Write,
    /// Writes, and is answered when the data is durable: RWF_DSYNC, for which a device is asked by FUA where
    /// it has that (pwritev2(2)).
    WriteDurable,
    /// Makes durable what was written before: fdatasync(2). It has no offset and no length.
    Flush,
    /// Gives the blocks back: a discard of a block device (BLKDISCARD), after which they may read as anything; of a
    /// file a hole, which reads as zeros (fallocate(2), FALLOC_FL_PUNCH_HOLE).
    Discard,
}

/// Memory that a list's requests use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// Reads only, each into a buffer of its own: some layers, such as dm-integrity, look at the bytes that were
    /// read, and would find errors in a buffer that others read into as well.
    Reads,
    /// Writes only, of zeros from one buffer, which every device takes.
    Zeros,
    /// Reads and writes. The memory is bounded, whatever is in flight: where that needs more, reads share
    /// buffers, and writes do. Each 4 KiB written differs from all others.
    Mixed {
        /// Start of the random content.
        seed: u64,
        /// Share of each 4 KiB written that is zeros, 0 to 1: what a compressing layer saves.
        compressible: f64,
    },
}

impl Memory {
    /// True if a request of this operation can use it.
    fn fits(self, op: Op) -> bool {
        match op {
            Op::Read => self != Memory::Zeros,
            Op::Write | Op::WriteDurable => self != Memory::Reads,
            Op::Flush | Op::Discard => true,
        }
    }
}

/// A request to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// Number of the file in [`List::files`].
    pub file: u16,
    /// Position, in bytes from the start of the target. A multiple of what direct I/O wants there, which is
    /// the logical block size on a block device.
    pub offset: u64,
    /// Length in bytes: a multiple of the same, more than 0 and at most [`List::largest`].
    pub len: u32,
    /// The feed's own mark.
    pub tag: u64,
}

impl Request {
    /// The request of the list's first file for a range of bytes, which is far below 4 GiB long, as
    /// [`List::largest`] is.
    #[must_use]
    pub fn of(op: Op, range: &Range<u64>, tag: u64) -> Request {
        Request {
            op,
            file: 0,
            offset: range.start,
            len: u32::try_from(range.end - range.start).unwrap_or(u32::MAX),
            tag,
        }
    }

    /// A read of the list's first file.
    #[must_use]
    pub fn read(offset: u64, len: u32, tag: u64) -> Request {
        Request {
            op: Op::Read,
            file: 0,
            offset,
            len,
            tag,
        }
    }

    /// Bytes that the request covers.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// Reason for which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The kernel's error number.
    #[error("{0}")]
    Kernel(Errno),
    /// Only the first bytes of it were moved.
    #[error("only {moved} bytes of it were moved")]
    Short {
        /// Bytes moved.
        moved: u32,
    },
}

impl RequestError {
    /// True if the device is gone, rather than only this place of it bad.
    #[must_use]
    pub fn is_of_a_lost_device(&self) -> bool {
        matches!(
            self,
            RequestError::Kernel(Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM)
        )
    }
}

/// A request that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The request.
    pub request: Request,
    /// Time of issue, since the list began.
    pub began: Nanos,
    /// Time from issue until the completion was seen.
    pub latency: Nanos,
    /// Result.
    pub result: Result<(), RequestError>,
}

impl Done {
    /// Bytes moved: none where it failed, since the kernel does not tell which part of it is good.
    #[must_use]
    pub fn moved(&self) -> Bytes {
        match self.result {
            Ok(()) => Bytes(u64::from(self.request.len)),
            Err(_) => Bytes(0),
        }
    }
}

/// Next step of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Issue this.
    Request(Request),
    /// Issue nothing until this time since the list began, or until something comes back. A time
    /// that has passed is a wait of 100 us. What is due within 10 us is waited for awake.
    Wait(Nanos),
    /// Issue nothing any more. It is final: who may want to repeat a request that is in flight says
    /// `Wait` until it has come back.
    End,
}

/// Gives a list its requests. All is called on the thread that runs the list, and while a call
/// lasts, nothing is issued and nothing that comes back is seen.
pub trait RequestSource {
    /// Limit of requests in flight now; 0 pauses. It is called before each request, and at
    /// least every 10 ms. A value above [`List::most_in_flight`] counts as that.
    fn depth(&self) -> u32;

    /// Next step, asked for while fewer than [`depth`](RequestSource::depth) are in flight. `now` is the time
    /// since the list began.
    fn next(&mut self, now: Nanos) -> Next;

    /// True if a request may be a discard: where a ring takes none of a block device, threads make all requests.
    fn may_discard(&self) -> bool {
        false
    }

    /// A request came back. They are told in the order in which they come back.
    fn done(&mut self, now: Nanos, done: Done);
}

/// A list to run.
pub struct List<'a> {
    /// The open files or devices, with O_DIRECT.
    pub files: &'a [&'a File],
    /// Memory that is read into and written from.
    pub memory: Memory,
    /// The most that [`RequestSource::depth`] may ask for, from 1 to [`MOST_IN_FLIGHT`].
    pub most_in_flight: u32,
    /// The largest request, at most 64 MiB. Reads use memory of this size for each that is in
    /// flight, up to the most that ever was.
    pub largest: Bytes,
    /// Interface to the kernel.
    pub choice: Choice,
    /// Set by a signal handler: no more is issued, and what is in flight is waited for.
    pub interrupt: &'a AtomicBool,
}

/// Event that ended a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The feed said so.
    End,
    /// [`List::interrupt`] was set.
    Interrupted,
}

/// Summary of a list's run.
#[derive(Clone, Debug, PartialEq)]
pub struct ListEnd {
    /// Interface that the I/O used.
    pub kind: EngineUsed,
    /// Event that ended it.
    pub ended: Ended,
    /// Processor time that this process used meanwhile, with the kernel threads that io_uring runs in its name.
    pub cpu: CpuTime,
}

/// Something that runs lists: the disks themselves, or a simulation. Several lists may run at once,
/// each on a thread of its own.
pub trait Lister: Sync {
    /// Runs one list to its end. When it returns, nothing is in flight, unless the ring failed.
    ///
    /// # Errors
    /// When the list or a request of its source is invalid for the target, when the engine asked
    /// for is refused by the kernel, or when there is no memory. A request that fails is no error
    /// here.
    fn run(&self, list: &List<'_>, feed: &mut dyn RequestSource) -> Result<ListEnd, EngineError>;
}
