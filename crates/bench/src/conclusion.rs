//! Conclusions from a run: intervals, findings and the verdict. It is derived from the [`Run`](record::Run)
//! alone and can be derived again, with a better rule, from an old one.

use record::{Finding, Run, Verdict};

use super::answer::SuiteResult;
use super::figures::PhaseFigures;
use super::findings;

/// All conclusions about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The figures, one entry for each phase of the run.
    pub phases: Vec<PhaseFigures>,
    /// Answer of the suite, where it has a question of its own.
    pub answer: Option<SuiteResult>,
    /// Reasons to doubt or to act, in the order in which they are shown.
    pub findings: Vec<Finding>,
    /// Verdict of the findings together.
    pub verdict: Verdict,
}

impl Conclusion {
    /// Studies a run.
    pub fn of(run: &Run) -> Conclusion {
        let phases: Vec<PhaseFigures> = run.phases.iter().map(PhaseFigures::of).collect();
        let answer = SuiteResult::of(run, &phases);
        let findings = findings::of(run, &phases, answer.as_ref());
        Conclusion {
            verdict: Verdict::of(&findings),
            phases,
            answer,
            findings,
        }
    }
}
