//! Jobs that an engine runs, and the errors that end them.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;

use record::{Bytes, Direction, Nanos, Phase, Window, Workload};

use crate::start::StartGroup;

/// Larger requests than this are split by every kernel many times over.
pub(crate) const MAX_BLOCK_SIZE: Bytes = Bytes::mib(64);

/// Requested interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IoInterface {
    /// io_uring; threads where it is refused, or where one writer syncs (a database's log writer
    /// calls fdatasync itself, and io_uring would hand each call to a kernel thread).
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// A thread for each request in flight, with pread, pwrite and fdatasync.
    Sync,
}

/// A phase to run.
pub struct Job<'a> {
    /// The phase's name, which goes into the record.
    pub name: &'a str,
    /// The open file or device. O_DIRECT where the page cache is to be bypassed.
    pub file: &'a File,
    /// Bytes that may be used, from the target's start.
    pub span: Bytes,
    /// Workload to issue.
    pub workload: &'a Workload,
    /// Interface to the kernel.
    pub interface: IoInterface,
    /// Length of a window.
    pub window: Nanos,
    /// Seed of the random numbers, by which a run can be repeated.
    pub seed: u64,
    /// Set by a signal handler: the phase ends at once, and what was measured is kept.
    pub interrupt: &'a AtomicBool,
}

/// The observer's decision after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The phase continues.
    Continue,
    /// The phase ends: its interval is narrow enough.
    StopPrecise,
    /// The phase ends by a rule of its job file.
    StopByRule,
}

/// Observer of a phase: it receives each complete window, may add the kernel's counts to it, and may end
/// the phase. It is called from one thread only, in order of time.
pub trait Observer {
    /// The measured time begins.
    fn begin(&mut self) {}

    /// A window is complete.
    fn window(&mut self, window: &mut Window) -> Control;
}

/// An engine that runs jobs, by real I/O or from a script of known results.
pub trait Engine: Sync {
    /// Checks that `workload` can be run on this host through `interface`. Called before any file is laid out
    /// for it.
    ///
    /// # Errors
    /// When the kernel refuses the requested interface, or too many requests would be in flight.
    fn check(&self, _workload: &Workload, _interface: IoInterface) -> Result<(), EngineError> {
        Ok(())
    }

    /// Runs one phase and gives its record; `began_s` in it is left at 0.
    ///
    /// # Errors
    /// When the job is invalid for its target, when the kernel refuses the requested interface, or when a
    /// request fails.
    fn run(&self, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Phase, EngineError>;

    /// Runs a job whose workload has several files: the job's own and `others`, each at least as
    /// large as its span.
    ///
    /// # Errors
    /// As for [`Engine::run`].
    fn run_over(
        &self,
        job: &Job<'_>,
        _others: &[&File],
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        self.run(job, observer)
    }

    /// Runs a job over its files at the same time as others, each of which is run on a thread of its
    /// own with the same `start`: all begin at one tick, so that windows of the same index cover the same
    /// time, and they share the memory that one job would have.
    ///
    /// # Errors
    /// As for [`Engine::run`]. The others then begin without it; the caller ends them.
    fn run_concurrently(
        &self,
        job: &Job<'_>,
        others: &[&File],
        _start: &StartGroup,
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        self.run_over(job, others, observer)
    }
}

/// Error that ended a phase.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// io_uring was requested and is not available.
    #[error(
        "io_uring cannot be used here ({0}); threads do the same: leave out --engine uring, or give --engine sync"
    )]
    NoUring(io::Error),
    /// The workload does not fit its target.
    #[error("{0}")]
    Unfit(String),
    /// A thread or its memory could not be allocated.
    #[error("could not set up the I/O threads: {0}")]
    Setup(io::Error),
    /// A request failed.
    #[error("a {} at byte {offset} failed: {source}", .direction.name())]
    Io {
        /// Direction of the request.
        direction: Direction,
        /// Position, in bytes from the start of the target.
        offset: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// A request moved fewer bytes than requested.
    #[error("a {} at byte {offset} moved {moved} of {requested} bytes: \
             {}", .direction.name(), short_transfer_reason(*.direction))]
    Short {
        /// Direction of the request.
        direction: Direction,
        /// Position, in bytes from the start of the target.
        offset: u64,
        /// Bytes moved.
        moved: u64,
        /// Bytes requested.
        requested: u64,
    },
    /// A request took longer than its job allows.
    #[error("a {} at byte {offset} took longer than {longest}, the max_latency of its job", .direction.name())]
    Late {
        /// Direction of the request.
        direction: Direction,
        /// Position, in bytes from the start of the target.
        offset: u64,
        /// The longest that it may take.
        longest: Nanos,
    },
    /// A system call other than a read, write or sync failed.
    #[error("{what} failed: {source}")]
    Call {
        /// The failed operation and its object.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The ring itself failed.
    #[error("io_uring failed while I/O was under way: {0}")]
    Ring(io::Error),
}

/// Explanation of a request that moved less than requested.
fn short_transfer_reason(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "there is no room for the rest",
        _ => "the target is shorter than it was",
    }
}

impl Job<'_> {
    /// Checks that the workload fits the target.
    ///
    /// # Errors
    /// Names the invalid figure and the allowed values.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let workload = self.workload;
        let unfit = |text: String| Err(EngineError::Unfit(text));
        if workload.block.0 == 0 || workload.threads == 0 || workload.depth == 0 {
            return unfit(
                "a workload needs a block size, threads and a depth of at least 1".into(),
            );
        }
        let (smallest, largest) = (workload.smallest_block(), workload.largest_block());
        if largest > MAX_BLOCK_SIZE || smallest.0 == 0 {
            return unfit(format!(
                "blocks from {smallest} to {largest} are not possible; the largest is \
                 {MAX_BLOCK_SIZE}"
            ));
        }
        if !(0.0..=1.0).contains(&workload.read_fraction) {
            return unfit(format!(
                "the read fraction is {}; it must lie between 0 and 1",
                workload.read_fraction
            ));
        }
        if workload
            .rate_per_s
            .is_some_and(|rate| !(rate > 0.0 && rate.is_finite()))
        {
            return unfit("the rate must be above 0 requests a second".into());
        }
        let blocks = self.span.0 / largest.0;
        if blocks < u64::from(workload.threads) {
            return unfit(format!(
                "the span of {} has room for {blocks} blocks of {largest}, and {} threads need one each",
                self.span, workload.threads
            ));
        }
        if self.window.0 < 10_000_000 {
            return unfit("a window must be at least 10 ms long".into());
        }
        Ok(())
    }
}
