//! What volumes cost.

use serde::{Deserialize, Serialize};

/// The prices of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prices {}

/// What a layout costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Dollars a month.
    pub per_month: f64,
    /// The objective's rate for each of them; `None` where the objective is no rate.
    pub rate_per_dollar: Option<f64>,
}
