//! A list of requests from a source: each is issued once, and the source is notified of its result.
//!
//! A workload describes a kind of I/O and ends when its figures are precise. A list names each request and
//! ends when all were issued: to read each block of a volume once, or to write zeros to all of it. The error
//! of a request is passed to the source, which decides what follows. The parts:
//!
//! - [`RequestSource`]: which request is next, and how many may be in flight;
//! - `drive`: the loop that keeps them in flight and times them, over a `submitter`;
//! - `ring` and `pool`: io_uring, and threads that block;
//! - [`simulated`]: a volume in virtual time, for tests of request sources.

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

use crate::job::{EngineError, IoInterface};

/// Maximum number of requests that a list may have in flight.
pub const MAX_IN_FLIGHT: u32 = 16_384;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads and discards the data.
    Read,
    /// Writes the data of [`List::memory`].
    Write,
    /// Writes, and completes when the data is durable: RWF_DSYNC, which becomes FUA on devices that have it
    /// (pwritev2(2)).
    WriteDurable,
    /// Makes earlier writes durable: fdatasync(2). It has no offset and no length.
    Flush,
    /// Gives the blocks back: a discard of a block device (BLKDISCARD), after which they may read as anything; of a
    /// file a hole, which reads as zeros (fallocate(2), FALLOC_FL_PUNCH_HOLE).
    Discard,
}

/// Memory that a list's requests use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferMode {
    /// Reads only, each into a buffer of its own: some layers, such as dm-integrity, check the bytes that were
    /// read, and would report errors in a buffer that several requests read into.
    Reads,
    /// Writes of zeros only, all from one buffer.
    Zeros,
    /// Reads and writes, in a bounded amount of memory: beyond it, reads share buffers, and so do writes. Each
    /// 4 KiB written differs from all others.
    Mixed {
        /// Seed of the random data.
        seed: u64,
        /// Share of each 4 KiB written that is zeros, 0 to 1: what a compressing layer saves.
        compressible: f64,
    },
}

impl BufferMode {
    /// True if a request of this operation can use this memory.
    fn fits(self, op: Op) -> bool {
        match op {
            Op::Read => self != BufferMode::Zeros,
            Op::Write | Op::WriteDurable => self != BufferMode::Reads,
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
    /// Offset, in bytes from the start of the target: a multiple of the alignment of direct I/O, which on a
    /// block device is the logical block size.
    pub offset: u64,
    /// Length in bytes: a multiple of the same, more than 0 and at most [`List::largest`].
    pub len: u32,
    /// Value by which the source recognizes the request.
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

/// Reason for which a request of a list failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The kernel's error number.
    #[error("{0}")]
    Kernel(Errno),
    /// The request transferred only its first bytes.
    #[error("only {moved} bytes of it were moved")]
    Short {
        /// Bytes moved.
        moved: u32,
    },
}

impl RequestError {
    /// True if the device is gone, rather than only this range of it bad.
    #[must_use]
    pub fn is_device_gone(&self) -> bool {
        matches!(
            self,
            RequestError::Kernel(Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM)
        )
    }
}

/// A request of a list that has completed, with its times and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// The request as it was given.
    pub request: Request,
    /// Time of issue, since the start of the list.
    pub began: Nanos,
    /// Time from issue until the completion was seen.
    pub latency: Nanos,
    /// Success, or the error of the request.
    pub result: Result<(), RequestError>,
}

impl CompletedRequest {
    /// Bytes transferred: none where it failed, since the kernel does not report which part of it is good.
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
    /// Issue this request.
    Request(Request),
    /// Issue nothing until this time since the start of the list, or until a request completes. A time in the
    /// past is a wait of 100 us. A wait of less than 10 us is a busy wait.
    Wait(Nanos),
    /// Issue nothing more. This is final: a source that may repeat a request in flight returns `Wait` until
    /// that has completed.
    End,
}

/// The source of a list's requests. Its methods are called on the thread that runs the list; during a call
/// nothing is issued and no completion is processed.
pub trait RequestSource {
    /// Limit of requests in flight now; 0 pauses. It is called before each request, and at
    /// least every 10 ms. A value above [`List::max_in_flight`] is reduced to that.
    fn depth(&self) -> u32;

    /// Next step, called while fewer than [`depth`](RequestSource::depth) are in flight. `now` is the time
    /// since the start of the list.
    fn next(&mut self, now: Nanos) -> Next;

    /// True if a request may be a discard: where a ring takes none of a block device, threads make all requests.
    fn may_discard(&self) -> bool {
        false
    }

    /// Called for each completed request, in the order of completion.
    fn done(&mut self, now: Nanos, done: CompletedRequest);
}

/// A list to run.
pub struct List<'a> {
    /// The open files or devices, with O_DIRECT.
    pub files: &'a [&'a File],
    /// Memory that is read into and written from.
    pub memory: BufferMode,
    /// Limit of [`RequestSource::depth`], from 1 to [`MAX_IN_FLIGHT`].
    pub max_in_flight: u32,
    /// The largest request, at most 64 MiB. Reads use a buffer of this size for each request
    /// in flight, up to the highest number that was in flight.
    pub largest: Bytes,
    /// Interface to the kernel.
    pub interface: IoInterface,
    /// Set by a signal handler: nothing more is issued, and the list ends when all in flight has completed.
    pub interrupt: &'a AtomicBool,
}

/// Reason for which a list ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The source returned [`Next::End`].
    Complete,
    /// [`List::interrupt`] was set.
    Interrupted,
}

/// Summary of a list's run.
#[derive(Clone, Debug, PartialEq)]
pub struct ListSummary {
    /// Interface that the I/O used.
    pub kind: EngineUsed,
    /// Reason for which it ended.
    pub ended: EndReason,
    /// Processor time that this process used meanwhile, with the kernel threads of its io_uring.
    pub cpu: CpuTime,
}

/// An engine that runs lists, by real I/O or in a simulation. Several lists may run at once, each on a thread
/// of its own.
pub trait ListEngine: Sync {
    /// Runs one list to its end. When it returns, nothing is in flight, unless the ring failed.
    ///
    /// # Errors
    /// When the list or a request of its source is invalid for the target, when the kernel refuses the
    /// requested interface, or when there is no memory. The failure of a request is not an error of the list.
    fn run(
        &self,
        list: &List<'_>,
        source: &mut dyn RequestSource,
    ) -> Result<ListSummary, EngineError>;
}
