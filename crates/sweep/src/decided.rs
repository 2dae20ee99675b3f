//! Conclusions from a sweep. It is derived from the [`SweepRecord`] alone, at any time: after each block to
//! know what is measured next, and of an old sweep with a better rule.

use std::collections::BTreeMap;

use record::Bytes;

use super::figure::Figure;
use super::layout::Factor;
use super::price::Cost;
use super::record::Value;

/// All that was concluded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decided {
    /// One row a layout, the best first.
    pub rows: Vec<Row>,
    /// The best, by its place among the layouts.
    pub winner: Option<usize>,
    /// Those that are as good as the winner as far as can be told, the best first.
    pub ties: Vec<usize>,
    /// The best for each number of members whose loss is survived, from what was asked for to 2.
    pub survivors: Vec<Survivor>,
    /// Those that are not beaten in cost, speed and redundancy at once, the fastest first. Empty
    /// without prices.
    pub frontier: Vec<usize>,
    /// True if nothing more need be measured.
    pub over: bool,
    /// Drift of the baseline over the sweep; `None` before it was measured twice.
    pub drift: Option<Drift>,
    /// Effect of each factor.
    pub effects: Vec<Effect>,
    /// Growth of the objective's rate with the members.
    pub curves: Vec<Curve>,
    /// The answers to the old questions, as sentences.
    pub answers: Vec<String>,
    /// Doubts about the table, as sentences.
    pub doubts: Vec<String>,
}

/// The best layout that keeps all data when so many members fail, whichever they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Survivor {
    /// Number of members.
    pub losses: usize,
    /// The layout; `None` where none was measured that survives so many.
    pub best: Option<usize>,
    /// Those that cannot be told from it.
    pub ties: Vec<usize>,
}

/// Outcome of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayoutOutcome {
    /// The best.
    Winner,
    /// As good as the best, as far as can be told.
    Tie,
    /// Worse, and measured to the end.
    Behind,
    /// Worse beyond doubt, and not measured further.
    Dropped,
    /// It misses a requirement.
    Missed,
    /// It could not be built or measured.
    Failed,
    /// Not decided yet.
    Open,
}

/// One layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// By its place among the layouts.
    pub layout: usize,
    /// In how many blocks it was measured.
    pub blocks: usize,
    /// The objective.
    pub value: Option<Value>,
    /// The objective as a share of the winner's, with its interval, from the blocks in which both
    /// were measured; `None` for the winner.
    pub of_winner: Option<Value>,
    /// All figures, over the blocks.
    pub figures: BTreeMap<Figure, Value>,
    /// Its outcome.
    pub standing: LayoutOutcome,
    /// The reason, as a clause: `12 to 15 % slower than the winner after 2 blocks`.
    pub why: String,
    /// Its cost, where prices are known.
    pub cost: Option<Cost>,
    /// Number of members that may fail.
    pub survives: usize,
    /// Bytes left for data.
    pub capacity: Bytes,
}

/// Drift of the baseline over the sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drift {
    /// Times of its measurements, in seconds, and its objective's figure.
    pub points: Vec<(f64, f64)>,
    /// The change from the first to the last as a share, with its interval.
    pub change: Option<Value>,
    /// The largest difference between two neighbours as a share.
    pub jump: f64,
    /// As a sentence.
    pub text: String,
}

/// Effect of a factor on the objective's figure, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    /// The factor.
    pub factor: Factor,
    /// The setting that is compared with.
    pub from: String,
    /// The setting.
    pub to: String,
    /// Number of pairs of layouts that differ in this alone.
    pub pairs: usize,
    /// The ratio of `to` to `from`, with its interval where there is one.
    pub ratio: Value,
    /// The smallest and the largest ratio of a pair.
    pub range: (f64, f64),
    /// True if the interval excludes 1.
    pub shown: bool,
    /// As a sentence.
    pub text: String,
}

/// Growth of the rate with the members, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Common part: `RAID 10, 256 KiB, xfs`.
    pub label: String,
    /// By members.
    pub points: Vec<Point>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Number of members.
    pub members: usize,
    /// The rate in an average block, so that points may be compared that were measured in different
    /// ones.
    pub value: Value,
    /// Sum of these members' own rates, divided by the requests that the level makes of one: writes are two
    /// with two copies.
    pub ideal: Option<f64>,
}
