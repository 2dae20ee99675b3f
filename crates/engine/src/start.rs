//! Common start of jobs that run at the same time.

use std::sync::OnceLock;

use record::{FlowShare, Nanos};

use crate::clock::Clock;
use crate::flow::{FlowGroups, FlowHandle};
use crate::start_barrier::StartBarrier;

/// Minimum pause of a job that is ahead of its share.
const MIN_PAUSE: Nanos = Nanos(50_000);

/// Jobs that run at the same time and begin at the same tick. To fill a job's memory with random bytes may take
/// seconds; if each job began as soon as it was ready, the first and the last would use the disk alone for a while,
/// and their windows would cover different times.
pub struct StartGroup {
    jobs: u32,
    ready: StartBarrier,
    tick: OnceLock<u64>,
    flows: FlowGroups,
}

impl StartGroup {
    /// A group of this number of jobs, each of which runs on a separate thread.
    pub fn of(jobs: u32) -> StartGroup {
        StartGroup {
            jobs,
            ready: StartBarrier::new(jobs as usize),
            tick: OnceLock::new(),
            flows: FlowGroups::default(),
        }
    }

    /// Number of jobs.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }

    /// Starts the jobs that are ready without waiting for the others.
    pub fn open(&self) {
        self.ready.open();
    }

    /// Handle of a job in its group of shares. Called before the job is ready.
    pub(crate) fn share(&self, share: &FlowShare, clock: Clock) -> FlowHandle {
        let pause = share.pause.max(MIN_PAUSE);
        self.flows.join(share.id, share.weight, clock.ticks(pause))
    }

    /// Waits until all jobs are ready, and returns the tick at which all of them begin.
    pub(crate) fn wait_for_all(&self, clock: Clock) -> u64 {
        self.ready.wait();
        *self.tick.get_or_init(|| clock.now())
    }

    /// A guard for the time in which a job runs: when it is dropped, the others no longer wait for the job, which may
    /// have failed before it was ready.
    pub(crate) fn pending(&self) -> PendingStart<'_> {
        PendingStart(self)
    }
}

/// A job that may still become ready.
pub(crate) struct PendingStart<'a>(&'a StartGroup);

impl Drop for PendingStart<'_> {
    fn drop(&mut self) {
        // Has no effect once all jobs have begun.
        self.0.open();
    }
}
