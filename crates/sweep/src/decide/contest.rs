//! The leader, and the layouts that are worse beyond doubt: the race of `study`, with the sweep's additions.
//!
//! The race supposes that all who are in were measured in every block. A layout that failed once and was
//! built in the next block lacks one, and so does a layout that was dropped behind a leader who was then
//! found to miss a requirement. Such stragglers take no part in the race itself. Each is raced afterwards
//! against those who are in, over the blocks in which all of them were measured.

use std::collections::{BTreeMap, BTreeSet};

use study::compare::RatioInterval;
use study::race::{EntrantStatus as Place, Measurement, Race, Rule, replay};

/// A layout's measurement in a block: its score, of which more is better, and the 95 % half width
/// as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// The score.
    pub value: f64,
    /// The half width.
    pub half_width: Option<f64>,
}

/// The scores of those who contend: by layout, and by block.
pub(super) type Scores = BTreeMap<usize, BTreeMap<usize, Score>>;

/// State of the contest. Ratios are of scores to the leader's.
pub(super) struct Contest {
    /// The best so far.
    pub leader: Option<usize>,
    /// Those as good as the leader, the best first.
    pub ties: Vec<usize>,
    /// Those that are worse beyond doubt, by how much, and after how many blocks.
    pub dropped: BTreeMap<usize, (RatioInterval, usize)>,
    /// The ratio to the leader.
    pub ratios: BTreeMap<usize, RatioInterval>,
    /// True if the race knows its winner before the last block.
    pub over: bool,
}

impl Contest {
    /// Replays the contest. `blocks` is how many blocks were begun, and `failed` are those that
    /// could not be built in a block and are tried again in the next.
    pub(super) fn of(scores: &Scores, blocks: usize, failed: &[usize], rule: &Rule) -> Contest {
        let (scores, lost) = without_gaps(scores, blocks);
        let blocks = blocks - lost;
        let rule = Rule {
            blocks: rule.blocks.saturating_sub(lost),
            ..*rule
        };
        let mut stragglers: BTreeSet<usize> = failed.iter().copied().collect();
        stragglers.retain(|layout| scores.contains_key(layout));
        loop {
            let main = Heat::of(&scores, |layout| !stragglers.contains(&layout), &rule);
            let late = main.late(&scores, blocks);
            if late.is_empty() {
                return Contest::joined(&main, &scores, &stragglers, blocks, &rule);
            }
            stragglers.extend(late);
        }
    }

    /// The race and its stragglers together.
    fn joined(
        main: &Heat,
        scores: &Scores,
        stragglers: &BTreeSet<usize>,
        blocks: usize,
        rule: &Rule,
    ) -> Contest {
        let mut contest = Contest {
            leader: None,
            ties: Vec::new(),
            dropped: main.dropped(),
            ratios: BTreeMap::new(),
            over: main.race.end.is_some(),
        };
        let front: Vec<usize> = main.left().collect();
        let heats: Vec<(usize, Option<Heat>)> = stragglers
            .iter()
            .map(|late| (*late, Heat::among(scores, &front, *late, blocks, rule)))
            .collect();
        let mut best = None;
        for (late, heat) in &heats {
            let Some(heat) = heat else {
                contest.over = false;
                continue;
            };
            contest.over &= heat.race.end.is_some();
            contest.dropped.extend(heat.dropped().remove_entry(late));
            // By how much a straggler leads the best of the others.
            if heat.leader() == Some(*late) {
                let ratios = heat.ratios();
                let second = ratios.values().map(|r| r.ratio).fold(0.0, f64::max);
                if best.as_ref().is_none_or(|(_, least)| second < *least) {
                    best = Some((heat, second));
                }
            }
        }
        // A straggler that leads is known from its own heat; the rest from the race.
        let leading = best.map_or(main, |(heat, _)| heat);
        contest.leader = leading.leader();
        contest.ratios = leading.ratios();
        contest.ties = leading.ties();
        for (late, heat) in &heats {
            let Some(heat) = heat.as_ref().filter(|heat| heat.leader() == contest.leader) else {
                continue;
            };
            if let Some(ratio) = heat.ratios().remove(late) {
                contest.ratios.insert(*late, ratio);
                if heat.ties().contains(late) && !contest.ties.contains(late) {
                    contest.ties.push(*late);
                }
            }
        }
        let ratio = |layout: &usize| contest.ratios.get(layout).map_or(0.0, |r| r.ratio);
        contest.ties.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        let dropped = &contest.dropped;
        contest.ties.retain(|layout| !dropped.contains_key(layout));
        contest
    }
}

/// The scores without blocks of which nothing came, as when the machine was rebooted, and how many
/// these are. The last block may just have begun, and is kept.
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
struct Heat {
    /// The layouts by their number in the race.
    layouts: Vec<usize>,
    race: Race,
}

impl Heat {
    /// The race of those who are `in_it`, over all blocks.
    fn of(scores: &Scores, in_it: impl Fn(usize) -> bool, rule: &Rule) -> Heat {
        let layouts: Vec<usize> = scores.keys().copied().filter(|l| in_it(*l)).collect();
        let block = |block: usize| Some(block);
        Heat::run(scores, layouts, block, rule)
    }

    /// The race of a straggler against those in front, over the blocks that all of them have;
    /// `None` where there is no such block.
    fn among(
        scores: &Scores,
        front: &[usize],
        late: usize,
        blocks: usize,
        rule: &Rule,
    ) -> Option<Heat> {
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
        Some(Heat::run(scores, layouts, place, &rule))
    }

    fn run(
        scores: &Scores,
        layouts: Vec<usize>,
        place: impl Fn(usize) -> Option<usize>,
        rule: &Rule,
    ) -> Heat {
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
        Heat { layouts, race }
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

    /// The layouts that are in.
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
        let places = self.layouts.iter().zip(&self.race.standings);
        places
            .filter_map(|(layout, place)| match place {
                Place::Dropped { blocks, ratio } => Some((*layout, (*ratio, *blocks))),
                Place::In | Place::Failed { .. } => None,
            })
            .collect()
    }

    /// Those that hold the race up: they lack a block that was followed by another.
    fn late(&self, scores: &Scores, blocks: usize) -> Vec<usize> {
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
