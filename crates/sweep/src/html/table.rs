//! The table of layouts, the best first.

use super::view::PageView;
use crate::views::sentences::{figure_title, further_figures, plus_minus, rank, varying};
use crate::views::units::{FigureUnit, outcome_label, share, share_interval};
use crate::{Factor, LayoutOutcome, LayoutResult, Objective};

/// A row of the table: a layout.
pub(super) struct LayoutLine {
    pub(super) rank: usize,
    /// Settings of the factors that vary.
    pub(super) settings: Vec<String>,
    pub(super) value: String,
    pub(super) plus_minus: String,
    /// The share of the winner's value, with its interval.
    pub(super) share: String,
    pub(super) interval: String,
    /// Length of the bar that shows the share, in percent of the longest.
    pub(super) bar: u32,
    /// Further figures, in the order of the titles.
    pub(super) figures: Vec<String>,
    /// Cost in dollars a month, and the rate for each dollar; empty without prices.
    pub(super) cost: String,
    pub(super) per_dollar: String,
    pub(super) survives: usize,
    pub(super) capacity: String,
    pub(super) blocks: usize,
    pub(super) standing: &'static str,
    pub(super) why: String,
}

/// The whole table.
pub(super) struct LayoutTable {
    pub(super) factors: Vec<&'static str>,
    pub(super) unit: &'static str,
    pub(super) figures: Vec<String>,
    /// True if the layouts have prices and the objective is not the cost itself.
    pub(super) priced: bool,
    /// Unit of the rate for each dollar; `None` without prices, or if the objective is not a measured figure.
    pub(super) per_dollar: Option<&'static str>,
    pub(super) lines: Vec<LayoutLine>,
}

pub(super) fn of(view: PageView<'_>) -> LayoutTable {
    let settings = &view.record.settings;
    let unit = FigureUnit::of_objective(&settings.objective);
    let factors = varying(view.record);
    let rows = &view.decision.rows;
    let priced = rows.iter().any(|row| row.cost.is_some()) && settings.objective != Objective::Cost;
    let rates = rows
        .iter()
        .any(|row| row.cost.is_some_and(|cost| cost.rate_per_dollar.is_some()));
    let shown = rates && matches!(settings.objective, Objective::Figure(_));
    LayoutTable {
        factors: factors.iter().map(|factor| factor.name()).collect(),
        unit: unit.name(),
        figures: further_figures(settings)
            .into_iter()
            .map(|figure| figure_title(settings, figure))
            .collect(),
        priced,
        per_dollar: shown.then(|| unit.per_dollar().name()),
        lines: rows
            .iter()
            .map(|row| line(view, &factors, unit, row))
            .collect(),
    }
}

fn line(
    view: PageView<'_>,
    factors: &[Factor],
    unit: FigureUnit,
    row: &LayoutResult,
) -> LayoutLine {
    let layout = view.record.layouts.get(row.layout);
    let dash = || "–".to_owned();
    let figures = further_figures(&view.record.settings)
        .into_iter()
        .map(|figure| {
            let value = row.figures.get(figure);
            value.map_or_else(dash, |value| {
                FigureUnit::of_metric(figure.metric).digits(value.mean)
            })
        })
        .collect();
    let rate = row.cost.and_then(|cost| cost.rate_per_dollar);
    LayoutLine {
        rank: rank(view.decision, row.layout).unwrap_or_default(),
        settings: factors
            .iter()
            .map(|factor| layout.map_or_else(dash, |layout| layout.setting(*factor)))
            .collect(),
        value: row.value.map_or_else(dash, |value| unit.digits(value.mean)),
        plus_minus: plus_minus(row, unit),
        share: row
            .of_winner
            .map_or_else(String::new, |value| share(value.mean)),
        interval: row.of_winner.map_or_else(String::new, share_interval),
        bar: bar(unit, row),
        figures,
        cost: row
            .cost
            .map_or_else(dash, |cost| FigureUnit::Dollars.digits(cost.per_month)),
        per_dollar: rate.map_or_else(dash, |rate| unit.per_dollar().digits(rate)),
        survives: row.survives,
        capacity: row.capacity.to_string(),
        blocks: row.blocks,
        standing: outcome_label(row.outcome),
        why: row.why.clone(),
    }
}

/// Length of the bar in percent of the winner's; inverted for latencies, so that longer is better.
fn bar(unit: FigureUnit, row: &LayoutResult) -> u32 {
    let share = match row.of_winner {
        Some(share) if unit.less_is_better() => 1.0 / share.mean.max(f64::EPSILON),
        Some(share) => share.mean,
        None if row.outcome == LayoutOutcome::Winner => 1.0,
        None => 0.0,
    };
    (share.clamp(0.0, 1.0) * 100.0).round() as u32
}
