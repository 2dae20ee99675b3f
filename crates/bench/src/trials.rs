//! Trials of a rate: phases of the suite `curve` that show whether the rate meets the target.

use engine::Control;
use record::{Direction, Histogram, Nanos, Phase, Run, Window, Workload};
use study::curve::{self, SliceCompletions, TargetMet, Trial};

/// Number of windows of a trial.
pub(crate) const WINDOWS: u64 = 40;

/// Reads and writes that completed in a window, and how many of them took longer than `target`.
fn tail(window: &Window, target: Nanos) -> SliceCompletions {
    let mut all = Histogram::new();
    for direction in [Direction::Read, Direction::Write] {
        if let Some(flow) = window.flow(direction) {
            all.merge(&flow.latency);
        }
    }
    let count = all.count();
    SliceCompletions {
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

pub(crate) fn trials(phases: &[Phase], target: Nanos) -> Vec<Trial> {
    phases
        .iter()
        .filter_map(|phase| trial(phase, target))
        .collect()
}

/// The trials of a run that searches for a rate, and the target.
pub(crate) fn trials_of(run: &Run) -> Option<(Nanos, Vec<Trial>)> {
    let target = run.p99_target?;
    Some((target, trials(&run.phases, target)))
}

/// Ends a trial when it significantly misses the target.
pub(crate) struct TargetMissDetector {
    target: Nanos,
    trial: Trial,
    missed: bool,
}

impl TargetMissDetector {
    /// Observes a trial that is about to begin.
    pub(crate) fn new(target: Nanos, workload: &Workload) -> TargetMissDetector {
        TargetMissDetector {
            target,
            trial: Trial {
                rate: workload.rate_per_s.unwrap_or_default(),
                seconds: 0.0,
                slices: Vec::new(),
            },
            missed: false,
        }
    }

    /// Examines another window. The result must be clear in two consecutive windows, since repeated tests raise the
    /// chance of an error.
    pub(crate) fn observe(&mut self, window: &Window) -> Control {
        self.trial.seconds += window.seconds;
        self.trial.slices.push(tail(window, self.target));
        let enough = self.trial.slices.len() >= WINDOWS as usize / 2;
        let missed = enough && curve::judge(&self.trial) == TargetMet::No;
        match std::mem::replace(&mut self.missed, missed) && missed {
            true => Control::StopPrecise,
            false => Control::Continue,
        }
    }
}
