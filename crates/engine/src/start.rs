//! Lets jobs that run at the same time begin at one tick.

use std::sync::OnceLock;

use crate::clock::Clock;
use crate::start_barrier::StartBarrier;

/// State that jobs share that run at the same time. To fill the memory of a job with random bytes may take
/// seconds; if each began when it was ready itself, the first and the last would have the disk for
/// themselves, and the windows of one would not be those of the others.
pub struct Start {
    jobs: u32,
    ready: StartBarrier,
    tick: OnceLock<u64>,
}

impl Start {
    /// For so many jobs, each of which runs on a thread of its own.
    pub fn of(jobs: u32) -> Start {
        Start {
            jobs,
            ready: StartBarrier::new(jobs as usize),
            tick: OnceLock::new(),
        }
    }

    /// Number of jobs.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }

    /// Lets those begin that are ready: another will not come.
    pub fn open(&self) {
        self.ready.open();
    }

    /// Waits until all jobs are ready, and gives the tick at which all of them begin.
    pub(crate) fn meet(&self, clock: Clock) -> u64 {
        self.ready.pass();
        *self.tick.get_or_init(|| clock.now())
    }

    /// Guard to hold while a job runs: when it is dropped, the others wait for it no longer. A job that could
    /// not be set up never comes.
    pub(crate) fn attended(&self) -> PendingStart<'_> {
        PendingStart(self)
    }
}

/// A job that may still come to its start.
pub(crate) struct PendingStart<'a>(&'a Start);

impl Drop for PendingStart<'_> {
    fn drop(&mut self) {
        // Where all have begun, this opens what is open.
        self.0.open();
    }
}
