//! What the best layout has most of, and what it must reach.

use serde::{Deserialize, Serialize};

use super::figure::Figure;

/// What the best layout has most of, or least: `page-mixed.iops`, `page-read.p99`,
/// `page-mixed.iops/$` or `cost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Objective {
    /// The most of a rate, or the least of a latency.
    Figure(Figure),
    /// The most of a rate for each dollar a month.
    PerDollar(Figure),
    /// The least dollars a month, of the layouts that meet the requirements.
    Cost,
}

/// A bar for a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Requirement {
    /// The figure.
    pub figure: Figure,
    /// On which side of the bar it must lie.
    pub side: Side,
    /// The bar, in the figure's unit: requests or bytes a second, or nanoseconds.
    pub bar: f64,
}

/// A side of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}
