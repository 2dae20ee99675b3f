//! Lets jobs that run at the same time begin at one tick.

use std::sync::OnceLock;

use record::{FlowShare, Nanos};

use crate::clock::Clock;
use crate::flow::{FlowTurn, Flows};
use crate::start_barrier::StartBarrier;

/// A job that is ahead of its share looks again after so long at the earliest.
const SHORTEST_PAUSE: Nanos = Nanos(50_000);

/// State that jobs share that run at the same time. To fill the memory of a job with random bytes may take
/// seconds; if each began when it was ready itself, the first and the last would have the disk for
/// themselves, and the windows of one would not be those of the others.
pub struct Start {
    jobs: u32,
    ready: StartBarrier,
    tick: OnceLock<u64>,
    flows: Flows,
}

impl Start {
    /// For so many jobs, each of which runs on a thread of its own.
    pub fn of(jobs: u32) -> Start {
        Start {
            jobs,
            ready: StartBarrier::new(jobs as usize),
            tick: OnceLock::new(),
            flows: Flows::default(),
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

    /// A job's place among those that it shares with. To be asked for before the job is ready.
    pub(crate) fn share(&self, share: &FlowShare, clock: Clock) -> FlowTurn {
        let pause = share.pause.max(SHORTEST_PAUSE);
        self.flows.join(share.id, share.weight, clock.ticks(pause))
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
