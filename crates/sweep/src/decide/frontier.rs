//! The layouts that nobody beats in cost, speed and redundancy at once.

use super::field::Field;
use super::summary::Summaries;

/// Merits that are weighed against each other.
#[derive(Clone, Copy)]
struct Merits {
    layout: usize,
    cost: f64,
    /// Of which more is better.
    speed: f64,
    survives: usize,
}

/// The frontier of those that contend and were measured, the fastest first (Pareto 1906). Empty
/// without prices. Speed is the mean over the blocks: of two that are as good as far as can be told
/// and cost the same, the one that was faster stands for both.
pub(super) fn of(field: &Field, summaries: &Summaries) -> Vec<usize> {
    let figure = field.observed.speed();
    let merits = field.contenders().filter_map(|layout| {
        let value = summaries.figure(layout, &figure)?.mean;
        Some(Merits {
            layout,
            cost: field.costs[layout]?,
            speed: if figure.metric.is_latency() {
                -value
            } else {
                value
            },
            survives: field.observed.record.layouts[layout].survives(),
        })
    });
    let merits: Vec<Merits> = merits.collect();
    let mut frontier: Vec<Merits> = merits
        .iter()
        .filter(|one| !merits.iter().any(|other| beats(other, one)))
        .copied()
        .collect();
    frontier.sort_by(|a, b| b.speed.total_cmp(&a.speed));
    frontier.iter().map(|merits| merits.layout).collect()
}

/// True if `a` is as good as `b` in all and better in one.
fn beats(a: &Merits, b: &Merits) -> bool {
    let no_worse = a.cost <= b.cost && a.speed >= b.speed && a.survives >= b.survives;
    let better = a.cost < b.cost || a.speed > b.speed || a.survives > b.survives;
    no_worse && better
}
