//! Ranking of layouts by cost. Prices are known; measurements show that a layout can be built and meets the
//! requirements.

use super::candidates::{Candidates, Ranking};
use super::clauses::blocks;
use super::requirements::RequirementResult;
use crate::decision::LayoutOutcome;
use crate::record::Value;
use ui::format::number;

/// Number of blocks in which a layout must meet the requirements to count as meeting them.
const MIN_BLOCKS_MET: usize = 2;

/// Ranks the eligible layouts: the cheapest that meets the requirements is the best, and among equal costs the
/// fastest.
pub(super) fn rank(candidates: &Candidates) -> Ranking {
    let measurements = candidates.measurements;
    let known: Vec<(usize, f64)> = candidates
        .contenders()
        .filter_map(|layout| Some((layout, candidates.costs[layout]?)))
        .collect();
    let proven = |layout: usize| {
        let measured = measurements.measured(layout);
        let enough = measured >= MIN_BLOCKS_MET || (candidates.last && measured > 0);
        enough && (candidates.checks.check(layout) == RequirementResult::Met || candidates.last)
    };
    let cheapest = |of: &dyn Fn(usize) -> bool| {
        let costs = known.iter().filter(|(layout, _)| of(*layout));
        costs.map(|(_, cost)| *cost).min_by(f64::total_cmp)
    };
    let paid = cheapest(&proven);
    // Until a layout is proven to meet the requirements, the cheapest measured one leads.
    let least = paid.or_else(|| cheapest(&|layout| measurements.measured(layout) > 0));
    let equal = |layout: usize| candidates.costs[layout] == least;
    let counts = |layout: &usize| match paid {
        Some(_) => equal(*layout) && proven(*layout),
        None => equal(*layout) && measurements.measured(*layout) > 0,
    };
    let speed = |layout: &usize| speed(candidates, *layout);
    let mut best: Vec<usize> = known
        .iter()
        .map(|(layout, _)| *layout)
        .filter(counts)
        .collect();
    best.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let leader = best.first().copied();
    let places = (0..candidates.eligibility.len()).map(|layout| {
        let measured = measurements.measured(layout);
        let Some(cost) = candidates.costs[layout] else {
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
    // Settled once no layout of the same or a lower cost is undecided.
    let waits = |(layout, cost): &(usize, f64)| {
        least.is_none_or(|least| *cost <= least) && !proven(*layout)
    };
    Ranking {
        leader,
        places: places.collect(),
        shares: (0..candidates.eligibility.len())
            .map(|layout| {
                let of = candidates.costs[layout].filter(|_| Some(layout) != leader)?;
                Some(Value::plain(of / least.filter(|least| *least > 0.0)?))
            })
            .collect(),
        settled: paid.is_some() && !known.iter().any(waits),
    }
}

/// Speed of a layout, to rank layouts of the same cost.
fn speed(candidates: &Candidates, layout: usize) -> f64 {
    let figure = candidates.measurements.speed();
    let blocks = candidates.measurements.blocks(layout, &figure);
    let mean = blocks.values().map(|value| value.mean).sum::<f64>() / blocks.len().max(1) as f64;
    match (blocks.is_empty(), figure.metric.is_latency()) {
        (true, _) => f64::NEG_INFINITY,
        (false, true) => -mean,
        (false, false) => mean,
    }
}
