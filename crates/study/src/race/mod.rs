//! Race in blocks: finds layouts that are significantly worse and need not be measured again.
//!
//! Measuring every layout five times takes days; most are so far behind that once is enough. A race (Maron and Moore
//! 1997, Hoeffding races; Birattari, Stützle, Paquete and Varrentrapp 2002, F-Race) measures all entrants once in
//! random order, which is a block, drops those that are significantly behind, and continues with the rest. Hoeffding's
//! bound assumes nothing about the noise and drops no entrant within five blocks; F-Race ranks within blocks, but the
//! ranks of five blocks are too coarse for dozens of entrants. The method here is our own:
//!
//! - All computations use logarithms, where a layout's effect, the drift of the day and the noise of a build are
//!   shares and additive. The common effect of a block is removed by its median.
//! - After the first block it is unknown how much the same layout varies between builds. A noise is assumed in its
//!   place ([`Rule::build_noise`]), to which the measurements' own intervals are added. The comparison is with the
//!   second best: one lucky cell drops no entrant.
//! - From the second block on the noise is estimated: the residuals of each entrant around its own mean, pooled over
//!   the entrants. An entrant with more scatter than the others is judged by a mixture of the pooled noise and its own
//!   (moderated t, Smyth 2004). An entrant with an exceptional scatter, such as one with a stalled cell, is excluded
//!   from the pooled noise and judged by its own alone; from three blocks on a single outlying cell is left out.
//! - An entrant is dropped if two conditions hold. It is behind the leader by more than the [`Rule::tie`], and its 95
//!   % interval (Student's t) excludes that it is not behind. And the probability that the remaining blocks would
//!   bring it ahead of the leader is below 10 in 100, shared among all comparisons and interim analyses of the race
//!   (Bonferroni). With `r` of `n` blocks remaining, a lead of `d` standard errors becomes a lead of `d` with a
//!   standard deviation of `sqrt(r / n)`: stochastic curtailment (Lan, Simon and Halperin 1982). The race thus loses
//!   only what the full factorial would have changed.
//! - Only blocks in which all remaining entrants were measured decide. The order within a block is random, so that the
//!   pairs of an unfinished block are unbiased too: they count in the ratios to the leader.
//!
//! The leader is the luckiest of the remaining entrants, so that a plain 95 % interval of a ratio to it covers 65 to
//! 90 times in 100. The ratios of a [`Race`] therefore have intervals that hold whichever remaining entrant leads
//! (Bonferroni; Hsu 1984 on comparisons with the best).
//!
//! Limit: an entrant whose only cell stalled in the first block is dropped with the slow ones, so a doubtful cell
//! should be measured again before the block is complete. If dozens of layouts are equally good, all of them are
//! measured to the end, or until they are shown to be equal.
//!
//! The race is replayed from the measurements each time it is evaluated, block by block. It therefore has the same
//! result after a kill, and measurements of dropped entrants do not change which entrants are dropped when. How often
//! it agrees with measuring everything is simulated in the tests.

mod fit;
mod measurement;

use std::collections::BTreeMap;

use crate::compare::RatioInterval;
use fit::{Cell, Cells, Difference, Fit, Noise};
pub use measurement::Measurement;

/// Probability, over all comparisons of a race together, of dropping an entrant that would have come out ahead. The
/// sum over all comparisons is far above the actual probability: simulated races without stalls drop the best in 1 to
/// 3 of 100.
const ERROR_PROBABILITY: f64 = 0.1;
/// Degrees of freedom of an assumed noise: practically normal.
const KNOWN_NOISE_DEGREES: f64 = 1e6;

/// Rule of the race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Maximum number of blocks in which an entrant is measured.
    pub blocks: usize,
    /// Entrants that differ from the best by at most this share are equally good: 0.02 is 2 %.
    pub tie: f64,
    /// True if every entrant is measured in every block.
    pub full: bool,
    /// The assumed standard deviation between builds of the same layout, as a share, until it is estimated. If builds
    /// vary more, the first block may drop the best.
    pub build_noise: f64,
}

impl Default for Rule {
    /// Five blocks, a tie of 2 %, dropping, and builds that differ by 5 %.
    fn default() -> Self {
        Self {
            blocks: 5,
            tie: 0.02,
            full: false,
            build_noise: 0.05,
        }
    }
}

/// Status of an entrant: in the race, or out of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EntrantStatus {
    /// The entrant is measured in the next block, if there is one.
    In,
    /// The entrant is significantly worse.
    Dropped {
        /// Number of blocks in which it was measured.
        blocks: usize,
        /// Ratio to the best at that time, with its 95 % interval.
        ratio: RatioInterval,
    },
    /// A measurement failed; the entrant is not measured again.
    Failed {
        /// Block of the failed measurement, from 0.
        block: usize,
    },
}

/// Reason for the end of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All blocks are measured.
    Blocks,
    /// All entrants but one are dropped or failed.
    OneLeft,
    /// All remaining entrants are shown to be within the tie of the leader.
    Equal,
    /// Every entrant failed, or there was none.
    NoneLeft,
}

/// State of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// Result of each entrant.
    pub statuses: Vec<EntrantStatus>,
    /// Number of blocks in which all remaining entrants were measured.
    pub blocks: usize,
    /// The best so far; the winner when the race is over. `None` if nothing was measured.
    pub leader: Option<usize>,
    /// Reason for its end; `None` while it continues.
    pub end: Option<End>,
    /// The ratio of each entrant to the leader with its 95 % interval, from the blocks in which both were measured;
    /// `None` for the leader itself and without a common block.
    pub ratios: Vec<Option<RatioInterval>>,
    /// Remaining entrants that are as good as the leader, the best first: the interval reaches 1, or the ratio is
    /// within the tie.
    pub ties: Vec<usize>,
    /// The standard deviation of one cell as a share, including build and measurement; `None` before it is estimated
    /// from two blocks.
    pub noise: Option<f64>,
}

impl Race {
    /// The remaining entrants, in order of their index.
    pub fn entrants(&self) -> impl Iterator<Item = usize> + '_ {
        let still = |(entrant, status): (usize, &EntrantStatus)| {
            matches!(status, EntrantStatus::In).then_some(entrant)
        };
        self.statuses.iter().enumerate().filter_map(still)
    }
}

/// Replays the race of `entrants` from the measurements so far. Measurements of unknown entrants or blocks are
/// ignored. The order of the measurements does not matter.
pub fn replay(entrants: usize, seen: &[Measurement], rule: &Rule) -> Race {
    let mut state = Replay {
        cells: cells(entrants, seen, rule),
        rule: *rule,
        statuses: vec![EntrantStatus::In; entrants],
        noise: None,
        blocks: 0,
    };
    let mut end = state.finished();
    while end.is_none() && state.advance() {
        end = state.finished();
    }
    state.conclude(end)
}

/// The cells of the race. A block after one without any cell can never be complete, so that there are at most as many
/// relevant blocks as measurements.
fn cells(entrants: usize, seen: &[Measurement], rule: &Rule) -> Cells {
    let mut cells: Cells = BTreeMap::new();
    for one in seen {
        if one.entrant >= entrants || one.block >= rule.blocks {
            continue;
        }
        let cell = Cell::of(one);
        let place = cells.entry((one.block, one.entrant)).or_insert(cell);
        if cell != Cell::Failed {
            *place = cell;
        }
    }
    cells
}

/// A race in progress.
struct Replay {
    cells: Cells,
    rule: Rule,
    statuses: Vec<EntrantStatus>,
    /// The noise estimate with the most data.
    noise: Option<Noise>,
    blocks: usize,
}

impl Replay {
    /// The remaining entrants.
    fn left(&self) -> Vec<usize> {
        let still = |entrant: &usize| self.statuses[*entrant] == EntrantStatus::In;
        (0..self.statuses.len()).filter(still).collect()
    }

    /// Processes the next block; false if it is not complete.
    fn advance(&mut self) -> bool {
        let block = self.blocks;
        let left = self.left();
        let measured = |entrant: &usize| self.cells.contains_key(&(block, *entrant));
        if !left.iter().all(measured) {
            return false;
        }
        for entrant in left {
            if self.cells.get(&(block, entrant)) == Some(&Cell::Failed) {
                self.statuses[entrant] = EntrantStatus::Failed { block };
            }
        }
        self.blocks += 1;
        let fit = self.fit();
        self.learn(&fit);
        if !self.rule.full && self.blocks < self.rule.blocks {
            self.drop_behind(&fit);
        }
        true
    }

    fn fit(&self) -> Fit {
        Fit::new(&self.cells, &self.left(), self.blocks)
    }

    /// Keeps the noise estimate with the most degrees of freedom: with few remaining entrants, a new one is less
    /// precise.
    fn learn(&mut self, fit: &Fit) {
        let surer = |noise: &Noise| self.noise.is_none_or(|old| noise.degrees >= old.degrees);
        if let Some(noise) = fit.noise.filter(surer) {
            self.noise = Some(noise);
        }
    }

    /// Drops the entrants that are significantly worse.
    fn drop_behind(&mut self, fit: &Fit) {
        let Some(reference) = self.reference(fit) else {
            return;
        };
        let left = self.left();
        // Each could be compared with the leader after each block but the last.
        let comparisons = (left.len() - 1) as f64 * (self.rule.blocks as f64 - 1.0);
        for other in left {
            if let Some(ratio) =
                self.is_behind(fit, other, reference, ERROR_PROBABILITY / comparisons)
            {
                self.statuses[other] = EntrantStatus::Dropped {
                    blocks: self.blocks,
                    ratio,
                };
            }
        }
    }

    /// Entrant that the others are compared with: the second best in the first block, then the best one without
    /// exceptional scatter.
    fn reference(&self, fit: &Fit) -> Option<usize> {
        if self.blocks == 1 {
            return fit.ranking().nth(1);
        }
        fit.ranking().find(|entrant| !fit.is_wild(*entrant))
    }

    /// The ratio of an entrant to the reference, if it is significantly worse and its probability to overtake is below
    /// `risk`.
    fn is_behind(
        &self,
        fit: &Fit,
        other: usize,
        reference: usize,
        risk: f64,
    ) -> Option<RatioInterval> {
        let behind = self.difference(fit, other, reference, self.blocks)?;
        let lead = -behind.mean;
        let beyond_tie = lead > -(-self.rule.tie).ln_1p();
        let total = self.rule.blocks as f64;
        let to_come = (total - self.blocks as f64) / total;
        // One-sided: only an entrant that is truly ahead can be dropped wrongly.
        let stays = behind.chance(to_come.sqrt()) < 2.0 * risk;
        (beyond_tie && behind.chance(1.0) < 0.05 && stays)
            .then(|| behind.ratio(0.05))
            .flatten()
    }

    /// The difference of two entrants in logarithms, over the first `blocks` blocks in which both
    /// were measured.
    fn difference(&self, fit: &Fit, a: usize, b: usize, blocks: usize) -> Option<Difference> {
        let both: Vec<(f64, f64)> = (0..blocks)
            .filter(|block| !fit.is_stalled(a, *block) && !fit.is_stalled(b, *block))
            .filter_map(|block| {
                let (x, y) = (self.value(a, block)?, self.value(b, block)?);
                Some((x.log - y.log, x.variance + y.variance))
            })
            .collect();
        let count = both.len() as f64;
        let mean = both.iter().map(|pair| pair.0).sum::<f64>() / count;
        let own = both.iter().map(|pair| pair.1).sum::<f64>() / count;
        let (variance, degrees) = self.noise.map_or_else(
            || {
                (
                    2.0 * self.rule.build_noise.powi(2) + own,
                    KNOWN_NOISE_DEGREES,
                )
            },
            |noise| fit.variance_of_difference(a, b, noise),
        );
        mean.is_finite().then_some(Difference {
            mean,
            error: (variance / count).sqrt(),
            degrees,
        })
    }

    fn value(&self, entrant: usize, block: usize) -> Option<fit::Value> {
        self.cells.get(&(block, entrant))?.value()
    }

    /// Reason for the race's end; `None` while it continues.
    fn finished(&self) -> Option<End> {
        let left = self.left();
        if left.is_empty() {
            return Some(End::NoneLeft);
        }
        if self.blocks >= self.rule.blocks {
            return Some(End::Blocks);
        }
        if self.rule.full || self.blocks == 0 {
            return None;
        }
        if left.len() == 1 {
            return Some(End::OneLeft);
        }
        self.all_equal(&left).then_some(End::Equal)
    }

    /// True if all remaining entrants are shown to be within the tie of the leader. After one block nothing is shown:
    /// the noise is unknown.
    fn all_equal(&self, left: &[usize]) -> bool {
        let fit = self.fit();
        let Some(leader) = fit.ranking().next().filter(|_| self.blocks > 1) else {
            return false;
        };
        let others = left.iter().filter(|other| **other != leader);
        let mut ratios = others.map(|other| {
            self.difference(&fit, *other, leader, self.blocks)?
                .ratio(0.05 / left.len() as f64)
        });
        ratios.all(|ratio| ratio.is_some_and(|ratio| ratio.low >= 1.0 - self.rule.tie))
    }

    /// State of the race.
    fn conclude(self, end: Option<End>) -> Race {
        let fit = if self.blocks == 0 {
            // Nothing is decided yet; only the best of an unfinished block is known.
            let measured = |entrant: &usize| self.value(*entrant, 0).is_some();
            let measured: Vec<usize> = self.left().into_iter().filter(measured).collect();
            Fit::new(&self.cells, &measured, 1)
        } else {
            self.fit()
        };
        let leader = fit.ranking().next();
        // The leader is the luckiest of the remaining entrants, and any of them could have been the leader.
        let tail = 0.05 / self.left().len().max(1) as f64;
        let reach = self.rule.blocks.min(self.blocks + 1);
        let ratio = |entrant: usize| {
            let leader = leader.filter(|leader| *leader != entrant)?;
            self.difference(&fit, entrant, leader, reach)?.ratio(tail)
        };
        let ratios: Vec<Option<RatioInterval>> = (0..self.statuses.len()).map(ratio).collect();
        let as_good = |entrant: &usize| {
            ratios[*entrant].is_some_and(|r| r.high >= 1.0 || r.ratio >= 1.0 - self.rule.tie)
        };
        let ties = fit.ranking().filter(as_good).collect();
        Race {
            blocks: self.blocks,
            leader,
            end,
            ratios,
            ties,
            noise: self.noise.map(|noise| noise.variance.sqrt()),
            statuses: self.statuses,
        }
    }
}

#[cfg(test)]
mod tests;
