//! Choice of the instances that may be terminated, by the race and the source of the hosts.

use jiff::{SignedDuration, Timestamp};

use crate::hosts::{InstanceState, instances_now};
use crate::race::conclude::{Decision, RaceConclusion, RankedHost};
use crate::race::report::figure_text;
use crate::race::terminate::address::{Resolve, UnconfirmedAddress, bare};
use crate::race::terminate::aws::RunProgram;
use crate::store::race::{RaceRecord, RacedHost};
use crate::store::termination::{SparedHost, TerminationTarget};
use crate::store::{FleetRun, HostRun};

/// Seconds by which a clock may be wrong by itself.
const NOTICEABLE_S: f64 = 2.0;

/// An instance of which all hosts were measured to be bad.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The instance.
    pub target: TerminationTarget,
    /// Addresses of those of its hosts that did not report their own instance id.
    unconfirmed: Vec<String>,
    /// Addresses of hosts whose instance id no source but themselves reports.
    alone: Vec<UnconfirmedAddress>,
    /// Start of the race, by the earliest of the clocks that are known.
    began: Timestamp,
    /// Seconds by which this clock is behind that of the host, as far as it is noticeable: the race began
    /// later then.
    behind_s: Option<f64>,
    /// A host at the same address that was never met, and may be on this instance too.
    neighbour: Option<String>,
}

impl Candidate {
    /// Reason to spare it in the present state of EC2, as a clause; `None` where there is none.
    pub(super) fn protection(&self, known: &[InstanceState]) -> Option<String> {
        let id = &self.target.id;
        let Some(now) = known.iter().find(|now| now.id == *id) else {
            return Some(format!("EC2 does not know {id}"));
        };
        if now.is_tagged_keep {
            return Some(format!("{id} is tagged keep"));
        }
        if now.state != "running" {
            return Some(format!("{id} is {}", now.state));
        }
        // After a start it may have other hardware, and other disks of its own.
        match now.launched {
            None => return Some(format!("EC2 does not report since when {id} runs")),
            Some(launched) if launched > self.began => {
                let by = self.behind_s.map_or_else(String::new, |behind_s| {
                    format!(
                        " by this machine's clock, which is {behind_s:.0} s behind that of the host"
                    )
                });
                return Some(format!(
                    "{id} was started at {launched}, after the race began{by}"
                ));
            }
            Some(_) => {}
        }
        // Where the host itself did not report its id, its address must show it.
        let is_elsewhere = |address: &&String| !now.addresses.contains(&bare(address).to_owned());
        let elsewhere = self.unconfirmed.iter().find(is_elsewhere);
        elsewhere.map(|address| format!("{id} is not at {address}"))
    }

    /// Reason why it may be another instance, by the present state of EC2, as a clause; `None` where there is
    /// none.
    pub(super) fn doubt(&self, known: &[InstanceState]) -> Option<String> {
        let now = known.iter().find(|now| now.id == self.target.id)?;
        let place = self.alone.iter().find_map(|place| place.doubt(now));
        place.or_else(|| {
            let mate = self.neighbour.as_ref()?;
            let id = &self.target.id;
            Some(format!(
                "{mate} is at the same address, and did not report whether it is {id} too"
            ))
        })
    }
}

/// State of the candidates' instances in EC2 now.
pub(super) fn now<'a>(
    chosen: impl Iterator<Item = &'a Candidate>,
    program: RunProgram<'_>,
) -> Result<Vec<InstanceState>, String> {
    let ids: Vec<&str> = chosen.map(|one| one.target.id.as_str()).collect();
    instances_now(&ids, program)
}

/// A host of the race, with all that is known of it.
#[derive(Clone, Copy)]
struct Member<'a> {
    host: &'a HostRun,
    raced: &'a RacedHost,
}

impl Member<'_> {
    fn has_id(&self, id: &str) -> bool {
        let ids = [&self.host.id, &self.raced.own_id];
        ids.into_iter().flatten().any(|own| own == id)
    }

    /// True where neither the host nor EC2 reported its instance in this run: the id in a list may be old.
    fn is_unconfirmed(&self, is_of_ec2: bool) -> bool {
        self.raced.own_id.is_none() && !(is_of_ec2 && self.host.id.is_some())
    }

    /// True where both have one boot id.
    fn has_boot_of(&self, other: &Member<'_>) -> bool {
        let boot = &self.raced.boot;
        !boot.is_empty() && *boot == other.raced.boot
    }

    /// True where both have one address, of which they may be ports.
    fn has_address_of(&self, other: &Member<'_>) -> bool {
        let address = |host: &HostRun| bare(&host.address).to_lowercase();
        address(self.host) == address(other.host)
    }
}

/// Options of the command that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoiceOptions {
    /// The hosts and their ids came from EC2 in this run.
    pub is_of_ec2: bool,
    /// The user sees the list first and can refuse it.
    pub is_shown: bool,
}

/// Chooses by what the race measured. Hosts that were not measured to be bad are neither chosen nor spared.
pub(super) fn choose(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
    asked: ChoiceOptions,
    resolve: Resolve<'_>,
) -> (Vec<Candidate>, Vec<SparedHost>) {
    let (mut candidates, mut spared) = (Vec::new(), Vec::new());
    if record.interrupted {
        return (candidates, spared);
    }
    let members: Vec<Member<'_>> = (run.hosts.iter())
        .zip(&record.hosts)
        .map(|(host, raced)| Member { host, raced })
        .collect();
    // The instances with those of their hosts that may be terminated, in the order of the ranking.
    let mut instances: Vec<(&str, Vec<&RankedHost>)> = Vec::new();
    for one in concluded.ranked.iter().filter(|one| one.is_bad) {
        let Some(member) = members.get(one.place) else {
            continue;
        };
        let id = doubt(one, member, record, concluded, asked)
            .map_or_else(|| id_of(member, asked.is_of_ec2), Err);
        match id {
            Ok(id) => match instances.iter_mut().find(|(other, _)| *other == id) {
                Some((_, hosts)) => hosts.push(one),
                None => instances.push((id, vec![one])),
            },
            Err(why) => spared.push(SparedHost::new(&member.host.host, why)),
        }
    }
    for (id, bad) in instances {
        match housemate(id, &bad, &members, asked.is_of_ec2) {
            SharedInstance::Sure(why) => spared.extend(bad.iter().map(|one| {
                let name = &members[one.place].host.host;
                SparedHost::new(name, why.clone())
            })),
            mate => {
                let mut one = candidate(id, &bad, &members, run.began, resolve);
                if let SharedInstance::Possible(name) = mate {
                    one.neighbour = Some(name);
                }
                one.target.figure = figures(&bad, record);
                candidates.push(one);
            }
        }
    }
    (candidates, spared)
}

/// Reason why a bad result may not be the host's fault, as a clause; `None` where there is none.
fn doubt<'a>(
    one: &RankedHost,
    member: &Member<'a>,
    record: &'a RaceRecord,
    concluded: &'a RaceConclusion,
    asked: ChoiceOptions,
) -> Option<String> {
    let doubts = one.doubts.join(" ");
    let doubts = doubts.trim_end_matches('.');
    let company = GroupPeers::of(member, record, concluded);
    if one.is_slowed {
        Some(format!("its figures are doubtful: {doubts}"))
    } else if member.raced.may_be_other {
        // Another boot may be another machine with other disks.
        let why = member
            .host
            .why
            .as_deref()
            .unwrap_or("it did not come to measure");
        let why = why.trim_end_matches('.');
        Some(format!(
            "it may not be the measured host any more: when it was reached again, {why}"
        ))
    } else if company.chosen == 0 {
        Some("no host of its group is kept, so that too much may have been asked".to_owned())
    } else if company.kept + company.tied == 0 {
        Some("no host of its group that is kept is there any more".to_owned())
    } else if asked.is_shown {
        None
    } else if let Some(better) = doubtful_better(one, member, record, concluded) {
        Some(format!(
            "the figures of those that are better are doubtful: {better}; without --yes you are asked"
        ))
    } else if company.left() < record.keep {
        Some(format!(
            "of its group {} of {} are kept{}; without --yes you are asked",
            company.left(),
            record.keep,
            if company.is_whole() { "" } else { " and there" }
        ))
    } else if doubts.is_empty() {
        None
    } else {
        Some(format!(
            "its figures are doubtful: {doubts}; without --yes you are asked"
        ))
    }
}

/// The hosts of a group that are kept or tie.
struct GroupPeers {
    /// Number of them, reachable at the end of the race or not.
    chosen: usize,
    /// Number that are kept and were there when the race was over.
    kept: usize,
    /// Number that tie and were there then.
    tied: usize,
    /// Number for which places they tie.
    places: usize,
}

impl GroupPeers {
    /// Those of the group of a host.
    fn of(member: &Member<'_>, record: &RaceRecord, concluded: &RaceConclusion) -> GroupPeers {
        let gone = |decided: Decision| {
            let better = better(member, record, concluded);
            better
                .filter(|other| other.decided == decided && other.is_gone)
                .count()
        };
        let mut groups = concluded.groups.iter();
        let group = groups.find(|group| Some(&group.name) == member.raced.group.as_ref());
        let (kept, tied) = group.map_or((0, 0), |group| (group.kept, group.tied));
        GroupPeers {
            chosen: kept + tied,
            kept: kept.saturating_sub(gone(Decision::Keep)),
            tied: tied.saturating_sub(gone(Decision::Tie)),
            places: group.map_or(0, |group| group.places),
        }
    }

    /// Number that will be kept in the end, of those that are there.
    fn left(&self) -> usize {
        self.kept + self.places.min(self.tied)
    }

    /// True where all of them are there.
    fn is_whole(&self) -> bool {
        self.kept + self.tied == self.chosen
    }
}

/// The hosts of the group of this one that are kept or tie.
fn better<'a>(
    member: &Member<'a>,
    record: &'a RaceRecord,
    concluded: &'a RaceConclusion,
) -> impl Iterator<Item = &'a RankedHost> {
    let group = member.raced.group.as_ref();
    concluded.ranked.iter().filter(move |other| {
        let raced = record.hosts.get(other.place);
        matches!(other.decided, Decision::Keep | Decision::Tie)
            && raced.and_then(|raced| raced.group.as_ref()) == group
    })
}

/// First doubt about the hosts that a culled one was compared with: those of its group that are kept or tie.
fn doubtful_better<'a>(
    one: &RankedHost,
    member: &Member<'a>,
    record: &'a RaceRecord,
    concluded: &'a RaceConclusion,
) -> Option<&'a str> {
    if one.decided != Decision::Cull {
        return None;
    }
    let mut better = better(member, record, concluded);
    let doubtful = better.find(|other| other.is_doubtful)?;
    let doubt = doubtful.doubts.first()?;
    Some(doubt.trim_end_matches('.'))
}

/// The instance of a host, as surely as it must be known.
///
/// # Errors
/// Reason why the host stays, as a clause.
fn id_of<'a>(member: &Member<'a>, is_of_ec2: bool) -> Result<&'a str, String> {
    match (&member.host.id, &member.raced.own_id) {
        _ if member.raced.is_tagged_keep => Err("it is tagged keep".to_owned()),
        (None, _) => Err("the id of its instance is not known".to_owned()),
        (Some(id), _) if !linux::aws::is_id(id, "i") => {
            Err(format!("its id is '{id}', which is none of EC2"))
        }
        (Some(id), Some(own)) if id != own => Err(format!("it calls itself {own}, and not {id}")),
        (Some(id), None) if !is_of_ec2 => Err(format!(
            "only the list states that it is {id}: its metadata service did not answer"
        )),
        (Some(id), _) => Ok(id),
    }
}

/// Another host on the same instance.
enum SharedInstance {
    /// None is.
    None,
    /// One is not known to be elsewhere, and was never met; what it is called.
    Possible(String),
    /// One is, or was measured and may be; which, as a clause.
    Sure(String),
}

/// The host that has the same instance as these, or may have it, and is not one of them. Several hosts can be
/// containers of one instance, or ports of one address.
fn housemate(
    id: &str,
    bad: &[&RankedHost],
    members: &[Member<'_>],
    is_of_ec2: bool,
) -> SharedInstance {
    let is_other = |place: usize| bad.iter().all(|one| one.place != place);
    let others = || {
        let others = members.iter().enumerate();
        others
            .filter(|(place, _)| is_other(*place))
            .map(|(_, member)| member)
    };
    let own = || bad.iter().filter_map(|one| members.get(one.place));
    let is_with = |other: &&Member<'_>| {
        let is_unconfirmed = other.is_unconfirmed(is_of_ec2);
        other.has_id(id) || (is_unconfirmed && own().any(|own| own.has_boot_of(other)))
    };
    if let Some(mate) = others().find(is_with) {
        let mate = &mate.host.host;
        return SharedInstance::Sure(format!(
            "{id} is also that of {mate}, which is not terminated"
        ));
    }
    let is_beside = |other: &&Member<'_>| {
        other.is_unconfirmed(is_of_ec2) && own().any(|own| own.has_address_of(other))
    };
    // One that took part may be a host that is kept, as one that is tagged so is in any case.
    let stays = |other: &&Member<'_>| other.raced.group.is_some() || other.raced.is_tagged_keep;
    if let Some(mate) = others().filter(is_beside).find(stays) {
        let mate = &mate.host.host;
        return SharedInstance::Sure(format!(
            "{mate} is at the same address, did not report whether it is {id} too, and is not terminated"
        ));
    }
    let beside = others().find(is_beside);
    beside.map_or(SharedInstance::None, |mate| {
        SharedInstance::Possible(mate.host.host.clone())
    })
}

/// Start of the race, by the clock of a host where that is behind this one: an instance's clock is nearer to
/// EC2's, and an earlier start spares more.
fn began_of(member: &Member<'_>, began: Timestamp) -> Timestamp {
    let ahead_s = member.host.clock_ahead_s.unwrap_or_default().min(0.0);
    let ahead = SignedDuration::try_from_secs_f64(ahead_s).unwrap_or_default();
    began.checked_add(ahead).unwrap_or(Timestamp::MIN)
}

/// Figures by which these hosts were ranked, as text; `None` where none was measured.
fn figures(bad: &[&RankedHost], record: &RaceRecord) -> Option<String> {
    let known = bad.iter().filter_map(|one| one.known);
    let figures: Vec<String> = known.map(|known| figure_text(&known, record)).collect();
    (!figures.is_empty()).then(|| figures.join(", "))
}

fn candidate(
    id: &str,
    bad: &[&RankedHost],
    members: &[Member<'_>],
    began: Timestamp,
    resolve: Resolve<'_>,
) -> Candidate {
    let of = |one: &&&RankedHost| members[one.place];
    let hosts: Vec<&str> = bad.iter().map(|one| of(&one).host.host.as_str()).collect();
    let mut why: Vec<&str> = bad.iter().map(|one| one.reason.as_str()).collect();
    why.dedup();
    let mut doubts: Vec<String> = Vec::new();
    for doubt in bad.iter().flat_map(|one| &one.doubts) {
        if !doubts.contains(doubt) {
            doubts.push(doubt.clone());
        }
    }
    let unconfirmed = bad.iter().map(|one| of(&one));
    let unconfirmed = unconfirmed.filter(|member| member.raced.own_id.is_none());
    Candidate {
        target: TerminationTarget {
            host: hosts.join(", "),
            id: id.to_owned(),
            why: why.join("; "),
            doubts,
            figure: None,
            state: None,
        },
        alone: (bad.iter().map(|one| of(&one)))
            .filter_map(|one| UnconfirmedAddress::of(one.host, one.raced, resolve))
            .collect(),
        unconfirmed: unconfirmed.map(|one| one.host.address.clone()).collect(),
        began: (bad.iter().map(|one| began_of(&of(&one), began)))
            .min()
            .unwrap_or(began),
        behind_s: (bad.iter().filter_map(|one| of(&one).host.clock_ahead_s))
            .filter(|ahead_s| *ahead_s > NOTICEABLE_S)
            .reduce(f64::max),
        neighbour: None,
    }
}
