//! Order of phases.

use record::Phase;

use super::phase_plan::PhasePlan;

/// Gives the phases of a run, one after another.
pub(crate) trait Schedule {
    /// The next phase, after those that are `done`; `None` when there is no more to measure.
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan>;

    /// Names of the phases that a run leaves out if it ends after those that are `done`.
    fn missing(&self, done: &[Phase]) -> Vec<String>;
}

/// Phases that are known beforehand.
pub(crate) struct FixedSchedule(pub Vec<PhasePlan>);

impl Schedule for FixedSchedule {
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan> {
        self.0.get(done.len()).cloned()
    }

    fn missing(&self, done: &[Phase]) -> Vec<String> {
        let left = self.0.iter().skip(done.len());
        left.map(|plan| plan.name.clone()).collect()
    }
}
