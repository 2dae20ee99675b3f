//! `--suite curve`: throughput against latency. Requests are issued at Poisson times, at rates that rise until the
//! 99th percentile exceeds the target and then converge on the highest rate that meets it.

use record::{Bytes, Nanos, Phase, Workload};
use study::curve::{self, Next};

use crate::args::{BenchArgs, P99_TARGET};
use crate::phase_plan::{EarlyEnd, OPEN_LOOP_DEPTH, PhasePlan, base};
use crate::schedule::Schedule;
use crate::trials::{WINDOWS, trials};

/// The first rate, in requests a second.
const FIRST_RATE: f64 = 100.0;
/// Minimum number of requests of a trial, unless its length was requested: fewer than 500 say nothing about one in a
/// hundred.
const MIN_REQUESTS: f64 = 800.0;

/// The pattern of all trials. Its precision is the requested distance between the bounds of the answer.
pub(crate) fn pattern() -> PhasePlan {
    let workload = Workload {
        block: Bytes::kib(16),
        depth: OPEN_LOOP_DEPTH,
        rate_per_s: Some(FIRST_RATE),
        shortest: Nanos(0),
        ..base()
    };
    PhasePlan::new("curve", workload)
}

/// The search for the rate.
pub(crate) struct Search {
    pattern: PhasePlan,
    target: Nanos,
    timed: bool,
}

impl Search {
    /// A search that has not begun.
    pub(crate) fn of(pattern: PhasePlan, args: &BenchArgs) -> Search {
        Search {
            pattern,
            target: args.p99_target().unwrap_or(P99_TARGET),
            timed: args.seconds.is_some(),
        }
    }

    fn trial(&self, rate: f64, done: &[Phase]) -> PhasePlan {
        let mut workload = self.pattern.workload.clone();
        workload.rate_per_s = Some(rate);
        if !self.timed {
            let least = Nanos((MIN_REQUESTS / rate * 1e9) as u64);
            workload.longest = workload.longest.max(least);
        }
        let before = done
            .iter()
            .filter(|phase| phase.workload.rate_per_s == Some(rate))
            .count();
        let again = match before {
            0 => String::new(),
            times => format!("-{}", times + 1),
        };
        PhasePlan {
            name: format!("rate-{rate:.0}{again}"),
            window: Nanos((workload.longest.0 / WINDOWS).max(10_000_000)),
            ends: EarlyEnd::Misses(self.target),
            workload,
        }
    }
}

impl Schedule for Search {
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan> {
        let width = self.pattern.workload.precision.max(0.005);
        match curve::next(&trials(done, self.target), FIRST_RATE, width) {
            Next::Measure(rate) => Some(self.trial(rate, done)),
            Next::Found(_) => None,
        }
    }

    fn missing(&self, done: &[Phase]) -> Vec<String> {
        let width = self.pattern.workload.precision.max(0.005);
        match curve::next(&trials(done, self.target), FIRST_RATE, width) {
            Next::Measure(_) => vec!["the rest of the search".to_owned()],
            Next::Found(_) => Vec::new(),
        }
    }
}
