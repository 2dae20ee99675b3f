//! `--terminate`: ends the instances that a race measured to be bad, through the user's own `aws`.
//!
//! An instance is only terminated where all of this is so, and every other is told why it is spared:
//! this race measured it to be worse than those that are kept, to miss a floor or to have a broken disk;
//! the host's own metadata service, or EC2 in this run, said that it is the instance of this id; and EC2 says
//! right before that it runs and has no tag `keep`.

use linux::exec::Exec;
use serde::{Deserialize, Serialize};

use super::super::hosts::{self, Host, instances_now};
use super::super::run::FleetRun;
use super::conclude::Concluded;
use super::record::RaceRecord;

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
pub(crate) type RunProgram<'a> = &'a mut dyn FnMut(&Exec) -> Result<Vec<u8>, String>;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::race::conclude::{Decided, Ranked};
    use crate::fleet::race::record::RacedHost;
    use crate::fleet::run::{HostRun, Kind};

    /// A race that has measured all of its hosts to be bad, but the first.
    fn race(hosts: &[(&str, Option<&str>, RacedHost)]) -> (FleetRun, RaceRecord, Concluded) {
        let host = |(name, id, _): &(&str, Option<&str>, RacedHost)| {
            HostRun::waiting(&Host {
                name: (*name).to_owned(),
                address: format!("admin@{name}"),
                id: id.map(str::to_owned),
                ..Host::default()
            })
        };
        let record = RaceRecord {
            keep: 1,
            figures: Vec::new(),
            floors: Vec::new(),
            round_s: 1.0,
            least_rounds: 2,
            most_rounds: 9,
            ties: None,
            hosts: hosts.iter().map(|(_, _, raced)| raced.clone()).collect(),
            rounds: Vec::new(),
            interrupted: false,
            termination: None,
        };
        let run = FleetRun {
            id: "f".to_owned(),
            began: jiff::Timestamp::UNIX_EPOCH,
            kind: Kind::Race,
            args: Vec::new(),
            hosts: hosts.iter().map(host).collect(),
            race: None,
        };
        let ranked = |place: usize| Ranked {
            place,
            decided: Decided::Cull,
            reason: "3 others are better".to_owned(),
            is_bad: place > 0,
            known: None,
            missed: 0,
        };
        let concluded = Concluded {
            groups: Vec::new(),
            ranked: (0..hosts.len()).map(ranked).collect(),
            noise: None,
        };
        (run, record, concluded)
    }

    fn own(id: &str) -> RacedHost {
        RacedHost {
            own_id: Some(id.to_owned()),
            ..RacedHost::default()
        }
    }

    /// An EC2 that knows these instances: id, state, address, and whether it is tagged.
    fn ec2(
        instances: &'static [(&str, &str, &str, bool)],
    ) -> impl FnMut(&Exec) -> Result<Vec<u8>, String> {
        move |program| {
            let line = program.line();
            let asked = instances.iter().filter(|one| line.contains(one.0));
            let each: Vec<String> = asked
                .map(|(id, state, address, keep)| {
                    let key = if *keep { "Keep" } else { "Name" };
                    format!(
                        r#"{{"InstanceId": "{id}", "State": {{"Name": "{state}"}},
                            "PrivateIpAddress": "{address}", "CurrentState": {{"Name": "shutting-down"}},
                            "Tags": [{{"Key": "{key}", "Value": ""}}]}}"#
                    )
                })
                .collect();
            let each = each.join(",");
            if line.contains("describe-instances") {
                Ok(format!(r#"{{"Reservations": [{{"Instances": [{each}]}}]}}"#).into_bytes())
            } else if line.contains("--dry-run") {
                Err("status 254: An error occurred (DryRunOperation)".to_owned())
            } else {
                Ok(format!(r#"{{"TerminatingInstances": [{each}]}}"#).into_bytes())
            }
        }
    }

    const SOUND: &[(&str, &str, &str, bool)] = &[
        ("i-0", "running", "h0", false),
        ("i-1", "running", "h1", false),
        ("i-2", "running", "h2", true),
        ("i-3", "stopped", "h3", false),
    ];

    fn planned(hosts: &[(&str, Option<&str>, RacedHost)], is_of_ec2: bool) -> Termination {
        let (run, record, concluded) = race(hosts);
        Termination::plan(&run, &record, &concluded, is_of_ec2, &mut ec2(SOUND)).unwrap()
    }

    fn doomed(plan: &Termination) -> Vec<&str> {
        plan.doomed.iter().map(|one| one.id.as_str()).collect()
    }

    #[test]
    fn only_what_was_measured_to_be_bad_and_is_not_tagged_is_terminated() {
        let tagged = RacedHost {
            is_tagged_keep: true,
            ..own("i-1")
        };
        let plan = planned(
            &[
                ("h0", Some("i-0"), own("i-0")),
                ("h1", Some("i-1"), own("i-1")),
                ("h2", Some("i-2"), own("i-2")),
                ("h3", Some("i-3"), own("i-3")),
                ("h4", Some("i-4"), own("i-4")),
                ("h5", None, RacedHost::default()),
                ("h6", Some("i-1"), tagged),
                ("h7", Some("i-1"), own("i-9")),
                ("h8", Some("i-1"), RacedHost::default()),
            ],
            false,
        );
        assert_eq!(doomed(&plan), ["i-1"]);
        let spared = |name: &str| {
            let mut spared = plan.spared.iter();
            spared
                .find(|one| one.host == name)
                .map(|one| one.why.as_str())
        };
        for (name, why) in [
            ("h0", None),
            ("h2", Some("i-2 is tagged keep")),
            ("h3", Some("i-3 is stopped")),
            ("h4", Some("EC2 does not know i-4")),
            ("h5", Some("the id of its instance is not known")),
            ("h6", Some("it is tagged keep")),
            ("h7", Some("it calls itself i-9, and not i-1")),
        ] {
            assert_eq!(spared(name), why, "{name}");
        }
        assert!(
            spared("h8")
                .unwrap()
                .starts_with("only the list says that it is i-1")
        );
    }

    #[test]
    fn what_ec2_listed_must_still_be_at_its_address() {
        let hosts = [
            ("h0", Some("i-0"), RacedHost::default()),
            ("h1", Some("i-1"), RacedHost::default()),
        ];
        assert_eq!(doomed(&planned(&hosts, true)), ["i-1"]);
        let moved = [hosts[0].clone(), ("h9", Some("i-1"), RacedHost::default())];
        let plan = planned(&moved, true);
        assert!(plan.doomed.is_empty());
        assert_eq!(plan.spared[0].why, "i-1 is not at admin@h9");
    }

    #[test]
    fn a_race_that_was_interrupted_terminates_nothing() {
        let (run, mut record, concluded) = race(&[
            ("h0", Some("i-0"), own("i-0")),
            ("h1", Some("i-1"), own("i-1")),
        ]);
        record.interrupted = true;
        let plan = Termination::plan(&run, &record, &concluded, true, &mut ec2(SOUND));
        assert_eq!(plan.unwrap(), Termination::default());
    }

    #[test]
    fn what_came_of_each_is_told_and_a_permission_that_is_missing_too() {
        let hosts = [
            ("h0", Some("i-0"), own("i-0")),
            ("h1", Some("i-1"), own("i-1")),
        ];
        let mut plan = planned(&hosts, false);
        plan.execute(&mut ec2(SOUND)).unwrap();
        assert_eq!(plan.doomed[0].state.as_deref(), Some("shutting-down"));
        let ids = ["i-1".to_owned()];
        assert_eq!(check_permission(&ids, &mut ec2(SOUND)), Ok(()));
        let mut denied = |_: &Exec| Err("status 254: (UnauthorizedOperation)".to_owned());
        let why = check_permission(&ids, &mut denied).unwrap_err();
        assert!(why.contains("UnauthorizedOperation"), "{why}");
        // Something that terminates in place of a rehearsal is not what it should be.
        let mut wrong = |_: &Exec| Ok(Vec::new());
        assert!(check_permission(&ids, &mut wrong).is_err());
    }
}
