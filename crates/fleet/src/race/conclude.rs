//! Conclusion of a race, host by host, from the rounds of its record alone.

mod doubts;

use study::burnin::{End, HostEstimate, HostStatus};

use crate::hosts::TieBreak;
use crate::race::running_race::{EliminationReason, RaceGroup, ReplayedRace, RunningRace};
use crate::race::setup;
use crate::store::race::RaceRecord;
use crate::store::{FleetRun, HostOutcome};
use ui::format;

/// Decision on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// The host is one of the best.
    Keep,
    /// The host may be one of the best.
    Tie,
    /// The race ended before it was known whether the host is one of the best.
    Open,
    /// As many other hosts as are kept are better.
    Cull,
    /// The host missed a floor.
    HostFloor,
    /// The host failed, or was unreachable too often.
    Failed,
    /// The host was not reached, or no agent could run there: there are no measurements.
    Unreachable,
    /// Another run or race measured on the host: there are no measurements.
    Busy,
}

impl Decision {
    /// The name in documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Decision::Keep => "keep",
            Decision::Tie => "tie",
            Decision::Open => "open",
            Decision::Cull => "cull",
            Decision::HostFloor => "floor",
            Decision::Failed => "failed",
            Decision::Unreachable => "unreachable",
            Decision::Busy => "busy",
        }
    }
}

/// A host, and its result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedHost {
    /// Index of the host in the run.
    pub place: usize,
    /// Decision of the race.
    pub decided: Decision,
    /// Reason, as a sentence without its end.
    pub reason: String,
    /// True if this race measured it to be worse than the kept hosts, or below a floor.
    pub is_bad: bool,
    /// Estimate of its figure; `None` if it was never measured.
    pub known: Option<HostEstimate>,
    /// Number of rounds in which it was missing.
    pub missed: usize,
    /// Reasons to doubt that its figures are those of its disks alone, or complete, as sentences.
    pub doubts: Vec<String>,
    /// True if something other than its disks may have slowed them; a doubt names it.
    pub is_slowed: bool,
    /// True if its figures themselves are doubtful: blocks that were never written, reads served from memory, other
    /// work on the disk.
    pub is_doubtful: bool,
    /// True if it was dead, lost or another machine at the end of the race. For hosts that are kept or tie, a doubt
    /// says so.
    pub is_gone: bool,
}

impl RankedHost {
    /// A host without measurements.
    pub(super) fn unmeasured(place: usize, decided: Decision, reason: &str) -> RankedHost {
        RankedHost {
            place,
            decided,
            reason: reason.to_owned(),
            is_bad: false,
            known: None,
            missed: 0,
            doubts: Vec::new(),
            is_slowed: false,
            is_doubtful: false,
            is_gone: true,
        }
    }
}

/// A group, and the end of its race.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupEnd {
    /// Name of the group.
    pub name: String,
    /// Number of its hosts.
    pub hosts: usize,
    /// Reason for the end of its race; `None` while it continues.
    pub end: Option<End>,
    /// Number of hosts that are kept.
    pub kept: usize,
    /// Number of hosts that were reachable at the end of the race: of the kept ones, and of the tied ones, of which at
    /// most `places` count.
    pub there: usize,
    /// Number of hosts that tie for `places`.
    pub tied: usize,
    /// Number of places for which they tie.
    pub places: usize,
    /// Indices of the hosts that the rule keeps, and of those that it could not distinguish from them.
    pub best: Vec<usize>,
}

/// Result of a race: its hosts by rank, and which are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RaceConclusion {
    /// The groups, in the order of their names.
    pub groups: Vec<GroupEnd>,
    /// The hosts, by group, and the best first.
    pub ranked: Vec<RankedHost>,
    /// Groups in the source of the hosts without any measured host.
    pub empty: Vec<String>,
    /// The standard deviation of one round of a disk, as a share.
    pub noise: Option<f64>,
    /// Number of rounds in which a host must be measured so that slowness in a tenth of them shows.
    pub proof_rounds: usize,
}

/// Concludes a race from its rounds.
pub(crate) fn conclude(run: &FleetRun, record: &RaceRecord) -> RaceConclusion {
    let replayed = ReplayedRace::of(record);
    let setup = replayed.setup(record);
    let mut course = RunningRace::new(&setup);
    for round in &record.rounds {
        course.take(round);
    }
    let groups = course.groups();
    let proof_rounds = replayed.proof_rounds();
    let bounds = Bounds {
        proof_rounds,
        is_over: record.interrupted || groups.iter().all(|group| group.decision.end.is_some()),
    };
    let mut ranked: Vec<RankedHost> = (0..run.hosts.len())
        .map(|place| {
            let own = record
                .hosts
                .get(place)
                .and_then(|host| host.group.as_deref());
            let group = groups.iter().find(|group| Some(group.name) == own);
            match group {
                Some(group) => raced_host(place, group, &course, record, run, &bounds),
                None => not_raced(place, run),
            }
        })
        .collect();
    let group_of = |place: usize| record.hosts.get(place).map(|host| &host.group);
    let figure = |one: &RankedHost| one.known.map_or(f64::NEG_INFINITY, |known| known.figure);
    ranked.sort_by(|a, b| {
        // Hosts that did not take part come last.
        let (of_a, of_b) = (
            group_of(a.place).cloned().flatten(),
            group_of(b.place).cloned().flatten(),
        );
        let no_part = of_a.is_none().cmp(&of_b.is_none());
        let by_rank = || {
            a.decided
                .cmp(&b.decided)
                .then(figure(b).total_cmp(&figure(a)))
        };
        no_part.then(of_a.cmp(&of_b)).then_with(by_rank)
    });
    let of_group = |name: &str, decided: Decision| {
        let is = |one: &&RankedHost| {
            one.decided == decided && group_of(one.place) == Some(&Some(name.to_owned()))
        };
        ranked.iter().filter(is).collect::<Vec<_>>()
    };
    let there = |of: &[&RankedHost]| of.iter().filter(|one| !one.is_gone).count();
    let ends = groups.iter().map(|group| {
        let members = record.hosts.iter();
        let kept = of_group(group.name, Decision::Keep);
        let tied = of_group(group.name, Decision::Tie);
        let places = match tied.len() {
            0 => 0,
            _ => record.keep.saturating_sub(kept.len()),
        };
        GroupEnd {
            name: group.name.to_owned(),
            hosts: members
                .filter(|host| host.group.as_deref() == Some(group.name))
                .count(),
            end: group.decision.end,
            kept: kept.len(),
            there: there(&kept) + places.min(there(&tied)),
            tied: tied.len(),
            places,
            best: [&group.decision.keep[..], &group.decision.tied].concat(),
        }
    });
    RaceConclusion {
        groups: ends.collect(),
        empty: empty(run, record),
        noise: course.noise(),
        proof_rounds,
        ranked,
    }
}

/// The groups, by their source, of hosts that did not take part, if no other host is in them.
fn empty(run: &FleetRun, record: &RaceRecord) -> Vec<String> {
    let is_of = |group: &Option<String>, name: &str| {
        let rest = group.as_deref().and_then(|group| group.strip_prefix(name));
        // The size follows the name.
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
    };
    let both = run.hosts.iter().zip(&record.hosts);
    let mut names: Vec<String> = both
        .filter(|(_, raced)| raced.group.is_none())
        .map(|(host, _)| setup::name(host.zone.as_deref(), host.kind.as_deref(), record.per))
        .filter(|name| name != setup::UNKNOWN)
        .filter(|name| !record.hosts.iter().any(|raced| is_of(&raced.group, name)))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Values of the whole race that the decision on a host depends on.
struct Bounds {
    /// Number of rounds in which a host must be measured so that slowness in a tenth of them shows.
    proof_rounds: usize,
    /// True once the race is over.
    is_over: bool,
}

/// A host that took part.
fn raced_host(
    place: usize,
    group: &RaceGroup<'_>,
    course: &RunningRace<'_>,
    record: &RaceRecord,
    run: &FleetRun,
    bounds: &Bounds,
) -> RankedHost {
    let known = course.known(place);
    let (decided, reason, is_bad) = match course.out_reason(place) {
        Some(out_reason) => {
            let (decided, is_bad) = match out_reason {
                EliminationReason::HostFloor(_) => (Decision::HostFloor, true),
                EliminationReason::Broken(_) => (Decision::Failed, true),
                EliminationReason::Absent(_) => (Decision::Failed, false),
            };
            (
                decided,
                out_reason.reason().trim_end_matches('.').to_owned(),
                is_bad,
            )
        }
        None => of_rank(place, group, course, record, run),
    };
    let slow = known
        .filter(|known| known.slow > 0)
        .map_or_else(String::new, |known| {
            let targets = record.hosts.get(place).map(|host| &host.targets);
            let disk = targets.and_then(|targets| targets.get(known.disk));
            format!(
                "; {} was slow in {} of {} rounds, with {} of its rate left",
                disk.map_or("it", |disk| disk.path.as_str()),
                known.slow,
                known.rounds,
                format::percent(known.left)
            )
        });
    let mut doubts = doubts::reported(place, record);
    let is_doubtful = !doubts.is_empty();
    if decided == Decision::Keep {
        doubts.extend(doubts::of_rounds(&known, bounds.proof_rounds));
    }
    let host = run.hosts.get(place).filter(|_| bounds.is_over);
    let gone = host.and_then(doubts::of_absence);
    if matches!(decided, Decision::Keep | Decision::Tie) {
        doubts.extend(doubts::of_unseen(course, place));
        doubts.extend(gone.clone());
    }
    if course.missed_once(place) {
        doubts.push(doubts::MISSED_ONCE.to_owned());
    }
    // An error that a disk returns is the disk's fault.
    let is_broken = matches!(course.out_reason(place), Some(EliminationReason::Broken(_)));
    RankedHost {
        place,
        decided,
        reason: reason + &slow,
        is_bad,
        known,
        missed: course.missed(place),
        doubts,
        is_slowed: !is_broken && doubts::is_slowed(place, record),
        is_doubtful,
        is_gone: gone.is_some(),
    }
}

/// Decision on a host by its rank, the reason, and true if it was measured to be worse.
fn of_rank(
    place: usize,
    group: &RaceGroup<'_>,
    course: &RunningRace<'_>,
    record: &RaceRecord,
    run: &FleetRun,
) -> (Decision, String, bool) {
    let decision = &group.decision;
    let Some(end) = decision.end else {
        return (
            Decision::Open,
            "the race was ended before it was decided".to_owned(),
            false,
        );
    };
    if decision.keep.contains(&place) {
        let why = match end {
            End::Few => "no more hosts are left than are kept".to_owned(),
            _ if record.keep == 1 => "no other may be better".to_owned(),
            _ => format!("fewer than {} others may be better", record.keep),
        };
        return (Decision::Keep, why, false);
    }
    let (tied, places) = (decision.tied.len(), decision.places);
    if decision.tied.contains(&place) {
        let ties = format!(
            "ties with {} for {}",
            format::count(tied.saturating_sub(1), "other"),
            format::count(places, "place")
        );
        return match record.ties {
            None => (Decision::Tie, ties, false),
            Some(by) => {
                let word = match by {
                    TieBreak::Name => "name",
                    TieBreak::Price => "price",
                };
                let chosen = in_tie_order(&decision.tied, by, record, run);
                if chosen.iter().take(places).any(|one| *one == place) {
                    (Decision::Keep, format!("{ties}; chosen by {word}"), false)
                } else {
                    (Decision::Cull, format!("{ties}; left out by {word}"), false)
                }
            }
        };
    }
    if let Some(HostStatus::Removed { .. }) = course.status(place) {
        return (Decision::Failed, "it could not be raced".to_owned(), false);
    }
    if course.known(place).is_none() {
        return (Decision::Failed, "it was never measured".to_owned(), false);
    }
    let others = match record.keep {
        1 => "another is".to_owned(),
        keep => format!("{keep} others are"),
    };
    match course.status(place) {
        Some(HostStatus::Out { round }) => {
            let reason = format!("{others} better, known after round {}", round + 1);
            (Decision::Cull, reason, true)
        }
        // No kept host is worse, but this one may be as good: that is no reason to terminate it.
        _ => (
            Decision::Cull,
            format!("{others} measured to be better, though it may be as good"),
            false,
        ),
    }
}

/// Indices of the tied hosts, in the order in which they are chosen.
fn in_tie_order(tied: &[usize], by: TieBreak, record: &RaceRecord, run: &FleetRun) -> Vec<usize> {
    let name = |place: &usize| run.hosts.get(*place).map(|host| host.host.as_str());
    let price = |place: &usize| {
        let price = record.hosts.get(*place).and_then(|host| host.price);
        price.unwrap_or(f64::INFINITY)
    };
    let mut tied = tied.to_vec();
    tied.sort_by(|a, b| match by {
        TieBreak::Name => name(a).cmp(&name(b)),
        TieBreak::Price => price(a).total_cmp(&price(b)).then(name(a).cmp(&name(b))),
    });
    tied
}

/// A host that did not take part.
fn not_raced(place: usize, run: &FleetRun) -> RankedHost {
    let host = run.hosts.get(place);
    let (decided, reason) = match host.map(|host| host.outcome) {
        Some(HostOutcome::Unreached | HostOutcome::Unfit) => {
            (Decision::Unreachable, "was not reached")
        }
        Some(HostOutcome::Busy) => (Decision::Busy, "another run or race measured on it"),
        Some(HostOutcome::Waiting | HostOutcome::Interrupted | HostOutcome::Done) | None => {
            (Decision::Open, "the race was ended before it took part")
        }
        Some(_) => (Decision::Failed, "did not come to be measured"),
    };
    let why = host.and_then(|host| host.why.as_deref()).unwrap_or(reason);
    RankedHost::unmeasured(place, decided, why.trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
