//! Decisions from a sweep's record: the best layout, the dropped ones, and the layouts to measure next.

mod answers;
mod by_cost;
mod by_figure;
mod candidates;
pub(super) mod clauses;
mod doubts;
mod drift;
mod effects;
mod frontier;
mod measurements;
mod members;
#[cfg(test)]
mod properties;
mod requirements;
mod scaling;
mod summary;
pub(crate) mod survivors;
mod sweep_race;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use candidates::{Candidates, Eligibility, Ranking};
use measurements::Measurements;
use summary::Summaries;

use super::decision::{LayoutOutcome, LayoutResult, SweepDecision};
use super::objective::Objective;
use super::price::Cost;
use super::record::{SweepRecord, Value};

fn rank(candidates: &Candidates) -> Ranking {
    match candidates.measurements.record.settings.objective {
        Objective::Cost => by_cost::rank(candidates),
        Objective::Figure(_) | Objective::PerDollar(_) => by_figure::rank(candidates),
    }
}

/// Conclusions from a record, at any time between two cells. The layouts to measure next are chosen only after whole
/// blocks, by [`next_layouts`].
pub(crate) fn decide(record: &SweepRecord) -> SweepDecision {
    let measurements = Measurements::of(record);
    let mut candidates = Candidates::of(&measurements, false);
    let mut ranking = rank(&candidates);
    let exhausted = |candidates: &Candidates, ranking: &Ranking| {
        let mut open = (0..candidates.eligibility.len())
            .filter(|layout| is_open(candidates, ranking, *layout));
        measurements.has_run_out() || open.all(|layout| measurements.was_tried_last(layout))
    };
    let mut over = ranking.settled && !record.settings.full;
    if !over && exhausted(&candidates, &ranking) {
        candidates = Candidates::of(&measurements, true);
        ranking = rank(&candidates);
        over = true;
    }
    let summaries = Summaries::of(&measurements);
    let mut rows: Vec<LayoutResult> = (0..record.layouts.len())
        .map(|layout| row(&candidates, &ranking, &summaries, layout, over))
        .collect();
    sort(
        &mut rows,
        &ranking,
        record.settings.objective.less_is_better(),
    );
    let ties = rows.iter().filter(|row| row.outcome == LayoutOutcome::Tie);
    let mut doubts: Vec<String> = survivors::doubt(record, &rows, ranking.leader)
        .into_iter()
        .collect();
    doubts.extend(requirements::unmeasured(&measurements));
    doubts.extend(doubts::of(&measurements, &candidates));
    doubts.extend(doubts::near_threshold(
        &candidates,
        ranking.leader.filter(|_| over),
    ));
    let drift = drift::of(&measurements);
    doubts.extend(
        drift
            .as_ref()
            .and_then(|drift| drift::doubt_of_drift(drift, record.settings.tie)),
    );
    let effects = effects::of(&measurements);
    let curves = scaling::of(&measurements);
    let answers = answers::of(&measurements, &effects, &curves);
    SweepDecision {
        winner: ranking.leader,
        ties: ties.map(|row| row.layout).collect(),
        survivors: survivors::of(&rows, record),
        frontier: frontier::of(&candidates, &summaries),
        over,
        drift,
        effects,
        curves: curves.into_iter().map(|one| one.curve).collect(),
        answers,
        doubts,
        rows,
    }
}

/// Indices of the layouts that the next block measures. Called between blocks.
pub(crate) fn next_layouts(record: &SweepRecord, decision: &SweepDecision) -> Vec<usize> {
    if decision.over {
        return Vec::new();
    }
    let is_wanted = |row: &&LayoutResult| match row.outcome {
        LayoutOutcome::Failed => false,
        LayoutOutcome::Missed | LayoutOutcome::Dropped => record.settings.full,
        LayoutOutcome::Winner
        | LayoutOutcome::Tie
        | LayoutOutcome::Behind
        | LayoutOutcome::Open => true,
    };
    let mut wanted: Vec<usize> = decision
        .rows
        .iter()
        .filter(is_wanted)
        .map(|row| row.layout)
        .collect();
    wanted.sort_unstable();
    wanted
}

/// True if a layout is to be measured in the blocks to come.
fn is_open(candidates: &Candidates, ranking: &Ranking, layout: usize) -> bool {
    match &candidates.eligibility[layout] {
        Eligibility::Failed(_) => false,
        Eligibility::Missed(_) => candidates.measurements.record.settings.full,
        Eligibility::Eligible => {
            candidates.measurements.record.settings.full
                || ranking.places[layout].0 != LayoutOutcome::Dropped
        }
    }
}

fn row(
    candidates: &Candidates,
    ranking: &Ranking,
    summaries: &Summaries,
    layout: usize,
    over: bool,
) -> LayoutResult {
    let record = candidates.measurements.record;
    let place = record.layouts.get(layout);
    let sizes = record.settings.sizes();
    let figures = summaries.figures(layout);
    let cost = candidates.costs[layout];
    let (outcome, why) = outcome(candidates, ranking, layout, over);
    let objective = &record.settings.objective;
    let rate = objective
        .figure()
        .filter(|figure| !figure.metric.is_latency());
    let rate = rate.and_then(|figure| Some(figures.get(figure)?.mean));
    let measured = objective
        .figure()
        .and_then(|figure| figures.get(figure).copied());
    let value = match objective {
        Objective::Figure(_) => measured,
        Objective::PerDollar(_) => {
            measured
                .zip(cost.filter(|cost| *cost > 0.0))
                .map(|(value, cost)| Value {
                    mean: value.mean / cost,
                    low: value.low.map(|low| low / cost),
                    high: value.high.map(|high| high / cost),
                })
        }
        Objective::Cost => cost.map(Value::plain),
    };
    LayoutResult {
        layout,
        blocks: candidates.measurements.measured(layout),
        value,
        of_winner: ranking.shares[layout],
        outcome,
        why,
        cost: cost.map(|per_month| Cost {
            per_month,
            rate_per_dollar: rate
                .filter(|_| per_month > 0.0)
                .map(|rate| rate / per_month),
        }),
        survives: place.map_or(0, |layout| layout.survives()),
        capacity: place
            .map(|layout| layout.capacity(&sizes))
            .unwrap_or_default(),
        figures,
    }
}

/// Outcome of a layout, and the reason. Before the end only certain outcomes are decided.
fn outcome(
    candidates: &Candidates,
    ranking: &Ranking,
    layout: usize,
    over: bool,
) -> (LayoutOutcome, String) {
    let (place, why) = match &candidates.eligibility[layout] {
        Eligibility::Failed(why) => return (LayoutOutcome::Failed, why.clone()),
        Eligibility::Missed(why) => return (LayoutOutcome::Missed, why.clone()),
        Eligibility::Eligible => ranking.places[layout].clone(),
    };
    if over {
        // It was not measured, and will not be.
        let place = if place == LayoutOutcome::Open {
            LayoutOutcome::Failed
        } else {
            place
        };
        let is_taken = matches!(place, LayoutOutcome::Winner | LayoutOutcome::Tie);
        let doubt = candidates.checks.doubt(layout).filter(|_| is_taken);
        let why = doubt.map_or(why.clone(), |doubt| format!("{why}; {doubt}"));
        return (place, why);
    }
    if let Some(failure) = candidates.measurements.failed_last(layout) {
        return (
            LayoutOutcome::Open,
            format!("failed once and is tried again: {failure}"),
        );
    }
    match place {
        LayoutOutcome::Dropped => (place, why),
        _ => (LayoutOutcome::Open, why),
    }
}

/// Sorts the rows, the best first: the winner, eligible layouts, those that were dropped or miss a requirement, those
/// that failed; within these by the share of the leader's objective or, without one, by the value.
fn sort(rows: &mut [LayoutResult], ranking: &Ranking, less_is_better: bool) {
    let leader = rows.iter().find(|row| Some(row.layout) == ranking.leader);
    let best = leader.and_then(|row| row.value).map(|value| value.mean);
    let merit = |row: &LayoutResult| {
        let plain = || Some(row.value?.mean / best.unwrap_or(1.0));
        let share = row.of_winner.map(|value| value.mean).or_else(plain);
        match (share, less_is_better) {
            (Some(share), false) => -share,
            (Some(share), true) => share,
            (None, _) => f64::INFINITY,
        }
    };
    let class = |row: &LayoutResult| match row.outcome {
        _ if Some(row.layout) == ranking.leader => 0,
        LayoutOutcome::Winner => 0,
        LayoutOutcome::Tie => 1,
        LayoutOutcome::Open | LayoutOutcome::Behind | LayoutOutcome::Dropped => 2,
        LayoutOutcome::Missed => 3,
        LayoutOutcome::Failed => 4,
    };
    rows.sort_by(|a, b| class(a).cmp(&class(b)).then(merit(a).total_cmp(&merit(b))));
}
