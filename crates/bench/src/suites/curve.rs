//! `--suite curve`: throughput against latency. Requests come at Poisson times, at rates that rise
//! until the 99th percentile passes the target and then close in on the highest that keeps it.

use engine::Control;
use record::{Bytes, Direction, Histogram, Nanos, Phase, Run, Window, Workload};
use study::curve::{self, Next, Tail, TargetKept, Trial};

use crate::args::{BenchArgs, SuiteName};
use crate::schedule::Schedule;
use crate::suite::{Ends, OPEN_LOOP_DEPTH, PhasePlan, base};

/// The target, unless another is asked for.
const TARGET: Nanos = Nanos(10_000_000);
/// The rate to begin with.
const FIRST_RATE: f64 = 100.0;
/// A trial lasts for so many requests at least, unless its time was asked for: fewer than 500 say
/// nothing of one in a hundred.
const LEAST_REQUESTS: f64 = 800.0;
/// A trial has so many windows.
const WINDOWS: u64 = 40;

/// The phase that stands for all. Its precision is how close the bounds of the answer shall come.
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

/// The target that a run looks for the rate of; `None` where it does not.
pub(crate) fn target(args: &BenchArgs) -> Option<Nanos> {
    let curve = args.suite == SuiteName::Curve && args.workload.is_none() && args.fio.is_none();
    curve.then(|| args.p99.map_or(TARGET, |p99| p99.0))
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
            target: target(args).unwrap_or(TARGET),
            timed: args.seconds.is_some(),
        }
    }

    fn trial(&self, rate: f64, done: &[Phase]) -> PhasePlan {
        let mut workload = self.pattern.workload.clone();
        workload.rate_per_s = Some(rate);
        if !self.timed {
            let least = Nanos((LEAST_REQUESTS / rate * 1e9) as u64);
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
            ends: Ends::Misses(self.target),
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

/// Reads and writes together that came back in a window, and how many took longer than `target`.
fn tail(window: &Window, target: Nanos) -> Tail {
    let mut all = Histogram::new();
    for direction in [Direction::Read, Direction::Write] {
        if let Some(flow) = window.flow(direction) {
            all.merge(&flow.latency);
        }
    }
    let count = all.count();
    Tail {
        count: count as f64,
        over: (count - all.count_at_most(target.0)) as f64,
    }
}

/// A phase as a trial.
fn trial(phase: &Phase, target: Nanos) -> Option<Trial> {
    Some(Trial {
        rate: phase.workload.rate_per_s?,
        seconds: phase.windows.iter().map(|window| window.seconds).sum(),
        slices: phase
            .windows
            .iter()
            .map(|window| tail(window, target))
            .collect(),
    })
}

fn trials(phases: &[Phase], target: Nanos) -> Vec<Trial> {
    phases
        .iter()
        .filter_map(|phase| trial(phase, target))
        .collect()
}

/// The trials of a run that looked for a rate, with the target.
pub(crate) fn trials_of(run: &Run) -> Option<(Nanos, Vec<Trial>)> {
    let target = run.p99_target?;
    Some((target, trials(&run.phases, target)))
}

/// Ends a trial when it is clear that it misses the target.
pub(crate) struct Misses {
    target: Nanos,
    trial: Trial,
    missed: bool,
}

impl Misses {
    /// For a trial that is about to begin.
    pub(crate) fn new(target: Nanos, workload: &Workload) -> Misses {
        Misses {
            target,
            trial: Trial {
                rate: workload.rate_per_s.unwrap_or_default(),
                seconds: 0.0,
                slices: Vec::new(),
            },
            missed: false,
        }
    }

    /// Looks at a window more. It must be clear at two looks in a row, as chance has many looks.
    pub(crate) fn look(&mut self, window: &Window) -> Control {
        self.trial.seconds += window.seconds;
        self.trial.slices.push(tail(window, self.target));
        let enough = self.trial.slices.len() >= WINDOWS as usize / 2;
        let missed = enough && curve::judge(&self.trial) == TargetKept::No;
        match std::mem::replace(&mut self.missed, missed) && missed {
            true => Control::Stop,
            false => Control::GoOn,
        }
    }
}
