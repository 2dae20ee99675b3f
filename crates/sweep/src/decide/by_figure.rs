//! Ranking of layouts by a measured figure.

use std::collections::BTreeMap;

use study::compare::RatioInterval;
use study::race::Rule;

use super::candidates::{Candidates, Ranking};
use super::clauses::{behind, blocks, own_ratio, range};
use super::measurements::is_positive;
use super::requirements::RequirementResult;
use super::sweep_race::{Score, Scores, SweepRace};
use crate::decision::LayoutOutcome;
use crate::figure::Figure;
use crate::objective::Objective;
use crate::record::Value;

/// Ranks the eligible layouts by the objective's figure, or by that figure for each dollar.
pub(super) fn rank(candidates: &Candidates) -> Ranking {
    let record = candidates.measurements.record;
    let figure = candidates.measurements.speed();
    let scores = scores(candidates, &figure);
    let settings = &record.settings;
    let begun = record
        .cells
        .iter()
        .map(|cell| cell.block.saturating_add(1))
        .max();
    let rule = Rule {
        blocks: settings.blocks,
        tie: settings.tie,
        full: settings.full,
        ..Rule::default()
    };
    let failed: Vec<usize> = candidates
        .contenders()
        .filter(|l| candidates.measurements.has_failed(*l))
        .collect();
    let contest = SweepRace::of(
        &scores,
        begun.unwrap_or(0).min(settings.blocks),
        &failed,
        &rule,
    );
    let leader = contest.leader;
    let of_layout = |layout| LayoutPlacement {
        candidates,
        figure: &figure,
        contest: &contest,
        scores: &scores,
        layout,
    };
    let layouts = 0..record.layouts.len();
    // A leader whose requirements are undecided is not the winner yet.
    let meets =
        leader.is_some_and(|leader| candidates.checks.check(leader) == RequirementResult::Met);
    Ranking {
        leader,
        places: layouts
            .clone()
            .map(|layout| of_layout(layout).place())
            .collect(),
        shares: layouts
            .map(|layout| {
                let ratio = contest.ratios.get(&layout)?;
                Some(share(own(&settings.objective, &figure, *ratio)))
            })
            .collect(),
        settled: contest.over && meets,
    }
}

/// Scores of the eligible layouts. Layouts without a score are included, since a block is complete only when they are
/// measured.
fn scores(candidates: &Candidates, figure: &Figure) -> Scores {
    let objective = &candidates.measurements.record.settings.objective;
    let mut scores = Scores::new();
    for layout in candidates.contenders() {
        let cost = match objective {
            Objective::PerDollar(_) => candidates.costs[layout].filter(|cost| is_positive(*cost)),
            Objective::Figure(_) | Objective::Cost => Some(1.0),
        };
        // Without a price there is no score.
        let Some(cost) = cost else { continue };
        let score = |value: Value| {
            let more = if figure.metric.is_latency() {
                1.0 / value.mean
            } else {
                value.mean
            };
            let half = value
                .low
                .zip(value.high)
                .map(|(low, high)| 0.5 * (high - low));
            Score {
                value: more / cost,
                half_width: half.map(|half| half / value.mean),
            }
        };
        let values = candidates.measurements.blocks(layout, figure).into_iter();
        let of_layout: BTreeMap<usize, Score> =
            values.map(|(block, value)| (block, score(value))).collect();
        scores.insert(layout, of_layout);
    }
    scores
}

/// The ratio of the objective's own values: of a latency, lower is better.
fn own(objective: &Objective, figure: &Figure, score: RatioInterval) -> RatioInterval {
    match objective {
        Objective::Figure(_) => own_ratio(figure, score),
        Objective::PerDollar(_) | Objective::Cost => score,
    }
}

fn share(ratio: RatioInterval) -> Value {
    Value {
        mean: ratio.ratio,
        low: Some(ratio.low),
        high: Some(ratio.high),
    }
}

/// A layout to be placed in the race.
struct LayoutPlacement<'a> {
    candidates: &'a Candidates<'a>,
    figure: &'a Figure,
    contest: &'a SweepRace,
    scores: &'a Scores,
    layout: usize,
}

impl LayoutPlacement<'_> {
    /// The outcome if nothing more were measured, and the reason.
    fn place(&self) -> (LayoutOutcome, String) {
        let objective = &self.candidates.measurements.record.settings.objective;
        let measured = self.scores.get(&self.layout).map_or(0, BTreeMap::len);
        if measured == 0 {
            let why = if self.candidates.measurements.measured(self.layout) == 0 {
                "not measured yet".to_owned()
            } else if self.scores.contains_key(&self.layout) {
                format!("its runs have no figure {}", self.figure)
            } else {
                "has no price".to_owned()
            };
            return (LayoutOutcome::Open, why);
        }
        if let Some((ratio, after)) = self.contest.dropped.get(&self.layout) {
            // The ratio when it was dropped; later blocks have only the others.
            let how = self.comparison(own(objective, self.figure, *ratio));
            return (
                LayoutOutcome::Dropped,
                format!("{how} after {}", blocks(*after)),
            );
        }
        if self.contest.leader == Some(self.layout) {
            return (
                LayoutOutcome::Winner,
                format!("the best over {}", blocks(measured)),
            );
        }
        let Some(ratio) = self.contest.ratios.get(&self.layout) else {
            return (
                LayoutOutcome::Behind,
                "was not measured in the same blocks as the best".to_owned(),
            );
        };
        let ratio = own(objective, self.figure, *ratio);
        if self.contest.ties.contains(&self.layout) {
            let of = range(ratio.low, ratio.high);
            let why = format!(
                "as good as the best as far as can be determined: {of} of its \
                               {objective}"
            );
            return (LayoutOutcome::Tie, why);
        }
        let why = format!("{} over {}", self.comparison(ratio), blocks(measured));
        (LayoutOutcome::Behind, why)
    }

    fn comparison(&self, ratio: RatioInterval) -> String {
        match self.candidates.measurements.record.settings.objective {
            Objective::PerDollar(_) => {
                format!(
                    "{} less for each dollar than the best",
                    range(1.0 - ratio.high, 1.0 - ratio.low)
                )
            }
            Objective::Figure(_) | Objective::Cost => behind(self.figure, ratio),
        }
    }
}
