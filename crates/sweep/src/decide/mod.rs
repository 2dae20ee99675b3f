//! Decisions from a sweep's record: the best layout, those that are out, and whether more need be measured.

mod answers;
mod bar;
mod by_cost;
mod by_figure;
pub(super) mod clauses;
mod contest;
mod doubts;
mod drift;
mod effects;
mod field;
mod frontier;
mod members;
mod observed;
#[cfg(test)]
mod properties;
mod scaling;
mod summary;
pub(crate) mod survivors;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use field::{Fate, Field, Ranking};
use observed::Observed;
use summary::Summaries;

use super::decided::{Decided, LayoutOutcome, Row};
use super::objective::Objective;
use super::price::Cost;
use super::record::{SweepRecord, Value};

fn rank(field: &Field) -> Ranking {
    match field.observed.record.settings.objective {
        Objective::Cost => by_cost::rank(field),
        Objective::Figure(_) | Objective::PerDollar(_) => by_figure::rank(field),
    }
}

/// Concludes a record. It may be asked after every cell; what is to be measured next is decided
/// after whole blocks, by [`wanted`].
pub(crate) fn decide(record: &SweepRecord) -> Decided {
    let observed = Observed::of(record);
    let mut field = Field::of(&observed, false);
    let mut ranking = rank(&field);
    let exhausted = |field: &Field, ranking: &Ranking| {
        let mut open = (0..field.fates.len()).filter(|layout| is_open(field, ranking, *layout));
        observed.has_run_out() || open.all(|layout| observed.was_tried_last(layout))
    };
    let mut over = ranking.settled && !record.settings.full;
    if !over && exhausted(&field, &ranking) {
        field = Field::of(&observed, true);
        ranking = rank(&field);
        over = true;
    }
    let summaries = Summaries::of(&observed);
    let mut rows: Vec<Row> = (0..record.layouts.len())
        .map(|layout| row(&field, &ranking, &summaries, layout, over))
        .collect();
    sort(
        &mut rows,
        &ranking,
        record.settings.objective.less_is_better(),
    );
    let ties = rows.iter().filter(|row| row.standing == LayoutOutcome::Tie);
    let mut doubts: Vec<String> = survivors::doubt(record, &rows, ranking.leader)
        .into_iter()
        .collect();
    doubts.extend(bar::unmeasured(&observed));
    doubts.extend(doubts::of(&observed, &field));
    doubts.extend(doubts::near_bar(&field, ranking.leader.filter(|_| over)));
    let drift = drift::of(&observed);
    doubts.extend(
        drift
            .as_ref()
            .and_then(|drift| drift::doubt(drift, record.settings.tie)),
    );
    let effects = effects::of(&observed);
    let curves = scaling::of(&observed);
    let answers = answers::of(&observed, &effects, &curves);
    Decided {
        winner: ranking.leader,
        ties: ties.map(|row| row.layout).collect(),
        survivors: survivors::of(&rows, record),
        frontier: frontier::of(&field, &summaries),
        over,
        drift,
        effects,
        curves: curves.into_iter().map(|one| one.curve).collect(),
        answers,
        doubts,
        rows,
    }
}

/// The layouts that the next block measures, by their place in the record. To be asked between
/// blocks.
pub(crate) fn wanted(record: &SweepRecord, decided: &Decided) -> Vec<usize> {
    if decided.over {
        return Vec::new();
    }
    let is_wanted = |row: &&Row| match row.standing {
        LayoutOutcome::Failed => false,
        LayoutOutcome::Missed | LayoutOutcome::Dropped => record.settings.full,
        LayoutOutcome::Winner
        | LayoutOutcome::Tie
        | LayoutOutcome::Behind
        | LayoutOutcome::Open => true,
    };
    let mut wanted: Vec<usize> = decided
        .rows
        .iter()
        .filter(is_wanted)
        .map(|row| row.layout)
        .collect();
    wanted.sort_unstable();
    wanted
}

/// True if a layout is to be measured in the blocks to come.
fn is_open(field: &Field, ranking: &Ranking, layout: usize) -> bool {
    match &field.fates[layout] {
        Fate::Failed(_) => false,
        Fate::Missed(_) => field.observed.record.settings.full,
        Fate::In => {
            field.observed.record.settings.full
                || ranking.places[layout].0 != LayoutOutcome::Dropped
        }
    }
}

fn row(field: &Field, ranking: &Ranking, summaries: &Summaries, layout: usize, over: bool) -> Row {
    let record = field.observed.record;
    let place = record.layouts.get(layout);
    let sizes = record.settings.sizes();
    let figures = summaries.figures(layout);
    let cost = field.costs[layout];
    let (standing, why) = standing(field, ranking, layout, over);
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
    Row {
        layout,
        blocks: field.observed.measured(layout),
        value,
        of_winner: ranking.shares[layout],
        standing,
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

/// Outcome of a layout, and the reason. Before the end only what is beyond doubt is decided.
fn standing(
    field: &Field,
    ranking: &Ranking,
    layout: usize,
    over: bool,
) -> (LayoutOutcome, String) {
    let (place, why) = match &field.fates[layout] {
        Fate::Failed(why) => return (LayoutOutcome::Failed, why.clone()),
        Fate::Missed(why) => return (LayoutOutcome::Missed, why.clone()),
        Fate::In => ranking.places[layout].clone(),
    };
    if over {
        // Nothing was learned of it, and nothing more will be.
        let place = if place == LayoutOutcome::Open {
            LayoutOutcome::Failed
        } else {
            place
        };
        let is_taken = matches!(place, LayoutOutcome::Winner | LayoutOutcome::Tie);
        let doubt = field.bars.doubt(layout).filter(|_| is_taken);
        let why = doubt.map_or(why.clone(), |doubt| format!("{why}; {doubt}"));
        return (place, why);
    }
    if let Some(failure) = field.observed.failed_last(layout) {
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

/// Sorts the best first: the winner, who contends, who was dropped or misses a requirement, who
/// failed; within these by the share of the leader's objective or, without one, by its value.
fn sort(rows: &mut [Row], ranking: &Ranking, less_is_better: bool) {
    let leader = rows.iter().find(|row| Some(row.layout) == ranking.leader);
    let best = leader.and_then(|row| row.value).map(|value| value.mean);
    let merit = |row: &Row| {
        let plain = || Some(row.value?.mean / best.unwrap_or(1.0));
        let share = row.of_winner.map(|value| value.mean).or_else(plain);
        match (share, less_is_better) {
            (Some(share), false) => -share,
            (Some(share), true) => share,
            (None, _) => f64::INFINITY,
        }
    };
    let class = |row: &Row| match row.standing {
        _ if Some(row.layout) == ranking.leader => 0,
        LayoutOutcome::Winner => 0,
        LayoutOutcome::Tie => 1,
        LayoutOutcome::Open | LayoutOutcome::Behind | LayoutOutcome::Dropped => 2,
        LayoutOutcome::Missed => 3,
        LayoutOutcome::Failed => 4,
    };
    rows.sort_by(|a, b| class(a).cmp(&class(b)).then(merit(a).total_cmp(&merit(b))));
}
