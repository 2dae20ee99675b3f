//! Layouts before they are ranked, and their order.

use super::bar::{Bar, Bars};
use super::observed::Observed;
use crate::decided::LayoutOutcome;
use crate::record::Value;

/// Chance of a layout to win.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// It contends.
    In,
    /// It misses a requirement: why, as a clause.
    Missed(String),
    /// It is given up: why, as a clause.
    Failed(String),
}

/// Layouts before they are ranked.
pub(super) struct Field<'a> {
    /// Measurements.
    pub observed: &'a Observed<'a>,
    /// The requirements on each layout.
    pub bars: Bars<'a>,
    /// Fate of each layout.
    pub fates: Vec<Fate>,
    /// Cost of each, where prices are known.
    pub costs: Vec<Option<f64>>,
    /// True if nothing more will be measured.
    pub last: bool,
}

/// The layouts in their order of merit.
pub(super) struct Ranking {
    /// The best so far.
    pub leader: Option<usize>,
    /// Outcome of each, as if nothing more were measured, and the reason; open where nothing is known.
    pub places: Vec<(LayoutOutcome, String)>,
    /// The objective as a share of the leader's.
    pub shares: Vec<Option<Value>>,
    /// True if the leader is the winner whatever else were measured.
    pub settled: bool,
}

impl Field<'_> {
    /// True if a layout contends.
    pub(super) fn is_in(&self, layout: usize) -> bool {
        self.fates.get(layout) == Some(&Fate::In)
    }

    /// The layouts that contend.
    pub(super) fn contenders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.fates.len()).filter(|layout| self.is_in(*layout))
    }

    pub(super) fn of<'a>(observed: &'a Observed<'a>, last: bool) -> Field<'a> {
        let record = observed.record;
        let sizes = record.settings.sizes();
        let prices = record.settings.prices.as_ref();
        let costs = record.layouts.iter().map(|layout| {
            let cost = prices?.cost(layout, &sizes, None);
            Some(cost.per_month).filter(|cost| cost.is_finite())
        });
        let bars = Bars::of(observed, last);
        Field {
            observed,
            fates: (0..record.layouts.len())
                .map(|layout| fate(observed, &bars, layout, last))
                .collect(),
            bars,
            costs: costs.collect(),
            last,
        }
    }
}

pub(super) fn fate(observed: &Observed, bars: &Bars, layout: usize, last: bool) -> Fate {
    if let Some(why) = observed.given_up(layout) {
        return Fate::Failed(format!("failed twice: {why}"));
    }
    if last && observed.measured(layout) == 0 {
        return Fate::Failed(match observed.failed_last(layout) {
            Some(why) => format!("failed: {why}"),
            None => "was not measured".to_owned(),
        });
    }
    match bars.judge(layout) {
        Bar::Missed(why) => Fate::Missed(why),
        Bar::Met | Bar::Open => Fate::In,
    }
}
