//! Jobs that an engine runs, and the errors that end them.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;

use record::{Bytes, Direction, Nanos, Phase, Window, Workload};

use crate::start::StartGroup;

/// Maximum size of a request: every kernel splits larger ones many times.
pub(crate) const MAX_BLOCK_SIZE: Bytes = Bytes::mib(64);

/// Requested interface to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IoInterface {
    /// io_uring; threads if it is not available, or if a single writer syncs (a database's log writer calls fdatasync
    /// itself, and io_uring would pass each call to a kernel thread).
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
    /// The open file or device, with O_DIRECT unless the page cache is to be used.
    pub file: &'a File,
    /// Number of bytes that may be used, from the target's start.
    pub span: Bytes,
    /// Workload to issue.
    pub workload: &'a Workload,
    /// Interface to the kernel.
    pub interface: IoInterface,
    /// Length of a window.
    pub window: Nanos,
    /// Seed of the random numbers, which makes a run repeatable.
    pub seed: u64,
    /// Set by a signal handler: the phase ends at once, and its measurements are kept.
    pub interrupt: &'a AtomicBool,
}

/// The observer's decision after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The phase continues.
    Continue,
    /// The phase ends because its interval is narrow enough.
    StopPrecise,
    /// The phase ends because of a rule of its job file.
    StopByRule,
}

/// Observer of a phase: it receives each complete window, may add the kernel's counts to it, and may end the phase. It
/// is called on a single thread, in order of time.
pub trait Observer {
    /// Called when the measured time begins.
    fn begin(&mut self) {}

    /// Called when a window is complete.
    fn window(&mut self, window: &mut Window) -> Control;
}

/// An engine that runs jobs, with real I/O or from a script of known results.
pub trait Engine: Sync {
    /// Checks that `workload` can run on this host with `interface`. Called before files are laid out for it.
    ///
    /// # Errors
    /// When the kernel refuses the requested interface, or too many requests would be in flight.
    fn check(&self, _workload: &Workload, _interface: IoInterface) -> Result<(), EngineError> {
        Ok(())
    }

    /// Runs one phase and returns its record, with `began_s` left at 0.
    ///
    /// # Errors
    /// When the job is invalid for its target, when the kernel refuses the requested interface, or when a
    /// request fails.
    fn run(&self, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Phase, EngineError>;

    /// Runs a job on several files: the job's own and `others`, each at least as large as its span.
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

    /// Runs a job on its files at the same time as others, each on a separate thread with the same `start`: all begin
    /// at the same tick, so that windows of the same index cover the same time, and together they use the memory limit
    /// of one job.
    ///
    /// # Errors
    /// As for [`Engine::run`]. After an error the others begin without it; the caller ends them.
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
    /// A request transferred fewer bytes than requested.
    #[error("a {} at byte {offset} moved {moved} of {requested} bytes: \
             {}", .direction.name(), short_transfer_reason(*.direction))]
    Short {
        /// Direction of the request.
        direction: Direction,
        /// Position, in bytes from the start of the target.
        offset: u64,
        /// Number of bytes transferred.
        moved: u64,
        /// Number of bytes requested.
        requested: u64,
    },
    /// A request took longer than its job allows.
    #[error("a {} at byte {offset} took longer than {longest}, the max_latency of its job", .direction.name())]
    Late {
        /// Direction of the request.
        direction: Direction,
        /// Position, in bytes from the start of the target.
        offset: u64,
        /// Maximum time of a request.
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

/// Explanation of a request that transferred less than requested.
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
