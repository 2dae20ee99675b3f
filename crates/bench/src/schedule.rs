//! Order of phases.

use record::Phase;

use super::phase_plan::PhasePlan;

/// Source of the phases of a run, one after another.
pub(crate) trait Schedule {
    /// The next phase, given the phases that are `done`; `None` at the end.
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan>;

    /// Names of the phases that would be missing if the run ended after those that are `done`.
    fn missing(&self, done: &[Phase]) -> Vec<String>;
}

/// A fixed list of phases.
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
