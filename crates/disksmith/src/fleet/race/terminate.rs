//! `--terminate`: ends the instances that a race measured to be bad, through the user's own `aws`.
//!
//! An instance is only terminated where all of this is so, and every other is told why it is spared:
//! this race measured it to be worse than those that are kept, to miss a floor or to have a broken disk;
//! the host's own metadata service, or EC2 in this run, said that it is the instance of this id; no host that
//! stays is on it too; and EC2 says right before, also after the question, that it runs and has no tag `keep`.
//! Where nobody is asked (`--yes`), one whose figures are doubtful stays, and so do all of a group in which
//! fewer are kept than were wanted: a floor that none meets is most likely a slip.
//!
//! What shall be done is in the ledger before it is done, and nothing is where it cannot be written there.

mod aws;
mod carry;

use std::collections::BTreeSet;
use std::ops::Range;

use linux::exec::Exec;
use serde::{Deserialize, Serialize};

use super::super::hosts::instances_now;
use super::super::run::{FleetRun, HostRun};
use super::conclude::{Concluded, Ranked};
use super::record::{RaceRecord, RacedHost};

use aws::{Answer, command};
pub(super) use aws::{check_permission, ids_of, really};
pub(super) use carry::Ended;

/// So many instances are asked for or terminated with one command (Amazon EC2 API Reference,
/// TerminateInstances: a batch should be small).
const BATCH: usize = 50;
/// The state of an instance that is not known: EC2 was asked to terminate it and did not say what came of
/// it.
const UNKNOWN: &str = "unknown";

/// An instance that shall be terminated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Doomed {
    /// What the host is called.
    pub host: String,
    /// Its instance's id.
    pub id: String,
    /// What the race found, as a sentence without its end.
    pub why: String,
    /// Its state after EC2 was asked to terminate it; `None` before.
    pub state: Option<String>,
}

/// A host that was measured to be bad and stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spared {
    /// What it is called.
    pub host: String,
    /// Why, as a clause.
    pub why: String,
}

/// Who is terminated, and who is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Termination {
    /// Those that are.
    pub doomed: Vec<Doomed>,
    /// Those that could have been.
    pub spared: Vec<Spared>,
}

/// Runs a program, and gives what it writes.
pub(super) type RunProgram<'a> = &'a mut dyn FnMut(&Exec) -> Result<Vec<u8>, String>;

/// Writes down how far it is. Where that cannot be, nothing more is done.
pub(super) type WriteDown<'a> = &'a mut dyn FnMut(&Termination) -> Result<(), String>;

/// A host that may be terminated, as far as the race says.
struct Candidate<'a> {
    place: usize,
    address: &'a str,
    doomed: Doomed,
}

impl Termination {
    /// Chooses by what the race measured and by what EC2 says now. `is_of_ec2` says that the hosts and
    /// their ids came from EC2 in this run, and `is_asked` that somebody sees the list and can say no.
    ///
    /// # Errors
    /// A sentence, where EC2 cannot be asked.
    pub(crate) fn plan(
        run: &FleetRun,
        record: &RaceRecord,
        concluded: &Concluded,
        is_of_ec2: bool,
        is_asked: bool,
        program: RunProgram<'_>,
    ) -> Result<Termination, String> {
        let mut plan = Termination::default();
        if record.interrupted {
            return Ok(plan);
        }
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for one in concluded.ranked.iter().filter(|one| one.is_bad) {
            let (Some(host), Some(raced)) = (run.hosts.get(one.place), record.hosts.get(one.place))
            else {
                continue;
            };
            let group = concluded.groups.iter();
            let mut group = group.filter(|group| raced.group.as_ref() == Some(&group.name));
            let short = group.find(|group| group.kept + group.places < record.keep);
            let chosen =
                id_of(host, raced, is_of_ec2).and_then(|id| match (short, one.doubts.first()) {
                    (Some(group), _) if !is_asked => Err(format!(
                        "of its group {} of {} are kept; without --yes you are asked",
                        group.kept, record.keep
                    )),
                    (_, Some(doubt)) if !is_asked => Err(format!(
                        "its figures are doubtful: {}; without --yes you are asked",
                        doubt.trim_end_matches('.')
                    )),
                    _ => Ok(id),
                });
            match chosen {
                Ok(id) => candidates.push(Candidate {
                    place: one.place,
                    address: &host.address,
                    doomed: Doomed {
                        host: host.host.clone(),
                        id,
                        why: why(one),
                        state: None,
                    },
                }),
                Err(why) => plan.spare(&host.host, why),
            }
        }
        plan.ask(&mut candidates, record, program)?;
        plan.spare_shared(&mut candidates, run, record);
        plan.doomed = candidates.into_iter().map(|one| one.doomed).collect();
        Ok(plan)
    }

    /// Leaves those that EC2 says run, have no tag `keep`, and are who they are taken for.
    ///
    /// # Errors
    /// A sentence, where EC2 cannot be asked.
    fn ask(
        &mut self,
        candidates: &mut Vec<Candidate<'_>>,
        record: &RaceRecord,
        program: RunProgram<'_>,
    ) -> Result<(), String> {
        let mut known = Vec::new();
        for batch in candidates.chunks(BATCH) {
            let ids: Vec<&str> = batch.iter().map(|one| one.doomed.id.as_str()).collect();
            known.extend(instances_now(&ids, program)?);
        }
        candidates.retain(
            |Candidate {
                 place,
                 address,
                 doomed,
             }| {
                let id = &doomed.id;
                // Where the host itself did not say who it is, its address must.
                let is_confirmed = record
                    .hosts
                    .get(*place)
                    .is_some_and(|raced| raced.own_id.is_some());
                let why = match known.iter().find(|now| now.id == *id) {
                    None => format!("EC2 does not know {id}"),
                    Some(now) if now.is_tagged_keep => format!("{id} is tagged keep"),
                    Some(now) if now.state != "running" => format!("{id} is {}", now.state),
                    Some(now) if !is_confirmed && !is_at(&now.addresses, address) => {
                        format!("{id} is not at {address}")
                    }
                    Some(_) => return true,
                };
                self.spare(&doomed.host, why);
                false
            },
        );
        Ok(())
    }

    /// Spares those whose instance another host is on that stays, as where several containers of one
    /// instance were raced.
    fn spare_shared(
        &mut self,
        candidates: &mut Vec<Candidate<'_>>,
        run: &FleetRun,
        record: &RaceRecord,
    ) {
        let leaving: BTreeSet<usize> = candidates.iter().map(|one| one.place).collect();
        candidates.retain(|one| {
            let id = &one.doomed.id;
            let all = run.hosts.iter().zip(&record.hosts).enumerate();
            let mut others = all.filter(|(place, _)| !leaving.contains(place));
            let other = others.find(|(_, (host, raced))| {
                host.id.as_ref() == Some(id) || raced.own_id.as_ref() == Some(id)
            });
            if let Some((_, (other, _))) = other {
                let why = format!("{id} is the instance of {} too, which stays", other.host);
                self.spare(&one.doomed.host, why);
            }
            other.is_none()
        });
    }

    /// Leaves only those that a later plan has too, and says why each other stays.
    fn keep_only(&mut self, later: &Termination) -> Vec<String> {
        let mut told = Vec::new();
        let doomed = std::mem::take(&mut self.doomed);
        for one in doomed {
            if later.doomed.iter().any(|other| other.id == one.id) {
                self.doomed.push(one);
                continue;
            }
            let spared = later.spared.iter().find(|other| other.host == one.host);
            let why = spared.map_or("it is not what it was", |other| other.why.as_str());
            told.push(format!("{} stays: {why}.", one.host));
            self.spare(&one.host, why.to_owned());
        }
        told
    }

    /// Who shall be terminated, and who not, for the user to agree to.
    pub(crate) fn text(&self) -> String {
        let mut text = match self.doomed.len() {
            0 => "No instance is terminated.\n".to_owned(),
            1 => "To be terminated is 1 instance:\n".to_owned(),
            count => format!("To be terminated are {count} instances:\n"),
        };
        for one in &self.doomed {
            text.push_str(&format!("  {} ({}): {}.\n", one.host, one.id, one.why));
        }
        for one in &self.spared {
            text.push_str(&format!("  {} stays: {}.\n", one.host, one.why));
        }
        text.pop();
        text
    }

    fn spare(&mut self, host: &str, why: String) {
        self.spared.push(Spared {
            host: host.to_owned(),
            why,
        });
    }

    /// Terminates them, and notes their states. A batch that fails does not spare those behind it.
    ///
    /// # Errors
    /// A sentence, where a command fails, or what is done cannot be written down.
    pub(crate) fn execute(
        &mut self,
        program: RunProgram<'_>,
        write_down: WriteDown<'_>,
    ) -> Result<(), String> {
        let mut failed = Vec::new();
        let all = self.doomed.len();
        for begin in (0..all).step_by(BATCH) {
            let batch = begin..(begin + BATCH).min(all);
            // Whatever ends this program now, nobody can say that it was not tried.
            self.note(batch.clone(), |_| Some(UNKNOWN.to_owned()));
            if let Err(why) = write_down(self) {
                self.note(batch, |_| None);
                failed.push(why);
                break;
            }
            if let Err(why) = self.execute_batch(batch, program) {
                failed.push(why);
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join(" "))
        }
    }

    fn execute_batch(
        &mut self,
        batch: Range<usize>,
        program: RunProgram<'_>,
    ) -> Result<(), String> {
        let ids = self.ids(batch.clone());
        let answered = program(&command(&ids)).and_then(|answer| {
            serde_json::from_slice::<Answer>(&answer).map_err(|why| {
                format!(
                    "What 'aws ec2 terminate-instances' wrote is not the JSON that it should be: {why}."
                )
            })
        });
        match answered {
            Ok(states) => {
                self.note(batch, |id| {
                    states.of(id).or_else(|| Some(UNKNOWN.to_owned()))
                });
                Ok(())
            }
            Err(why) => {
                // It may have been done all the same, or a part of it.
                let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
                let now = instances_now(&asked, program).unwrap_or_default();
                let state = |id: &str| {
                    now.iter()
                        .find(|one| one.id == id)
                        .map(|one| one.state.clone())
                };
                self.note(batch, |id| state(id).or_else(|| Some(UNKNOWN.to_owned())));
                Err(why)
            }
        }
    }

    /// Notes the states of a batch, by the ids.
    fn note(&mut self, batch: Range<usize>, state: impl Fn(&str) -> Option<String>) {
        for doomed in self.doomed.get_mut(batch).unwrap_or_default() {
            doomed.state = state(&doomed.id);
        }
    }

    /// The ids of a batch, each once.
    fn ids(&self, batch: Range<usize>) -> Vec<String> {
        let doomed = self.doomed.get(batch).unwrap_or_default();
        let ids: BTreeSet<&String> = doomed.iter().map(|one| &one.id).collect();
        ids.into_iter().cloned().collect()
    }
}

/// The id of a host's instance, as surely as it must be known.
///
/// # Errors
/// Why the host is spared, as a clause.
fn id_of(host: &HostRun, raced: &RacedHost, is_of_ec2: bool) -> Result<String, String> {
    match (&host.id, &raced.own_id) {
        _ if raced.is_tagged_keep => Err("it is tagged keep".to_owned()),
        (None, _) => Err("the id of its instance is not known".to_owned()),
        (Some(id), Some(own)) if id != own => Err(format!("it calls itself {own}, and not {id}")),
        (Some(id), None) if !is_of_ec2 => Err(format!(
            "only the list says that it is {id}: its metadata service did not answer"
        )),
        (Some(id), _) => Ok(id.clone()),
    }
}

/// What the race found, with what makes that doubtful.
fn why(one: &Ranked) -> String {
    match one.doubts.first() {
        Some(doubt) => format!("{}; doubtful: {}", one.reason, doubt.trim_end_matches('.')),
        None => one.reason.clone(),
    }
}

/// Whether one of these addresses is the one that was given to ssh.
fn is_at(addresses: &[String], given: &str) -> bool {
    let given = given.rsplit_once('@').map_or(given, |(_, host)| host);
    addresses.iter().any(|address| address == given)
}

#[cfg(test)]
mod tests;
