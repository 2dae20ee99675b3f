//! What was concluded of a run: intervals, findings and the verdict. It is derived from the
//! [`Run`](record::Run) alone and can be derived again, with a better rule, from an old one.

use record::{Direction, Finding, Verdict};
use serde::Serialize;

/// A mean and the bounds of its 95 % interval. The bounds are missing where nothing honest can be
/// said of them: too few slices, or an imported run that has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The lower bound.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
}

/// One direction of one phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowFigures {
    /// What the figures are about.
    pub direction: Direction,
    /// Requests a second.
    pub iops: Estimate,
    /// Bytes a second.
    pub bytes_per_s: Estimate,
}

/// One phase; it has the same index as in the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PhaseFigures {
    /// The phase's name.
    pub name: String,
    /// The directions that did anything, in the order in which they are shown.
    pub flows: Vec<FlowFigures>,
}

/// All that was concluded of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conclusion {
    /// The figures, one entry for each phase of the run.
    pub phases: Vec<PhaseFigures>,
    /// Reasons to doubt or to act, in the order in which they are shown.
    pub findings: Vec<Finding>,
    /// What they add up to.
    pub verdict: Verdict,
}
