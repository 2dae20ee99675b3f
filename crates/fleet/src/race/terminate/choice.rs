//! Selection of the instances that may be terminated, by the race and the source of the hosts.

use jiff::{SignedDuration, Timestamp};

use crate::hosts::InstanceState;
use crate::race::conclude::{Decision, GroupEnd, RaceConclusion, RankedHost};
use crate::race::report::figure_text;
use crate::race::terminate::address::{Addresses, addresses_of, without_user};
use crate::store::race::{RaceRecord, RacedHost};
use crate::store::termination::{SparedHost, TerminationTarget};
use crate::store::{FleetRun, HostRun};

/// An instance on which all hosts were measured to be bad.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The instance.
    pub target: TerminationTarget,
    /// Addresses of its hosts that did not report their own instance id.
    listed: Vec<String>,
    /// Addresses of its hosts whose instance id only they themselves report.
    pub alone: Vec<String>,
    /// Start of the race, by the earliest of the known clocks.
    began: Timestamp,
}

impl Candidate {
    /// Doubt about it in its present state in EC2, as a sentence; `None` without one.
    ///
    /// # Errors
    /// Reason to spare it in this state, as a clause.
    pub(super) fn check(
        &self,
        known: &[InstanceState],
        addresses: &Addresses,
    ) -> Result<Option<String>, String> {
        let id = &self.target.id;
        let Some(now) = known.iter().find(|now| now.id == *id) else {
            return Err(format!("EC2 does not know {id}"));
        };
        match now.launched {
            _ if now.is_tagged_keep => return Err(format!("{id} is tagged keep")),
            _ if now.state != "running" => return Err(format!("{id} is {}", now.state)),
            None => return Err(format!("EC2 does not report since when {id} runs")),
            // After a restart it may have other hardware, and other local disks.
            Some(launched) if launched > self.began => {
                return Err(format!(
                    "{id} was started at {launched}, after the race began at {:.0} by the earliest clock of this machine \
                     and its hosts",
                    self.began
                ));
            }
            Some(_) => {}
        }
        let is_elsewhere = |reached: &&String| {
            let found = addresses_of(reached, addresses);
            !now.addresses.iter().any(|own| found.contains(own))
        };
        if let Some(address) = self.listed.iter().find(is_elsewhere) {
            return Err(format!("{id} is not at {address}"));
        }
        Ok(self.alone.iter().find(is_elsewhere).map(|address| {
            let why = match addresses_of(address, addresses).is_empty() {
                true => format!("no address of {address} was found"),
                false => format!("EC2 does not have it at {address}"),
            };
            format!("Only the host itself reports that it is {id}, and {why}.")
        }))
    }
}

/// Options of the command that the selection depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoiceOptions {
    /// True if the hosts and their ids came from EC2 in this run.
    pub is_of_ec2: bool,
    /// True if the user sees the list first and can refuse it.
    pub is_shown: bool,
}

/// Selects by the results of the race. Hosts that were not measured to be bad are neither selected nor spared.
pub(super) fn choose<'a>(
    run: &'a FleetRun,
    record: &'a RaceRecord,
    concluded: &'a RaceConclusion,
    options: ChoiceOptions,
) -> (Vec<Candidate>, Vec<SparedHost>) {
    let member = |ranked: &'a RankedHost| {
        let host = run.hosts.get(ranked.place)?;
        let raced = record.hosts.get(ranked.place)?;
        let mut groups = concluded.groups.iter();
        Some(Member {
            ranked,
            host,
            raced,
            group: groups.find(|group| Some(&group.name) == raced.group.as_ref()),
        })
    };
    let race = Race {
        members: concluded.ranked.iter().filter_map(member).collect(),
        record,
        began: run.began,
        options,
    };
    let (mut chosen, mut spared) = (Vec::new(), Vec::new());
    // The instances with those of their hosts that may be terminated, in the order of the ranking.
    let mut instances: Vec<(&str, Vec<Member<'_>>)> = Vec::new();
    for one in race.members.iter().filter(|one| one.ranked.is_bad) {
        match race.instance_of(one) {
            Ok(id) => match instances.iter_mut().find(|(other, _)| *other == id) {
                Some((_, bad)) => bad.push(*one),
                None => instances.push((id, vec![*one])),
            },
            Err(why) => spared.push(SparedHost::new(&one.host.host, why)),
        }
    }
    for (id, bad) in instances {
        match race.neighbour_doubt(id, &bad) {
            Ok(doubt) => chosen.push(race.candidate(id, &bad, doubt)),
            Err(why) => {
                let names = bad.iter().map(|one| &one.host.host);
                spared.extend(names.map(|name| SparedHost::new(name, why.clone())));
            }
        }
    }
    (chosen, spared)
}

/// A host of the race, with all known facts.
#[derive(Clone, Copy)]
struct Member<'a> {
    ranked: &'a RankedHost,
    host: &'a HostRun,
    raced: &'a RacedHost,
    group: Option<&'a GroupEnd>,
}

/// A race, for the selection.
struct Race<'a> {
    /// The hosts, in the order of the ranking.
    members: Vec<Member<'a>>,
    record: &'a RaceRecord,
    began: Timestamp,
    options: ChoiceOptions,
}

impl<'a> Race<'a> {
    /// The id of the instance of a bad host, with the certainty that rules 2 to 5 require.
    ///
    /// # Errors
    /// Reason why the host is spared, as a clause.
    fn instance_of(&self, one: &Member<'a>) -> Result<&'a str, String> {
        let (kept, there) =
            (one.group).map_or((0, 0), |group| (group.kept + group.tied, group.there));
        if one.ranked.is_slowed {
            let doubts = clause(&one.ranked.doubts);
            return Err(format!("its figures are doubtful: {doubts}"));
        }
        if one.raced.may_be_other {
            // After another boot it may be another machine with other disks.
            let why = one.host.why.as_deref();
            let why = why.unwrap_or("it did not come to measure");
            return Err(format!(
                "it may not be the measured host any more: when it was reached again, {}",
                why.trim_end_matches('.')
            ));
        }
        if kept == 0 {
            return Err(
                "no host of its group is kept, so that too much may have been asked".to_owned(),
            );
        }
        if there == 0 {
            return Err("no host of its group that is kept is there any more".to_owned());
        }
        match (&one.host.id, &one.raced.own_id) {
            _ if one.raced.is_tagged_keep => Err("it is tagged keep".to_owned()),
            (None, _) => Err("the id of its instance is not known".to_owned()),
            (Some(id), _) if !linux::aws::is_id(id, "i") => {
                Err(format!("its id is '{id}', which is none of EC2"))
            }
            (Some(id), Some(own)) if id != own => {
                Err(format!("it calls itself {own}, and not {id}"))
            }
            (Some(id), None) if !self.options.is_of_ec2 => Err(format!(
                "only the list states that it is {id}: its metadata service did not answer"
            )),
            (Some(id), _) => Ok(id),
        }
    }

    /// Doubt that a host other than `bad`, all bad hosts of the instance, is on the same instance; `None` if no other
    /// may be (rule 6). Several hosts can be containers of one instance, or ports of one address.
    ///
    /// # Errors
    /// Reason why the instance is spared, as a clause.
    fn neighbour_doubt(&self, id: &str, bad: &[Member<'_>]) -> Result<Option<String>, String> {
        let is_other =
            |one: &&Member<'_>| bad.iter().all(|own| own.ranked.place != one.ranked.place);
        let mut doubt = None;
        for other in self.members.iter().filter(is_other) {
            let (name, raced) = (&other.host.host, other.raced);
            let mut ids = [&other.host.id, &raced.own_id].into_iter().flatten();
            let has_id = ids.any(|own| own == id);
            // The id in a list may be outdated, if neither the host nor EC2 reported it in this run.
            let is_unconfirmed =
                raced.own_id.is_none() && !(self.options.is_of_ec2 && other.host.id.is_some());
            let has_boot = bad
                .iter()
                .any(|own| !raced.boot.is_empty() && own.raced.boot == raced.boot);
            if has_id || (is_unconfirmed && has_boot) {
                return Err(format!(
                    "{id} is also that of {name}, which is not terminated"
                ));
            }
            let address = without_user(&other.host.address);
            let mut own = bad.iter().map(|own| without_user(&own.host.address));
            let has_address = own.any(|own| own.eq_ignore_ascii_case(address));
            if !is_unconfirmed || !has_address {
                continue;
            }
            // A host that took part may be a kept one, and a tagged host is kept in any case.
            if raced.group.is_some() || raced.is_tagged_keep {
                return Err(format!(
                    "{name} is at the same address, did not report whether it is {id} too, and is not terminated"
                ));
            }
            doubt.get_or_insert(format!(
                "{name} is at the same address, and did not report whether it is {id} too."
            ));
        }
        Ok(doubt)
    }

    /// Doubts about the result of a host, as sentences. Those about its group are in the list if it is shown, in the
    /// lines of the kept hosts.
    fn doubts(&self, one: &Member<'_>) -> Vec<String> {
        let mut doubts = one.ranked.doubts.clone();
        if self.options.is_shown {
            return doubts;
        }
        let is_better = |other: &&Member<'_>| {
            matches!(other.ranked.decided, Decision::Keep | Decision::Tie)
                && other.raced.group == one.raced.group
        };
        let mut better = self.members.iter().filter(is_better);
        // A floor is missed independently of other hosts.
        let is_compared = one.ranked.decided == Decision::Cull;
        if let Some(better) = better.find(|other| is_compared && other.ranked.is_doubtful) {
            doubts.push(format!(
                "The figures of those that are better are doubtful: {}.",
                clause(&better.ranked.doubts)
            ));
        }
        let there = one.group.map_or(0, |group| group.there);
        if there < self.record.keep {
            let keep = self.record.keep;
            doubts.push(format!(
                "Of its group {there} of {keep} are kept and there."
            ));
        }
        doubts
    }

    fn candidate(&self, id: &str, bad: &[Member<'_>], doubt: Option<String>) -> Candidate {
        let names: Vec<&str> = bad.iter().map(|one| one.host.host.as_str()).collect();
        let reasons = distinct(bad.iter().map(|one| one.ranked.reason.clone()));
        let known = bad.iter().filter_map(|one| one.ranked.known);
        let figures: Vec<String> = known
            .map(|known| figure_text(&known, self.record))
            .collect();
        let addresses = |is: fn(&RacedHost) -> bool| -> Vec<String> {
            let hosts = bad.iter().filter(|one| is(one.raced));
            hosts.map(|one| one.host.address.clone()).collect()
        };
        // By the clock of a host if it is behind this one: an instance's clock is nearer to EC2's, and an earlier
        // start spares more.
        let ahead_s = bad.iter().filter_map(|one| one.host.clock_ahead_s);
        let ahead = SignedDuration::try_from_secs_f64(ahead_s.fold(0.0, f64::min));
        let began = self.began.checked_add(ahead.unwrap_or_default());
        Candidate {
            target: TerminationTarget {
                host: names.join(", "),
                id: id.to_owned(),
                why: reasons.join("; "),
                doubts: distinct(bad.iter().flat_map(|one| self.doubts(one)).chain(doubt)),
                figure: (!figures.is_empty()).then(|| figures.join(", ")),
                state: None,
            },
            listed: addresses(|raced| raced.own_id.is_none()),
            alone: addresses(|raced| raced.given_id.is_none()),
            began: began.unwrap_or(Timestamp::MIN),
        }
    }
}

/// Doubts as a clause.
pub(super) fn clause(doubts: &[String]) -> String {
    doubts.join(" ").trim_end_matches('.').to_owned()
}

/// Texts without duplicates, in their order.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
