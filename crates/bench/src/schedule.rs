//! Order of phases: those of a list, or those that a suite chooses by its measurements.

use record::{Bytes, Phase};

use super::suite::PhasePlan;
use super::suites::{curve, zones};
use crate::args::{BenchArgs, SuiteName};

/// Gives the phases of a run, one after another.
pub(super) trait Schedule {
    /// The next phase, after those that are `done`; `None` when there is no more to measure.
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan>;

    /// Names of the phases that a run leaves out if it ends after those that are `done`.
    fn missing(&self, done: &[Phase]) -> Vec<String>;
}

/// The schedule of the suite that `args` ask for, on a target of so many bytes whose disks take
/// requests of up to `whole` in one piece. `phases` are what the suite plans before it has seen
/// anything.
///
/// # Errors
/// When the target is too small for the suite.
pub(super) fn of(
    args: &BenchArgs,
    phases: Vec<PhasePlan>,
    size: Bytes,
    whole: Option<Bytes>,
) -> Result<Box<dyn Schedule>, String> {
    let suite = match args.workload {
        Some(_) => SuiteName::Database,
        None => args.suite,
    };
    let pattern = phases.first().cloned();
    Ok(match (suite, pattern) {
        (SuiteName::Zones, Some(pattern)) => {
            let asked = zones::Given {
                block: args.block.is_some(),
                depth: args.depth.is_some(),
            };
            Box::new(zones::Zones::of(pattern, size, asked, whole)?)
        }
        (SuiteName::Curve, Some(pattern)) => Box::new(curve::Search::of(pattern, args)),
        _ => Box::new(Listed(phases)),
    })
}

/// Phases that are known beforehand.
pub(super) struct Listed(pub Vec<PhasePlan>);

impl Schedule for Listed {
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan> {
        self.0.get(done.len()).cloned()
    }

    fn missing(&self, done: &[Phase]) -> Vec<String> {
        let left = self.0.iter().skip(done.len());
        left.map(|plan| plan.name.clone()).collect()
    }
}
