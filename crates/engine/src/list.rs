//! A list of requests from a source: each is issued once, and the source is notified of its result.
//!
//! A workload describes a kind of I/O and ends when its figures are precise. A list has individual requests and ends
//! when all were issued: to read each block of a volume once, or to write zeros to all of it. The error of a request
//! is passed to the source, which decides how to continue. The parts:
//!
//! - [`RequestSource`]: the next request, and the number that may be in flight;
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
    /// Writes, and completes when the data is durable: RWF_DSYNC, which uses FUA on devices with support for it
    /// (pwritev2(2)).
    WriteDurable,
    /// Makes earlier writes durable: fdatasync(2). It has no offset and no length.
    Flush,
    /// Deallocates the blocks: a discard of a block device (BLKDISCARD), after which they may read as anything; in a
    /// file a hole, which reads as zeros (fallocate(2), FALLOC_FL_PUNCH_HOLE).
    Discard,
}

/// Buffers of a list's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferMode {
    /// Reads only, each into a separate buffer: some layers, such as dm-integrity, verify the bytes that were read,
    /// and would report errors in a buffer that several requests read into.
    Reads,
    /// Writes of zeros only, all from one buffer.
    Zeros,
    /// Reads and writes, in a bounded amount of memory: beyond it, reads share buffers, and so do writes. Each 4 KiB
    /// written is unique.
    Mixed {
        /// Seed of the random data.
        seed: u64,
        /// Share of zeros in each 4 KiB written, 0 to 1, which a compressing layer saves.
        compressible: f64,
    },
}

impl BufferMode {
    /// True if a request with this operation can use this memory.
    fn fits(self, op: Op) -> bool {
        match op {
            Op::Read => self != BufferMode::Zeros,
            Op::Write | Op::WriteDurable => self != BufferMode::Reads,
            Op::Flush | Op::Discard => true,
        }
    }
}

/// A request to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// Index of the file in [`List::files`].
    pub file: u16,
    /// Offset, in bytes from the start of the target: a multiple of the alignment of direct I/O, which on a
    /// block device is the logical block size.
    pub offset: u64,
    /// Length in bytes: a multiple of the same alignment, more than 0 and at most [`List::largest`].
    pub len: u32,
    /// Identifier of the request for the source.
    pub tag: u64,
}

impl Request {
    /// A request on the list's first file for a range of bytes, whose length must be below 4 GiB (as [`List::largest`]
    /// is).
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

/// Reason why a request of a list failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The kernel's error number.
    #[error("{0}")]
    Kernel(Errno),
    /// The request transferred only its first bytes.
    #[error("only {moved} bytes of it were moved")]
    Short {
        /// Number of bytes transferred.
        moved: u32,
    },
}

impl RequestError {
    /// True if the device is gone, and not only this range of it unreadable.
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
    /// The request as issued.
    pub request: Request,
    /// Time of issue, since the start of the list.
    pub began: Nanos,
    /// Time from issue until the completion was processed.
    pub latency: Nanos,
    /// Success, or the error of the request.
    pub result: Result<(), RequestError>,
}

impl CompletedRequest {
    /// Number of bytes transferred; 0 after a failure, since the kernel does not report which part of it is valid.
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
    /// Issue nothing until this time since the start of the list, or until a request completes. A time in the past
    /// means a wait of 100 us. A wait of less than 10 us is a busy wait.
    Wait(Nanos),
    /// Issue nothing more. This is final: a source that may repeat a request that is still in flight returns `Wait`
    /// until that has completed.
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

    /// True if a request may be a discard: if a ring does not support discards of a block device, threads are used for
    /// all requests.
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
    /// Memory for the data of requests.
    pub memory: BufferMode,
    /// Limit of [`RequestSource::depth`], from 1 to [`MAX_IN_FLIGHT`].
    pub max_in_flight: u32,
    /// Maximum size of a request, at most 64 MiB. Reads use a buffer of this size for each request in flight, up to
    /// the highest number in flight so far.
    pub largest: Bytes,
    /// Interface to the kernel.
    pub interface: IoInterface,
    /// Set by a signal handler: nothing more is issued, and the list ends when all requests in flight have completed.
    pub interrupt: &'a AtomicBool,
}

/// Reason why a list ended.
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
    /// Interface that was used for the I/O.
    pub kind: EngineUsed,
    /// Reason why it ended.
    pub ended: EndReason,
    /// Processor time of this process during the run, including the kernel threads of its io_uring.
    pub cpu: CpuTime,
}

/// An engine that runs lists, with real I/O or in a simulation. Several lists may run at once, each on a separate
/// thread.
pub trait ListEngine: Sync {
    /// Runs one list to its end. When it returns, nothing is in flight, unless the ring failed.
    ///
    /// # Errors
    /// When the list or a request of its source is invalid for the target, when the kernel refuses the requested
    /// interface, or when memory cannot be allocated. The failure of a request is not an error of the list.
    fn run(
        &self,
        list: &List<'_>,
        source: &mut dyn RequestSource,
    ) -> Result<ListSummary, EngineError>;
}
