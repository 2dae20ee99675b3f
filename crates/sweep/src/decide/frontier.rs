//! The Pareto frontier of cost, speed and redundancy.

use super::candidates::Candidates;
use super::summary::Summaries;

/// The properties of a layout that are compared.
#[derive(Clone, Copy)]
struct ComparedFigures {
    layout: usize,
    cost: f64,
    /// Speed, of which higher is better.
    speed: f64,
    survives: usize,
}

/// The frontier of the eligible and measured layouts, the fastest first (Pareto 1906). Empty without prices. Speed is
/// the mean over the blocks; of two layouts that are not distinguishable and cost the same, only the faster one is
/// included.
pub(super) fn of(candidates: &Candidates, summaries: &Summaries) -> Vec<usize> {
    let figure = candidates.measurements.speed();
    let merits = candidates.contenders().filter_map(|layout| {
        let value = summaries.figure(layout, &figure)?.mean;
        Some(ComparedFigures {
            layout,
            cost: candidates.costs[layout]?,
            speed: if figure.metric.is_latency() {
                -value
            } else {
                value
            },
            survives: candidates.measurements.record.layouts[layout].survives(),
        })
    });
    let merits: Vec<ComparedFigures> = merits.collect();
    let mut frontier: Vec<ComparedFigures> = merits
        .iter()
        .filter(|one| !merits.iter().any(|other| beats(other, one)))
        .copied()
        .collect();
    frontier.sort_by(|a, b| b.speed.total_cmp(&a.speed));
    frontier.iter().map(|merits| merits.layout).collect()
}

/// True if `a` is at least as good as `b` in all properties and better in one.
fn beats(a: &ComparedFigures, b: &ComparedFigures) -> bool {
    let no_worse = a.cost <= b.cost && a.speed >= b.speed && a.survives >= b.survives;
    let better = a.cost < b.cost || a.speed > b.speed || a.survives > b.survives;
    no_worse && better
}
