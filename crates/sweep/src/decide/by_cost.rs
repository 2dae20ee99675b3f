//! The layouts in the order of what they cost. Prices are known; what must be measured is whether a
//! layout can be built, and whether it meets the requirements.

use super::bar::Bar;
use super::clauses::blocks;
use super::field::{Field, Ranking};
use crate::decided::LayoutOutcome;
use crate::record::Value;
use ui::format::number;

/// A layout that met the requirements in so many blocks is taken to meet them.
const ENOUGH_BLOCKS: usize = 2;

/// Ranks those that contend: the cheapest that meets the requirements is the best, and of those
/// that cost the same the fastest.
pub(super) fn rank(field: &Field) -> Ranking {
    let observed = field.observed;
    let known: Vec<(usize, f64)> = field
        .contenders()
        .filter_map(|layout| Some((layout, field.costs[layout]?)))
        .collect();
    let proven = |layout: usize| {
        let measured = observed.measured(layout);
        let enough = measured >= ENOUGH_BLOCKS || (field.last && measured > 0);
        enough && (field.bars.judge(layout) == Bar::Met || field.last)
    };
    let cheapest = |of: &dyn Fn(usize) -> bool| {
        let costs = known.iter().filter(|(layout, _)| of(*layout));
        costs.map(|(_, cost)| *cost).min_by(f64::total_cmp)
    };
    let paid = cheapest(&proven);
    // While nothing is proven the cheapest that was measured leads.
    let least = paid.or_else(|| cheapest(&|layout| observed.measured(layout) > 0));
    let equal = |layout: usize| field.costs[layout] == least;
    let counts = |layout: &usize| match paid {
        Some(_) => equal(*layout) && proven(*layout),
        None => equal(*layout) && observed.measured(*layout) > 0,
    };
    let speed = |layout: &usize| speed(field, *layout);
    let mut best: Vec<usize> = known
        .iter()
        .map(|(layout, _)| *layout)
        .filter(counts)
        .collect();
    best.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let leader = best.first().copied();
    let places = (0..field.fates.len()).map(|layout| {
        let measured = observed.measured(layout);
        let Some(cost) = field.costs[layout] else {
            return (LayoutOutcome::Open, "has no price".to_owned());
        };
        let Some(least) = least else {
            return (LayoutOutcome::Open, "not measured yet".to_owned());
        };
        if leader == Some(layout) {
            (
                LayoutOutcome::Winner,
                format!("the cheapest over {}", blocks(measured)),
            )
        } else if best.contains(&layout) {
            (
                LayoutOutcome::Tie,
                "costs the same as the best and is slower".to_owned(),
            )
        } else if cost > least && paid.is_some() {
            let more = number(cost - least);
            (
                LayoutOutcome::Dropped,
                format!("costs {more} a month more than the best"),
            )
        } else if measured == 0 {
            (LayoutOutcome::Open, "not measured yet".to_owned())
        } else {
            (
                LayoutOutcome::Behind,
                format!("measured in {}", blocks(measured)),
            )
        }
    });
    // Settled once no one who is cheaper, or as cheap, is still to be proven.
    let waits = |(layout, cost): &(usize, f64)| {
        least.is_none_or(|least| *cost <= least) && !proven(*layout)
    };
    Ranking {
        leader,
        places: places.collect(),
        shares: (0..field.fates.len())
            .map(|layout| {
                let of = field.costs[layout].filter(|_| Some(layout) != leader)?;
                Some(Value::plain(of / least.filter(|least| *least > 0.0)?))
            })
            .collect(),
        settled: paid.is_some() && !known.iter().any(waits),
    }
}

/// Speed of a layout, among those that cost the same.
fn speed(field: &Field, layout: usize) -> f64 {
    let figure = field.observed.speed();
    let blocks = field.observed.blocks(layout, &figure);
    let mean = blocks.values().map(|value| value.mean).sum::<f64>() / blocks.len().max(1) as f64;
    match (blocks.is_empty(), figure.metric.is_latency()) {
        (true, _) => f64::NEG_INFINITY,
        (false, true) => -mean,
        (false, false) => mean,
    }
}
