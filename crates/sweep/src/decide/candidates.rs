//! Layouts before and after ranking.

use super::measurements::Measurements;
use super::requirements::{RequirementChecks, RequirementResult};
use crate::decision::LayoutOutcome;
use crate::record::Value;

/// Eligibility of a layout to win.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Eligibility {
    /// The layout can win.
    Eligible,
    /// The layout misses a requirement: the reason, as a clause.
    Missed(String),
    /// The layout failed too often: the reason, as a clause.
    Failed(String),
}

/// Layouts before they are ranked.
pub(super) struct Candidates<'a> {
    /// Measurements by layout.
    pub measurements: &'a Measurements<'a>,
    /// Checks of the requirements on each layout.
    pub checks: RequirementChecks<'a>,
    /// Eligibility of each layout.
    pub eligibility: Vec<Eligibility>,
    /// Cost of each, where prices are known.
    pub costs: Vec<Option<f64>>,
    /// True if nothing more will be measured.
    pub last: bool,
}

/// Ranking of the layouts.
pub(super) struct Ranking {
    /// The best so far.
    pub leader: Option<usize>,
    /// Outcome of each layout if nothing more were measured, and the reason; open for a layout without measurements.
    pub places: Vec<(LayoutOutcome, String)>,
    /// The objective of each layout as a share of the leader's.
    pub shares: Vec<Option<Value>>,
    /// True if further measurements would not change the winner.
    pub settled: bool,
}

impl Candidates<'_> {
    /// True if a layout is eligible.
    pub(super) fn is_in(&self, layout: usize) -> bool {
        self.eligibility.get(layout) == Some(&Eligibility::Eligible)
    }

    /// The eligible layouts.
    pub(super) fn contenders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.eligibility.len()).filter(|layout| self.is_in(*layout))
    }

    pub(super) fn of<'a>(measurements: &'a Measurements<'a>, last: bool) -> Candidates<'a> {
        let record = measurements.record;
        let sizes = record.settings.sizes();
        let prices = record.settings.prices.as_ref();
        let costs = record.layouts.iter().map(|layout| {
            let cost = prices?.cost(layout, &sizes, None);
            Some(cost.per_month).filter(|cost| cost.is_finite())
        });
        let checks = RequirementChecks::of(measurements, last);
        Candidates {
            measurements,
            eligibility: (0..record.layouts.len())
                .map(|layout| eligibility(measurements, &checks, layout, last))
                .collect(),
            checks,
            costs: costs.collect(),
            last,
        }
    }
}

pub(super) fn eligibility(
    measurements: &Measurements,
    checks: &RequirementChecks,
    layout: usize,
    last: bool,
) -> Eligibility {
    if let Some(why) = measurements.given_up(layout) {
        return Eligibility::Failed(format!("failed twice: {why}"));
    }
    if last && measurements.measured(layout) == 0 {
        return Eligibility::Failed(match measurements.failed_last(layout) {
            Some(why) => format!("failed: {why}"),
            None => "was not measured".to_owned(),
        });
    }
    match checks.check(layout) {
        RequirementResult::Missed(why) => Eligibility::Missed(why),
        RequirementResult::Met | RequirementResult::Undecided => Eligibility::Eligible,
    }
}
