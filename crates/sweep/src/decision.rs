//! Conclusions from a sweep. They are derived from the [`SweepRecord`] alone, at any time: after each block to choose
//! the next layouts, and again from an old record by newer rules.

use std::collections::BTreeMap;

use record::Bytes;

use super::figure::Figure;
use super::layout::Factor;
use super::price::Cost;
use super::record::Value;

/// Conclusions from a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweepDecision {
    /// A row for each layout, the best first.
    pub rows: Vec<LayoutResult>,
    /// Index of the best layout.
    pub winner: Option<usize>,
    /// Layouts not distinguishable from the winner, the best first.
    pub ties: Vec<usize>,
    /// The best layout for each number of failed members that is survived, from the required number to 2.
    pub survivors: Vec<Survivor>,
    /// The Pareto frontier of cost, speed and redundancy, the fastest first. Empty without prices.
    pub frontier: Vec<usize>,
    /// True if no further measurement is needed.
    pub over: bool,
    /// Drift of the baseline over the sweep; `None` before it was measured twice.
    pub drift: Option<BaselineDrift>,
    /// Effect of each factor.
    pub effects: Vec<FactorEffect>,
    /// Growth of the objective's rate with the members.
    pub curves: Vec<ScalingCurve>,
    /// Conclusions about factors and members, as sentences.
    pub answers: Vec<String>,
    /// Reasons to doubt the table, as sentences.
    pub doubts: Vec<String>,
}

/// The best layout that survives the failure of a number of members, whichever they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Survivor {
    /// Number of failed members.
    pub losses: usize,
    /// Index of the layout; `None` where no measured layout survives so many.
    pub best: Option<usize>,
    /// Layouts not distinguishable from the best.
    pub ties: Vec<usize>,
}

/// Outcome of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutOutcome {
    /// The best.
    Winner,
    /// Not distinguishable from the best.
    Tie,
    /// Worse, and measured in all blocks.
    Behind,
    /// Significantly worse, and not measured further.
    Dropped,
    /// The layout misses a requirement.
    Missed,
    /// The layout could not be built or measured.
    Failed,
    /// Not decided yet.
    Open,
}

/// Result of a layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayoutResult {
    /// Index of the layout.
    pub layout: usize,
    /// Number of blocks in which it was measured.
    pub blocks: usize,
    /// Value of the objective; `None` where it was not measured.
    pub value: Option<Value>,
    /// The objective as a share of the winner's, with its interval, from the blocks in which both
    /// were measured; `None` for the winner.
    pub of_winner: Option<Value>,
    /// Figures over all blocks.
    pub figures: BTreeMap<Figure, Value>,
    /// Outcome of the layout.
    pub outcome: LayoutOutcome,
    /// The reason, as a clause: `12 to 15 % slower than the winner after 2 blocks`.
    pub why: String,
    /// Cost of the layout; `None` without prices.
    pub cost: Option<Cost>,
    /// Number of members that may fail.
    pub survives: usize,
    /// Usable capacity.
    pub capacity: Bytes,
}

/// Drift of the baseline over the sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BaselineDrift {
    /// Measurements of the baseline: start, in seconds of the running time of the sweep, and the figure that ranks
    /// the layouts.
    pub points: Vec<(f64, f64)>,
    /// The change from the first to the last as a share, with its interval.
    pub change: Option<Value>,
    /// The largest change between two consecutive measurements, as a share.
    pub jump: f64,
    /// The drift as a sentence.
    pub text: String,
}

/// Effect of a factor on the objective's figure, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FactorEffect {
    /// The factor.
    pub factor: Factor,
    /// The reference setting.
    pub from: String,
    /// The setting.
    pub to: String,
    /// Number of pairs of layouts that differ in this factor alone.
    pub pairs: usize,
    /// The ratio of `to` to `from`, with its interval where there is one.
    pub ratio: Value,
    /// The smallest and the largest ratio of a pair.
    pub range: (f64, f64),
    /// True if the interval excludes 1.
    pub shown: bool,
    /// The effect as a sentence.
    pub text: String,
}

/// Growth of the rate with the members, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScalingCurve {
    /// Common part: `RAID 10, 256 KiB, xfs`.
    pub label: String,
    /// Points by the number of members.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Number of members.
    pub members: usize,
    /// The rate in an average block, so that points measured in different blocks are comparable.
    pub value: Value,
    /// Sum of the rates of these members alone, divided by the member requests for each request: two for a write to
    /// two copies.
    pub ideal: Option<f64>,
}
