//! The layouts in the order of a measured figure.

use std::collections::BTreeMap;

use study::compare::RatioInterval;
use study::race::Rule;

use super::bar::Bar;
use super::clauses::{behind, blocks, own_ratio, range};
use super::contest::{Contest, Score, Scores};
use super::field::{Field, Ranking};
use super::observed::is_positive;
use crate::decided::LayoutOutcome;
use crate::figure::Figure;
use crate::objective::Objective;
use crate::record::Value;

/// Ranks those that contend by the objective's figure, each dollar's where it says so.
pub(super) fn rank(field: &Field) -> Ranking {
    let record = field.observed.record;
    let figure = field.observed.speed();
    let scores = scores(field, &figure);
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
    let failed: Vec<usize> = field
        .contenders()
        .filter(|l| field.observed.has_failed(*l))
        .collect();
    let contest = Contest::of(
        &scores,
        begun.unwrap_or(0).min(settings.blocks),
        &failed,
        &rule,
    );
    let leader = contest.leader;
    let of_layout = |layout| Placing {
        field,
        figure: &figure,
        contest: &contest,
        scores: &scores,
        layout,
    };
    let layouts = 0..record.layouts.len();
    // A leader of whom it is open whether it meets the requirements is no winner yet.
    let meets = leader.is_some_and(|leader| field.bars.judge(leader) == Bar::Met);
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

/// The scores of those that contend. Who has none yet is among them: a block is not done before it
/// was measured.
fn scores(field: &Field, figure: &Figure) -> Scores {
    let objective = &field.observed.record.settings.objective;
    let mut scores = Scores::new();
    for layout in field.contenders() {
        let cost = match objective {
            Objective::PerDollar(_) => field.costs[layout].filter(|cost| is_positive(*cost)),
            Objective::Figure(_) | Objective::Cost => Some(1.0),
        };
        // Without a price there is nothing to rank by.
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
        let values = field.observed.blocks(layout, figure).into_iter();
        let of_layout: BTreeMap<usize, Score> =
            values.map(|(block, value)| (block, score(value))).collect();
        scores.insert(layout, of_layout);
    }
    scores
}

/// The ratio in the objective's own sense: of a latency less is better.
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

/// One layout in the contest.
struct Placing<'a> {
    field: &'a Field<'a>,
    figure: &'a Figure,
    contest: &'a Contest,
    scores: &'a Scores,
    layout: usize,
}

impl Placing<'_> {
    /// Its outcome as if nothing more were measured, and the reason.
    fn place(&self) -> (LayoutOutcome, String) {
        let objective = &self.field.observed.record.settings.objective;
        let measured = self.scores.get(&self.layout).map_or(0, BTreeMap::len);
        if measured == 0 {
            let why = if self.field.observed.measured(self.layout) == 0 {
                "not measured yet".to_owned()
            } else if self.scores.contains_key(&self.layout) {
                format!("its runs have no figure {}", self.figure)
            } else {
                "has no price".to_owned()
            };
            return (LayoutOutcome::Open, why);
        }
        if let Some((ratio, after)) = self.contest.dropped.get(&self.layout) {
            // As it was when it was dropped: what came later tells of the others alone.
            let how = self.how(own(objective, self.figure, *ratio));
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
        let why = format!("{} over {}", self.how(ratio), blocks(measured));
        (LayoutOutcome::Behind, why)
    }

    fn how(&self, ratio: RatioInterval) -> String {
        match self.field.observed.record.settings.objective {
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
