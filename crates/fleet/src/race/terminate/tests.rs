//! An EC2 and races for tests.

mod choice;
mod done;

use linux::exec::Exec;

use super::*;
use crate::race::conclude::{Decision, GroupEnd, RankedHost};
use crate::store::race::{RaceRecord, RacedHost};
use crate::store::{HostRun, Kind};

type Member = (&'static str, Option<&'static str>, RacedHost);

/// A race that has measured all of its hosts to be bad, but the first.
fn race(hosts: &[Member]) -> (FleetRun, RaceConclusion) {
    let host = |(name, id, _): &Member| {
        HostRun::waiting(&Host {
            name: (*name).to_owned(),
            address: format!("admin@{name}"),
            id: id.map(str::to_owned),
            ..Host::default()
        })
    };
    let raced = |(_, id, raced): &Member| RacedHost {
        group: Some("all".to_owned()),
        given_id: id.map(str::to_owned),
        ..raced.clone()
    };
    let record = RaceRecord {
        keep: 1,
        per: None,
        figures: Vec::new(),
        floors: Vec::new(),
        round_s: 1.0,
        least_rounds: 2,
        most_rounds: 9,
        silent_s: 0.0,
        ties: None,
        hosts: hosts.iter().map(raced).collect(),
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
        race: Some(Box::new(record)),
    };
    let ranked = |place: usize| RankedHost {
        place,
        decided: Decision::Cull,
        reason: "3 others are better".to_owned(),
        is_bad: place > 0,
        known: None,
        missed: 0,
        doubts: Vec::new(),
        is_slowed: false,
        is_doubtful: false,
        is_gone: false,
    };
    let group = GroupEnd {
        name: "all".to_owned(),
        hosts: hosts.len(),
        end: None,
        kept: 1,
        there: 1,
        tied: 0,
        places: 0,
        best: Vec::new(),
    };
    let concluded = RaceConclusion {
        groups: vec![group],
        empty: Vec::new(),
        proof_rounds: 0,
        ranked: (0..hosts.len()).map(ranked).collect(),
        noise: None,
    };
    (run, concluded)
}

fn own(id: &str) -> RacedHost {
    RacedHost {
        own_id: Some(id.to_owned()),
        ..RacedHost::default()
    }
}

/// An instance: its id, state, address, and whether it is tagged.
type Instance = (&'static str, &'static str, &'static str, bool);

/// An EC2 that knows these instances, and terminates them.
fn ec2(instances: &'static [Instance]) -> impl FnMut(&Exec) -> Result<Vec<u8>, String> {
    move |program| {
        let line = program.line();
        let asked = instances.iter().filter(|one| line.contains(one.0));
        let each: Vec<String> = asked
            .map(|(id, state, address, keep)| {
                let key = if *keep { "Keep" } else { "Name" };
                format!(
                    r#"{{"InstanceId": "{id}", "State": {{"Name": "{state}"}},
                        "LaunchTime": "1969-12-31T23:00:00+00:00",
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

const SOUND: &[Instance] = &[
    ("i-0", "running", "h0", false),
    ("i-1", "running", "h1", false),
    ("i-2", "running", "h2", true),
    ("i-3", "stopped", "h3", false),
    ("i-6", "running", "h6", false),
    ("i-8", "running", "h8", false),
];

fn planned_of(run: &FleetRun, concluded: &RaceConclusion, is_of_ec2: bool) -> Termination {
    let asked = ChoiceOptions {
        is_of_ec2,
        is_shown: true,
    };
    planned_as(run, concluded, asked)
}

fn planned_as(run: &FleetRun, concluded: &RaceConclusion, asked: ChoiceOptions) -> Termination {
    let record = run.race.as_ref().unwrap();
    let (chosen, spared) = choose(run, record, concluded, asked, &mut no_name);
    Termination::of(&chosen, spared, asked.is_shown, &mut ec2(SOUND)).unwrap()
}

/// A resolver that knows no name.
fn no_name(_: &str) -> Vec<std::net::IpAddr> {
    Vec::new()
}

/// As with `--yes`.
const UNSEEN: ChoiceOptions = ChoiceOptions {
    is_of_ec2: false,
    is_shown: false,
};

fn planned(hosts: &[Member], is_of_ec2: bool) -> Termination {
    let (run, concluded) = race(hosts);
    planned_of(&run, &concluded, is_of_ec2)
}

fn targets(plan: &Termination) -> Vec<&str> {
    plan.targets.iter().map(|one| one.id.as_str()).collect()
}

fn why<'a>(plan: &'a Termination, name: &str) -> Option<&'a str> {
    let mut spared = plan.spared.iter();
    let found = spared.find(|one| one.host == name);
    found.map(|one| one.why.as_str())
}

/// Two that are bad.
fn two() -> [Member; 3] {
    [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ]
}
