//! An EC2 and races for tests.

mod choice;
mod done;

use linux::aws::Error;
use linux::exec::Exec;

use super::*;
use crate::race::conclude::{Decision, GroupEnd, RankedHost};
use crate::store::HostRun;
use crate::store::race::RacedHost;

/// A host: its name, id in its source, and its record in the race. That of `h1` is reached at 10.0.0.1.
type Member = (&'static str, Option<&'static str>, RacedHost);

/// A race that has measured all hosts but the first to be bad.
fn race(hosts: &[Member]) -> (FleetRun, RaceConclusion) {
    let host = |(name, id, _): &Member| {
        HostRun::waiting(&Host {
            name: (*name).to_owned(),
            address: format!("admin@10.0.0.{}", &name[1..]),
            id: id.map(str::to_owned),
            ..Host::default()
        })
    };
    let raced = |(_, id, raced): &Member| RacedHost {
        group: Some("all".to_owned()),
        given_id: id.map(str::to_owned),
        ..raced.clone()
    };
    let mut run = crate::race::test_races::raced(&[1.0]);
    run.hosts = hosts.iter().map(host).collect();
    let record = run.race.as_mut().unwrap();
    record.keep = 1;
    record.hosts = hosts.iter().map(raced).collect();
    let ranked = |place: usize| RankedHost {
        is_bad: place > 0,
        is_gone: false,
        ..RankedHost::unmeasured(place, Decision::Cull, "3 others are better")
    };
    let group = GroupEnd {
        name: "all".to_owned(),
        kept: 1,
        there: 1,
        ..GroupEnd::default()
    };
    let concluded = RaceConclusion {
        groups: vec![group],
        ranked: (0..hosts.len()).map(ranked).collect(),
        ..RaceConclusion::default()
    };
    (run, concluded)
}

fn own(id: &str) -> RacedHost {
    RacedHost {
        own_id: Some(id.to_owned()),
        ..RacedHost::default()
    }
}

/// An instance: its id, state, and true if it is tagged. That of `i-1` has the address 10.0.0.1. The start time of
/// `i-5` is not reported.
type Instance = (&'static str, &'static str, bool);

/// An EC2 with these instances, which it can terminate.
fn ec2(instances: &'static [Instance]) -> impl FnMut(&Exec) -> Result<Vec<u8>, Error> {
    move |program| {
        let line = program.line();
        let asked = instances.iter().filter(|one| line.contains(one.0));
        let each: Vec<String> = asked
            .map(|(id, state, is_kept)| {
                let (key, number) = (if *is_kept { "Keep" } else { "Name" }, &id[2..]);
                let launched = if *id == "i-5" { "" } else { "1969-12-31T23:00:00+00:00" };
                format!(
                    r#"{{"InstanceId": "{id}", "State": {{"Name": "{state}"}},
                        "LaunchTime": "{launched}",
                        "PrivateIpAddress": "10.0.0.{number}", "CurrentState": {{"Name": "shutting-down"}},
                        "Tags": [{{"Key": "{key}", "Value": ""}}]}}"#
                )
            })
            .collect();
        let each = each.join(",");
        if line.contains("describe-instances") {
            Ok(format!(r#"{{"Reservations": [{{"Instances": [{each}]}}]}}"#).into_bytes())
        } else if line.contains("--dry-run") {
            Err(error("DryRunOperation"))
        } else {
            Ok(format!(r#"{{"TerminatingInstances": [{each}]}}"#).into_bytes())
        }
    }
}

/// An error of EC2 with this code.
fn error(code: &str) -> Error {
    Error::of(&format!("An error occurred ({code})"), &[])
}

/// True for a command that terminates.
fn terminates(program: &Exec) -> bool {
    let line = program.line();
    line.contains("terminate-instances") && !line.contains("--dry-run")
}

const SOUND: &[Instance] = &[
    ("i-0", "running", false),
    ("i-1", "running", false),
    ("i-2", "running", true),
    ("i-3", "stopped", false),
    ("i-5", "running", false),
    ("i-6", "running", false),
];

const SHOWN: ChoiceOptions = ChoiceOptions {
    is_of_ec2: false,
    is_shown: true,
};
/// Options of a command with `--ec2`.
const OF_EC2: ChoiceOptions = ChoiceOptions {
    is_of_ec2: true,
    is_shown: true,
};
/// Options of a command with `--yes`.
const UNSEEN: ChoiceOptions = ChoiceOptions {
    is_of_ec2: false,
    is_shown: false,
};

/// The list for a race, with a resolver that knows one name.
fn plan_of(run: &FleetRun, concluded: &RaceConclusion, options: ChoiceOptions) -> Termination {
    let record = run.race.as_ref().unwrap();
    let (chosen, spared) = choose(run, record, concluded, options);
    let reached = chosen.iter().flat_map(|one| &one.alone);
    let known = look_up(reached, &AtomicBool::new(false), &mut |getent| {
        if getent.line() == "getent ahosts six" {
            return Ok(b"192.0.2.6 STREAM six\n10.0.0.6 STREAM\n".to_vec());
        }
        Err(error("none"))
    });
    Termination::of(&chosen, spared, &known, options.is_shown, &mut ec2(SOUND)).unwrap()
}

fn planned(hosts: &[Member], options: ChoiceOptions) -> Termination {
    let (run, concluded) = race(hosts);
    plan_of(&run, &concluded, options)
}

fn targets(plan: &Termination) -> Vec<&str> {
    plan.targets.iter().map(|one| one.id.as_str()).collect()
}

fn why<'a>(plan: &'a Termination, name: &str) -> Option<&'a str> {
    let mut spared = plan.spared.iter();
    let found = spared.find(|one| one.host == name);
    found.map(|one| one.why.as_str())
}

/// Two bad hosts, and one that is not.
fn two() -> [Member; 3] {
    [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ]
}
