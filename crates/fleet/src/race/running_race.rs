//! State of a race: the hosts to measure next, and the hosts that are out, with the reasons. It depends only on its
//! input, so that replaying the rounds of the ledger gives the same result.

mod absence;
mod replayed;

use std::collections::{BTreeMap, BTreeSet};

use study::burnin::{Decision, End, HostEstimate, HostStatus, MeasuredHost, Race};

use crate::floor::{FloorMiss, HostFloor, HostFloorWatch};
use crate::protocol::rounds::TargetRound;
use crate::race::ranked_by::RankedBy;
use crate::store::race::{Measurement, MissedHost, RoundRecord};
use absence::Absences;
use sweep::Figure;
use ui::format;

pub(crate) use replayed::{RaceSetup, ReplayedRace};

/// Time, in seconds, for which all hosts of a group may be unreachable at once, while hosts of other groups are
/// measured, before it counts against them: the likely cause is on the way to the group, such as a jump host.
const WAIT_S: f64 = 300.0;
/// Time for which a host may be missing continuously, in seconds, if the permitted number of rounds takes less: a lost
/// host is retried after twelve, and has to prepare again.
pub(crate) const SILENT_S: f64 = 30.0;

/// Reason why a host is out of the race, other than better hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EliminationReason {
    /// The host missed a floor.
    HostFloor(String),
    /// A disk of the host completed no request, or returned an error.
    Broken(String),
    /// The host was unreachable too often, could not measure, or its figures were not those of its disks. It was not
    /// measured to be bad.
    Absent(String),
}

impl EliminationReason {
    /// Reason, as a sentence.
    pub(crate) fn reason(&self) -> &str {
        match self {
            EliminationReason::HostFloor(why)
            | EliminationReason::Broken(why)
            | EliminationReason::Absent(why) => why,
        }
    }
}

/// A group, and the state of its race.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RaceGroup<'a> {
    /// Name of the group.
    pub name: &'a str,
    /// Its kept and tied hosts, by their indices in the run.
    pub decision: Decision,
}

/// A race in progress.
pub(crate) struct RunningRace<'a> {
    setup: &'a RaceSetup<'a>,
    race: Race,
    /// The groups' names.
    groups: Vec<&'a str>,
    /// The index of each host that takes part, and its group.
    places: Vec<usize>,
    group_of: Vec<usize>,
    /// Floor watches of each host that takes part, one for each of its disks and each floor.
    watches: Vec<Vec<HostFloorWatch<'a>>>,
    eliminations: BTreeMap<usize, EliminationReason>,
    /// Indices of the hosts that missed their floor in one round only.
    once: BTreeSet<usize>,
    absences: Absences,
    /// Number of rounds in which all hosts of a group were unreachable at once, by group.
    away: Vec<usize>,
}

impl<'a> RunningRace<'a> {
    /// A race before its first round.
    pub(crate) fn new(setup: &'a RaceSetup<'a>) -> RunningRace<'a> {
        let mut groups: Vec<&str> = setup.groups.iter().flatten().map(String::as_str).collect();
        groups.sort_unstable();
        groups.dedup();
        let (mut places, mut group_of) = (Vec::new(), Vec::new());
        for (place, name) in setup.groups.iter().enumerate() {
            let number = name
                .as_deref()
                .and_then(|name| groups.binary_search(&name).ok());
            if let Some(number) = number {
                places.push(place);
                group_of.push(number);
            }
        }
        RunningRace {
            setup,
            race: Race::new(&group_of, setup.rule),
            watches: vec![Vec::new(); places.len()],
            away: vec![0; groups.len()],
            groups,
            places,
            group_of,
            eliminations: BTreeMap::new(),
            once: BTreeSet::new(),
            absences: Absences::new(setup.round_s, setup.silent_s),
        }
    }

    /// The hosts to measure in the next round, by their indices, all at the same time; empty when the race is over.
    pub(crate) fn next(&self) -> Vec<usize> {
        let next = self.race.next();
        next.iter()
            .filter_map(|number| self.places.get(*number))
            .copied()
            .collect()
    }

    /// Number of rounds that were measured.
    pub(crate) fn rounds(&self) -> usize {
        self.race.rounds()
    }

    /// The standard deviation of one round of a disk, as a share.
    pub(crate) fn noise(&self) -> Option<f64> {
        self.race.noise()
    }

    /// Adds a round. Returns the indices of the hosts that are out since then for a reason other than better hosts.
    pub(crate) fn take(&mut self, round: &RoundRecord) -> Vec<usize> {
        // When a group's race is over nothing more can change it.
        let open: Vec<bool> = (0..self.groups.len())
            .map(|at| self.race.ended(at).is_none())
            .collect();
        let mut out = Removal {
            open,
            places: Vec::new(),
        };
        let excused = self.exempt_hosts(round);
        let mut answered = BTreeSet::new();
        let number = self.rounds();
        for measurement in &round.measured {
            self.absences.is_back(measurement.host);
        }
        for measurement in &round.late {
            self.absences
                .has_answered(measurement.host, measurement.round.unwrap_or(number));
            // It is judged by that answer.
            answered.insert(measurement.host);
        }
        let away = round
            .missed
            .iter()
            .filter(|one| excused.contains(&one.host));
        for absent in away.chain(&round.excused) {
            if !answered.contains(&absent.host) {
                self.absences.was_excused(absent.host, number);
            }
        }
        // A late answer is judged like any other: a slow disk is not excused by being late.
        let measurements = || round.measured.iter().chain(&round.late);
        let mut measured = Vec::new();
        for measurement in measurements() {
            match self.figures(measurement) {
                Ok(one) => measured.extend(one),
                Err(out_reason) => self.remove(measurement.host, out_reason, &mut out),
            }
        }
        self.race.take(&measured);
        for measurement in measurements() {
            if let Some(why) = measurement
                .targets
                .iter()
                .find_map(|target| target.invalid.as_ref())
            {
                let rounds = self.absences.counts(measurement.host);
                self.remove_absent(measurement.host, rounds, why, &mut out);
            } else if let Some((why, is_once)) = self.missed_floor(measurement) {
                if is_once && !self.eliminations.contains_key(&measurement.host) {
                    self.once.insert(measurement.host);
                }
                self.remove(
                    measurement.host,
                    EliminationReason::HostFloor(why),
                    &mut out,
                );
            }
        }
        for absent in &round.missed {
            if !excused.contains(&absent.host) && !answered.contains(&absent.host) {
                let rounds = self.absences.note_absence(absent.host, number);
                self.remove_absent(absent.host, rounds, &absent.why, &mut out);
            }
        }
        for MissedHost { host, why } in &round.gone {
            self.remove(*host, EliminationReason::Absent(why.clone()), &mut out);
        }
        for place in &out.places {
            if let Some(number) = self.number_of(*place) {
                self.race.remove(number);
            }
        }
        out.places
    }

    /// The hosts whose absence does not count, since all of their group were unreachable and others were not.
    fn exempt_hosts(&mut self, round: &RoundRecord) -> BTreeSet<usize> {
        // Those that have been unreachable since all hosts were are included.
        let missing = round.missed.iter().chain(&round.excused);
        let missing: BTreeSet<usize> = missing.map(|absent| absent.host).collect();
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in self.next() {
            let number = self.number_of(place);
            if let Some(group) = number.and_then(|number| self.group_of.get(number)) {
                groups.entry(*group).or_default().push(place);
            }
        }
        let mut excused = BTreeSet::new();
        for (group, hosts) in groups {
            let all_are = hosts.len() > 1 && hosts.iter().all(|host| missing.contains(host));
            let Some(rounds) = self.away.get_mut(group) else {
                continue;
            };
            let is_short = (*rounds as f64) * self.setup.round_s < WAIT_S;
            if all_are && is_short && !round.measured.is_empty() {
                *rounds += 1;
                excused.extend(hosts);
            }
        }
        excused
    }

    /// Figures of a host's disks, in the form of the race; `None` if they do not count.
    ///
    /// # Errors
    /// The reason for its elimination, if a disk is broken, or it could not be measured.
    fn figures(
        &self,
        measurement: &Measurement,
    ) -> Result<Option<MeasuredHost>, EliminationReason> {
        let paths = self.setup.targets.get(measurement.host);
        let path = |at: usize| {
            paths
                .and_then(|paths| paths.get(at))
                .map_or("", String::as_str)
        };
        if paths.is_some_and(|paths| paths.len() != measurement.targets.len()) {
            let why = "the measured device is not the same as at first";
            return Err(EliminationReason::Absent(why.to_owned()));
        }
        let mut disks = Vec::new();
        for (at, target) in measurement.targets.iter().enumerate() {
            if let Some(why) = &target.broken {
                return Err(EliminationReason::Broken(format!("{}: {why}", path(at))));
            }
            if let Some(why) = &target.failed {
                return Err(EliminationReason::Absent(format!("{}: {why}", path(at))));
            }
            match target.figures.first().copied().flatten() {
                Some(figure) if figure > 0.0 && figure.is_finite() => {
                    disks.push(RankedBy::of(self.setup.figures).turned(figure));
                }
                // The cause is unknown: a failing disk reports an error, and a silent one may be on a machine that was
                // paused. So it is no reason to terminate an instance.
                _ => {
                    return Err(EliminationReason::Absent(format!(
                        "{}: nothing came back in round {}",
                        path(at),
                        measurement.round.unwrap_or(self.rounds()) + 1
                    )));
                }
            }
        }
        let is_valid = measurement
            .targets
            .iter()
            .all(|target| target.invalid.is_none());
        let host = self.number_of(measurement.host).filter(|_| is_valid);
        Ok(host.map(|host| MeasuredHost { host, disks }))
    }

    /// The floor that a host has missed now, in words; true if the value is from one round alone.
    fn missed_floor(&mut self, measurement: &Measurement) -> Option<(String, bool)> {
        let number = self.number_of(measurement.host)?;
        let setup = self.setup;
        let watches = self.watches.get_mut(number)?;
        if watches.is_empty() {
            let of_disk = || setup.floors.iter().map(HostFloor::watch);
            watches.extend(measurement.targets.iter().flat_map(|_| of_disk()));
        }
        let disks = measurement.targets.iter().enumerate();
        let pairs = disks.flat_map(|(at, target)| {
            let floors = setup.floors.iter();
            floors.map(move |floor| (at, target, floor))
        });
        let mut found = None;
        for ((at, target, floor), watch) in pairs.zip(watches) {
            // All of them are updated, whichever is missed first.
            let missed = value(setup.figures, floor, target)
                .and_then(|value| watch.take(setup.round_s, value));
            if let Some(missed) = missed {
                let path = setup
                    .targets
                    .get(measurement.host)
                    .and_then(|paths| paths.get(at));
                let is_once = missed.seconds <= setup.round_s;
                found = found.or_else(|| Some((of_missed(floor, path, &missed), is_once)));
            }
        }
        found
    }

    /// Removes a host that was missing too often: in `rounds` rounds, with the last reason.
    fn remove_absent(&mut self, place: usize, rounds: Option<usize>, why: &str, out: &mut Removal) {
        if let Some(rounds) = rounds {
            let why = format!("missing in {rounds} rounds, the last time because {why}");
            self.remove(place, EliminationReason::Absent(why), out);
        }
    }

    fn remove(&mut self, place: usize, out_reason: EliminationReason, out: &mut Removal) {
        let group = self
            .number_of(place)
            .and_then(|number| self.group_of.get(number));
        let is_open = group.and_then(|group| out.open.get(*group)) == Some(&true);
        if is_open && !self.eliminations.contains_key(&place) {
            self.eliminations.insert(place, out_reason);
            out.places.push(place);
        }
    }

    fn number_of(&self, place: usize) -> Option<usize> {
        self.places.binary_search(&place).ok()
    }

    /// Present state of the race of each group.
    pub(crate) fn groups(&self) -> Vec<RaceGroup<'a>> {
        let place = |number: usize| self.places.get(number).copied();
        let named = self.groups.iter().enumerate();
        named
            .map(|(at, name)| {
                let decision = self.race.decision(at);
                let places = |of: Vec<usize>| of.into_iter().filter_map(place).collect();
                RaceGroup {
                    name,
                    decision: Decision {
                        keep: places(decision.keep),
                        tied: places(decision.tied),
                        ..decision
                    },
                }
            })
            .collect()
    }

    /// Reason why a host is out, other than better hosts; `None` if it is not.
    pub(crate) fn out_reason(&self, place: usize) -> Option<&EliminationReason> {
        self.eliminations.get(&place)
    }

    /// True if a host is out for a floor that it missed in one round only.
    pub(crate) fn missed_once(&self, place: usize) -> bool {
        self.once.contains(&place)
            && matches!(
                self.out_reason(place),
                Some(EliminationReason::HostFloor(_))
            )
    }

    /// Status of a host; `None` if it does not take part.
    pub(crate) fn status(&self, place: usize) -> Option<HostStatus> {
        self.race.status(self.number_of(place)?)
    }

    /// Estimate of a host's figure; `None` before it was measured.
    pub(crate) fn known(&self, place: usize) -> Option<HostEstimate> {
        self.race.known(self.number_of(place)?)
    }

    /// Number of rounds in which a host was missing.
    pub(crate) fn missed(&self, place: usize) -> usize {
        self.absences.of(place)
    }

    /// Number of rounds without a measurement in which a host should have been measured, including excused ones.
    pub(crate) fn unmeasured_rounds(&self, place: usize) -> usize {
        self.absences.unmeasured_rounds(place)
    }

    /// True if a host that is missing in this number of rounds is doubtful.
    pub(crate) fn is_much(unseen: usize) -> bool {
        unseen > absence::MAX_ABSENCES
    }
}

/// A host that is out, and the round.
struct Removal {
    /// The groups whose race was not over before it.
    open: Vec<bool>,
    places: Vec<usize>,
}

/// Value of a target for the figure of a floor; `None` if it was not measured, such as the latency of a disk without
/// requests.
fn value(figures: &[Figure], floor: &HostFloor, target: &TargetRound) -> Option<f64> {
    if floor.is_of_disks() {
        return target.disk_latency_ns;
    }
    let at = figures
        .iter()
        .position(|figure| *figure == floor.requirement.figure)?;
    target.figures.get(at).copied().flatten()
}

fn of_missed(floor: &HostFloor, path: Option<&String>, missed: &FloorMiss) -> String {
    let value = if floor.requirement.figure.metric.is_latency() {
        format::latency(missed.value.max(0.0) as u64)
    } else {
        format::number(missed.value)
    };
    let path = path.map_or_else(String::new, |path| format!("{path} "));
    let seconds = format::seconds(missed.seconds);
    format!("{path}missed {floor}: it had {value} over {seconds}")
}

/// End of the race of a group, as text.
pub(crate) fn end_label(end: Option<End>) -> &'static str {
    match end {
        None => "open",
        Some(End::Decided) => "decided",
        Some(End::Equal) => "equal",
        Some(End::Rounds) => "rounds",
        Some(End::Few) => "few",
    }
}

#[cfg(test)]
mod tests;
