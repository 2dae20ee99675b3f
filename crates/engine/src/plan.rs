//! Input and messages of a worker.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use record::{Direction, FailedRequests, Workload};

use crate::arrivals::Arrivals;
use crate::budget::Budget;
use crate::job::EngineError;
use crate::positions::PositionGenerator;
use crate::tally::{Flows, Timetable, WindowTally};
use crate::throttle::Throttle;
use crate::verify::Verifier;

/// State that all workers of a phase share.
pub(crate) struct Plan<'a> {
    pub workload: &'a Workload,
    pub timetable: Timetable,
    pub seed: u64,
    /// Requests that may still be issued; `None` without a limit.
    pub budget: Option<&'a Budget>,
    /// Requests before this tick are not counted: they belong to the ramp.
    pub free_until: u64,
    /// Maximum ticks of reads, and of writes and trims.
    pub longest: [u64; 2],
    /// Set by the signal handler.
    pub interrupt: &'a AtomicBool,
    /// Set when the phase is precise enough, or another worker failed.
    pub enough: &'a AtomicBool,
    /// Set when a rule of its job file ends the phase.
    pub finished: &'a AtomicBool,
    /// The verifier of written data.
    pub verifier: Option<&'a Verifier<'a>>,
}

impl Plan<'_> {
    /// True if a request that completes at `now` took longer than allowed. As in fio, syncs have no limit, nor have
    /// requests in the ramp.
    #[inline(always)]
    pub(crate) fn is_late(&self, direction: Direction, started: u64, now: u64) -> bool {
        let longest = match direction {
            Direction::Read => self.longest[0],
            Direction::Write | Direction::Trim => self.longest[1],
            Direction::Sync | Direction::Commit => return false,
        };
        now.saturating_sub(started) > longest && now >= self.free_until
    }
}

/// State that the workers of one thread of the workload share: a ring is one worker with many slots; with blocking
/// calls there is a worker for each request in flight.
#[derive(Clone)]
pub(crate) struct ThreadShare {
    pub positions: PositionGenerator,
    /// Open loop: the next free worker takes the next arrival.
    pub arrivals: Option<Arc<Mutex<Arrivals>>>,
    /// Closed loop with a rate for one direction: that direction, and the due times of its requests.
    pub one_sided: Option<(Direction, Arc<Mutex<Arrivals>>)>,
    /// True for the worker that counts requests waiting in the shared schedule.
    pub leads: bool,
    /// Number of requests that this worker keeps in flight.
    pub slots: u32,
    /// Throttle of this worker.
    pub throttle: Option<Box<Throttle>>,
}

/// Result of a worker after its loop.
#[derive(Debug)]
pub(crate) struct WorkerEnd {
    /// The last, shortened window.
    pub cut: WindowTally,
    /// Completions after the last window.
    pub drained: Flows,
    /// Time from the end until the last completion, in ticks.
    pub drain_ticks: u64,
    /// The result of a search for the depth.
    pub depth: Option<u32>,
    /// Non-fatal failures.
    pub failed: FailedRequests,
}

/// Message of a worker to the gatherer.
pub(crate) enum Message {
    /// All workers are ready, and the phase begins.
    Begin,
    /// A window is complete.
    Window {
        worker: usize,
        tally: Box<WindowTally>,
    },
    /// The worker's loop is over.
    End {
        worker: usize,
        end: Result<Box<WorkerEnd>, EngineError>,
    },
}
