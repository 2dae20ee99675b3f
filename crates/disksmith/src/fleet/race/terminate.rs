//! `--terminate`: ends the instances that a race measured to be bad, through the user's own `aws`.
//!
//! An instance is only terminated where all of this is so, and every other is told why it is spared:
//! this race measured it to be worse than those that are kept, to miss a floor or to have a broken disk;
//! the host's own metadata service, or EC2 in this run, said that it is the instance of this id; and EC2 says
//! right before that it runs and has no tag `keep`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use linux::exec::Exec;
use serde::{Deserialize, Serialize};

use super::super::agree::is_agreed;
use super::super::hosts::{self, Host, instances_now};
use super::super::run::FleetRun;
use super::conclude::Concluded;
use super::record::RaceRecord;
use crate::cli::RaceArgs;
use crate::context::Context;
use crate::failure::Failure;

/// So many instances are asked for or terminated with one command (Amazon EC2 API Reference,
/// TerminateInstances: a batch should be small).
const BATCH: usize = 50;
/// What EC2 says of a dry run that would have worked (Amazon EC2 API Reference, DryRun).
const WOULD: &str = "DryRunOperation";

/// An instance that shall be terminated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Doomed {
    /// What the host is called.
    pub host: String,
    /// Its instance's id.
    pub id: String,
    /// What the race found, as a sentence without its end.
    pub why: String,
    /// Its state after it was terminated; `None` before.
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

impl Termination {
    /// Chooses by what the race measured and by what EC2 says now. `is_of_ec2` says that the hosts and
    /// their ids came from EC2 in this run.
    ///
    /// # Errors
    /// A sentence, where EC2 cannot be asked.
    pub(crate) fn plan(
        run: &FleetRun,
        record: &RaceRecord,
        concluded: &Concluded,
        is_of_ec2: bool,
        program: RunProgram<'_>,
    ) -> Result<Termination, String> {
        let mut plan = Termination::default();
        if record.interrupted {
            return Ok(plan);
        }
        let mut chosen: Vec<(Doomed, &str)> = Vec::new();
        for one in concluded.ranked.iter().filter(|one| one.is_bad) {
            let (Some(host), Some(raced)) = (run.hosts.get(one.place), record.hosts.get(one.place))
            else {
                continue;
            };
            let why = match (&host.id, &raced.own_id) {
                _ if raced.is_tagged_keep => "it is tagged keep".to_owned(),
                (None, _) => "the id of its instance is not known".to_owned(),
                (Some(id), Some(own)) if id != own => {
                    format!("it calls itself {own}, and not {id}")
                }
                (Some(id), None) if !is_of_ec2 => format!(
                    "only the list says that it is {id}: its metadata service did not answer"
                ),
                (Some(id), _) => {
                    let doomed = Doomed {
                        host: host.host.clone(),
                        id: id.clone(),
                        why: one.reason.clone(),
                        state: None,
                    };
                    chosen.push((doomed, &host.address));
                    continue;
                }
            };
            plan.spare(&host.host, why);
        }
        for batch in chosen.chunks(BATCH) {
            let ids: Vec<&str> = batch.iter().map(|(doomed, _)| doomed.id.as_str()).collect();
            let known = instances_now(&ids, program)?;
            for (doomed, address) in batch {
                let now = known.iter().find(|now| now.id == doomed.id);
                let by_address = now.is_some_and(|now| is_at(&now.addresses, address));
                match now {
                    None => plan.spare(&doomed.host, format!("EC2 does not know {}", doomed.id)),
                    Some(now) if now.is_tagged_keep => {
                        plan.spare(&doomed.host, format!("{} is tagged keep", doomed.id));
                    }
                    Some(now) if now.state != "running" => {
                        plan.spare(&doomed.host, format!("{} is {}", doomed.id, now.state));
                    }
                    // Where the host itself did not say who it is, its address must.
                    Some(_) if !is_confirmed(run, record, &doomed.host) && !by_address => {
                        plan.spare(&doomed.host, format!("{} is not at {address}", doomed.id));
                    }
                    Some(_) => plan.doomed.push(doomed.clone()),
                }
            }
        }
        Ok(plan)
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

    /// Terminates them, and notes their states. What was done before an error stays noted.
    ///
    /// # Errors
    /// A sentence, where a command fails.
    pub(crate) fn execute(&mut self, program: RunProgram<'_>) -> Result<(), String> {
        for batch in self.doomed.chunks_mut(BATCH) {
            let ids: Vec<String> = batch.iter().map(|doomed| doomed.id.clone()).collect();
            let answer = program(&command(&ids))?;
            let states: Answer = serde_json::from_slice(&answer).map_err(|why| {
                format!(
                    "What 'aws ec2 terminate-instances' wrote is not the JSON that it should be, so \
                     that it is not known what came of {}: {why}.",
                    ids.join(", ")
                )
            })?;
            for doomed in batch {
                let state = states.of(&doomed.id);
                doomed.state = Some(state.unwrap_or_else(|| "unknown".to_owned()));
            }
        }
        Ok(())
    }
}

/// Whether the host itself said which instance it is.
fn is_confirmed(run: &FleetRun, record: &RaceRecord, name: &str) -> bool {
    let mut both = run.hosts.iter().zip(&record.hosts);
    both.any(|(host, raced)| host.host == name && raced.own_id.is_some())
}

/// Whether one of these addresses is the one that was given to ssh.
fn is_at(addresses: &[String], given: &str) -> bool {
    let given = given.rsplit_once('@').map_or(given, |(_, host)| host);
    addresses.iter().any(|address| address == given)
}

/// Checks the permission with a dry run.
///
/// # Errors
/// A sentence, where these instances could not be terminated.
pub(crate) fn check_permission(ids: &[String], program: RunProgram<'_>) -> Result<(), String> {
    for batch in ids.chunks(BATCH) {
        match program(&command(batch).arg("--dry-run")) {
            // It always ends badly: well, too.
            Err(why) if why.contains(WOULD) => {}
            Ok(_) => {
                return Err(
                    "'aws ec2 terminate-instances --dry-run' did not say what it would do; nothing is \
                     terminated through such a program."
                        .to_owned(),
                );
            }
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// The ids that the source of the hosts knows.
pub(crate) fn ids_of(hosts: &[Host]) -> Vec<String> {
    hosts.iter().filter_map(|host| host.id.clone()).collect()
}

/// Runs a program that does not outlive this one.
///
/// # Errors
/// A sentence, where it fails.
pub(crate) fn really(program: &Exec) -> Result<Vec<u8>, String> {
    hosts::run(program)
}

fn command(ids: &[String]) -> Exec {
    Exec::new("aws")
        .args([
            "ec2",
            "terminate-instances",
            "--output",
            "json",
            "--instance-ids",
        ])
        .args(ids)
        .limit(hosts::LIMIT)
}

/// What `aws ec2 terminate-instances` answers (Amazon EC2 API Reference, TerminateInstances).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    terminating_instances: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Change {
    instance_id: String,
    current_state: Option<State>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    name: Option<String>,
}

impl Answer {
    fn of(&self, id: &str) -> Option<String> {
        let change = self
            .terminating_instances
            .iter()
            .find(|one| one.instance_id == id)?;
        change.current_state.as_ref()?.name.clone()
    }
}

/// Terminates the instances that were measured to be bad, after the list was shown and agreed to.
///
/// # Errors
/// Failed midway, where EC2 cannot be asked, does not allow it, or nobody agrees: the race is over by then.
pub(super) fn carry_out(
    run: &mut FleetRun,
    concluded: &Concluded,
    args: &RaceArgs,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let midway = |why: String| Failure::Midway(anyhow!("no instance was terminated: {why}"));
    let Some(record) = run.race.as_deref().filter(|record| !record.interrupted) else {
        return Ok(());
    };
    let is_of_ec2 = !args.source.ec2.is_empty();
    let program = &mut really;
    let mut plan = Termination::plan(run, record, concluded, is_of_ec2, program).map_err(midway)?;
    context.tell(&plan.text());
    let ids: Vec<String> = plan.doomed.iter().map(|one| one.id.clone()).collect();
    check_permission(&ids, program).map_err(midway)?;
    let words = format!("These {} instances will be terminated.", ids.len());
    let asked = || is_agreed(&words, "terminated", interrupt);
    let is_wanted = ids.is_empty() || args.yes || {
        // Much was done by now, whatever is answered.
        asked().map_err(|failure| Failure::Midway(failure.error()))?
    };
    if !is_wanted || interrupt.load(Relaxed) {
        return Err(midway("nobody has agreed".to_owned()));
    }
    let executed = plan.execute(program);
    if let Some(record) = &mut run.race {
        record.termination = Some(plan);
    }
    executed.map_err(|why| {
        Failure::Midway(anyhow!(
            "not all instances were terminated; 'disksmith fleet show {}' says which were: {why}",
            run.id
        ))
    })
}

#[cfg(test)]
mod tests;
