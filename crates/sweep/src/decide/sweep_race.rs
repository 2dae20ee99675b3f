//! The leader, and the layouts that are significantly worse: the race of `study`, with additions for sweeps.
//!
//! The race requires that all entrants were measured in every block. A layout that failed once and was built in the
//! next block lacks a block, and so does a layout that was dropped for being slower than a leader that later missed a
//! requirement. These stragglers are not in the main race. Each is compared afterwards with the entrants, over the
//! blocks in which all of them were measured.

use std::collections::{BTreeMap, BTreeSet};

use study::compare::RatioInterval;
use study::race::{EntrantStatus as Place, Measurement, Race, Rule, replay};

/// A layout's measurement in a block: its score (higher is better), and the 95 % half width as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// The score.
    pub value: f64,
    /// 95 % half width of the score, as a share of it; `None` where it is not known.
    pub half_width: Option<f64>,
}

/// Scores of the eligible layouts, by layout and block.
pub(super) type Scores = BTreeMap<usize, BTreeMap<usize, Score>>;

/// State of the race. Ratios are those of scores to the leader's.
pub(super) struct SweepRace {
    /// The best so far.
    pub leader: Option<usize>,
    /// Layouts not distinguishable from the leader, the best first.
    pub ties: Vec<usize>,
    /// Layouts that are significantly worse, with the ratio and the number of blocks after which they were dropped.
    pub dropped: BTreeMap<usize, (RatioInterval, usize)>,
    /// Ratios to the leader.
    pub ratios: BTreeMap<usize, RatioInterval>,
    /// True if the winner is certain.
    pub over: bool,
}

impl SweepRace {
    /// Replays the race. `blocks` is the number of blocks that were begun, and `failed` are the layouts that could not
    /// be built in a block and are tried again in the next.
    pub(super) fn of(scores: &Scores, blocks: usize, failed: &[usize], rule: &Rule) -> SweepRace {
        let (scores, lost) = without_gaps(scores, blocks);
        let blocks = blocks - lost;
        let rule = Rule {
            blocks: rule.blocks.saturating_sub(lost),
            ..*rule
        };
        let mut late_entrants: BTreeSet<usize> = failed.iter().copied().collect();
        late_entrants.retain(|layout| scores.contains_key(layout));
        loop {
            let main = PartialRace::of(&scores, |layout| !late_entrants.contains(&layout), &rule);
            let late = main.delaying_layouts(&scores, blocks);
            if late.is_empty() {
                return SweepRace::joined(&main, &scores, &late_entrants, blocks, &rule);
            }
            late_entrants.extend(late);
        }
    }

    /// The main race joined with the races of the stragglers.
    fn joined(
        main: &PartialRace,
        scores: &Scores,
        late_entrants: &BTreeSet<usize>,
        blocks: usize,
        rule: &Rule,
    ) -> SweepRace {
        let mut joined = SweepRace {
            leader: None,
            ties: Vec::new(),
            dropped: main.dropped(),
            ratios: BTreeMap::new(),
            over: main.race.end.is_some(),
        };
        let front: Vec<usize> = main.left().collect();
        let partial_races: Vec<(usize, Option<PartialRace>)> = late_entrants
            .iter()
            .map(|late| {
                (
                    *late,
                    PartialRace::among(scores, &front, *late, blocks, rule),
                )
            })
            .collect();
        let mut best = None;
        for (late, partial) in &partial_races {
            let Some(partial) = partial else {
                joined.over = false;
                continue;
            };
            joined.over &= partial.race.end.is_some();
            joined.dropped.extend(partial.dropped().remove_entry(late));
            // The ratio of the best other layout to a leading straggler.
            if partial.leader() == Some(*late) {
                let ratios = partial.ratios();
                let second = ratios.values().map(|r| r.ratio).fold(0.0, f64::max);
                if best.as_ref().is_none_or(|(_, least)| second < *least) {
                    best = Some((partial, second));
                }
            }
        }
        // If a straggler leads, its own race has the comparison, otherwise the main race.
        let leading = best.map_or(main, |(partial, _)| partial);
        joined.leader = leading.leader();
        joined.ratios = leading.ratios();
        joined.ties = leading.ties();
        for (late, partial) in &partial_races {
            let Some(partial) = partial
                .as_ref()
                .filter(|partial| partial.leader() == joined.leader)
            else {
                continue;
            };
            if let Some(ratio) = partial.ratios().remove(late) {
                joined.ratios.insert(*late, ratio);
                if partial.ties().contains(late) && !joined.ties.contains(late) {
                    joined.ties.push(*late);
                }
            }
        }
        let ratio = |layout: &usize| joined.ratios.get(layout).map_or(0.0, |r| r.ratio);
        joined.ties.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        let dropped = &joined.dropped;
        joined.ties.retain(|layout| !dropped.contains_key(layout));
        joined
    }
}

/// The scores without empty blocks, as after a reboot, and the number of removed blocks. The last block may just have
/// begun, and is kept.
fn without_gaps(scores: &Scores, blocks: usize) -> (Scores, usize) {
    let has = |block: &usize| scores.values().any(|scores| scores.contains_key(block));
    let kept: Vec<usize> = (0..blocks)
        .filter(|block| has(block) || block + 1 == blocks)
        .collect();
    let place = |block: &usize| kept.iter().position(|other| other == block);
    let renumbered = |scores: &BTreeMap<usize, Score>| {
        let placed = scores
            .iter()
            .filter_map(|(block, score)| Some((place(block)?, *score)));
        placed.collect()
    };
    let scores = scores
        .iter()
        .map(|(layout, scores)| (*layout, renumbered(scores)));
    (scores.collect(), blocks - kept.len())
}

/// A race among some of the layouts.
struct PartialRace {
    /// Layouts, by their index in the race.
    layouts: Vec<usize>,
    race: Race,
}

impl PartialRace {
    /// The race of the layouts for which `is_included` is true, over all blocks.
    fn of(scores: &Scores, is_included: impl Fn(usize) -> bool, rule: &Rule) -> PartialRace {
        let layouts: Vec<usize> = scores.keys().copied().filter(|l| is_included(*l)).collect();
        let block = |block: usize| Some(block);
        PartialRace::run(scores, layouts, block, rule)
    }

    /// The race of a straggler against the entrants `front`, over the blocks that all of them have; `None` if there is
    /// no common block.
    fn among(
        scores: &Scores,
        front: &[usize],
        late: usize,
        blocks: usize,
        rule: &Rule,
    ) -> Option<PartialRace> {
        let mut layouts = front.to_vec();
        layouts.push(late);
        let has =
            |layout: &usize, block| scores.get(layout).is_some_and(|s| s.contains_key(&block));
        let common: Vec<usize> = (0..blocks)
            .filter(|block| layouts.iter().all(|layout| has(layout, *block)))
            .collect();
        if common.is_empty() {
            return None;
        }
        let rule = Rule {
            blocks: common.len() + rule.blocks.saturating_sub(blocks),
            ..*rule
        };
        let place = |block: usize| common.iter().position(|other| *other == block);
        Some(PartialRace::run(scores, layouts, place, &rule))
    }

    fn run(
        scores: &Scores,
        layouts: Vec<usize>,
        place: impl Fn(usize) -> Option<usize>,
        rule: &Rule,
    ) -> PartialRace {
        let mut seen = Vec::new();
        for (entrant, layout) in layouts.iter().enumerate() {
            for (block, score) in scores.get(layout).into_iter().flatten() {
                if let Some(block) = place(*block) {
                    seen.push(Measurement {
                        entrant,
                        block,
                        value: score.value,
                        half_width: score.half_width,
                    });
                }
            }
        }
        let race = replay(layouts.len(), &seen, rule);
        PartialRace { layouts, race }
    }

    fn layout(&self, entrant: usize) -> Option<usize> {
        self.layouts.get(entrant).copied()
    }

    fn leader(&self) -> Option<usize> {
        self.layout(self.race.leader?)
    }

    fn ties(&self) -> Vec<usize> {
        let ties = self.race.ties.iter();
        ties.filter_map(|entrant| self.layout(*entrant)).collect()
    }

    /// The layouts that are still in the race.
    fn left(&self) -> impl Iterator<Item = usize> + '_ {
        self.race
            .entrants()
            .filter_map(|entrant| self.layout(entrant))
    }

    fn ratios(&self) -> BTreeMap<usize, RatioInterval> {
        let ratios = self.layouts.iter().zip(&self.race.ratios);
        ratios
            .filter_map(|(layout, ratio)| Some((*layout, (*ratio)?)))
            .collect()
    }

    fn dropped(&self) -> BTreeMap<usize, (RatioInterval, usize)> {
        let places = self.layouts.iter().zip(&self.race.statuses);
        places
            .filter_map(|(layout, place)| match place {
                Place::Dropped { blocks, ratio } => Some((*layout, (*ratio, *blocks))),
                Place::In | Place::Failed { .. } => None,
            })
            .collect()
    }

    /// The layouts that delay the race: they lack a block after which another block was begun.
    fn delaying_layouts(&self, scores: &Scores, blocks: usize) -> Vec<usize> {
        let next = self.race.blocks;
        if self.race.end.is_some() || next + 1 >= blocks {
            return Vec::new();
        }
        let lacks = |layout: &usize| {
            let scores = scores.get(layout);
            scores.is_none_or(|scores| !scores.contains_key(&next))
        };
        self.left().filter(lacks).collect()
    }
}
