use super::*;
use crate::fleet::hosts::Host;
use crate::fleet::race::conclude::{Decided, GroupEnd};
use crate::fleet::run::Kind;

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
        per: None,
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
        doubts: Vec::new(),
    };
    let concluded = Concluded {
        groups: Vec::new(),
        ranked: (0..hosts.len()).map(ranked).collect(),
        empty: Vec::new(),
        noise: None,
        proof_rounds: 0,
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
    Termination::plan(&run, &record, &concluded, is_of_ec2, false, &mut ec2(SOUND)).unwrap()
}

fn doomed(plan: &Termination) -> Vec<&str> {
    plan.doomed.iter().map(|one| one.id.as_str()).collect()
}

#[test]
fn only_what_was_measured_to_be_bad_and_is_not_tagged_is_terminated() {
    let tagged = RacedHost {
        is_tagged_keep: true,
        ..own("i-6")
    };
    let plan = planned(
        &[
            ("h0", Some("i-0"), own("i-0")),
            ("h1", Some("i-1"), own("i-1")),
            ("h2", Some("i-2"), own("i-2")),
            ("h3", Some("i-3"), own("i-3")),
            ("h4", Some("i-4"), own("i-4")),
            ("h5", None, RacedHost::default()),
            ("h6", Some("i-6"), tagged),
            ("h7", Some("i-7"), own("i-9")),
            ("h8", Some("i-8"), RacedHost::default()),
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
        ("h7", Some("it calls itself i-9, and not i-7")),
    ] {
        assert_eq!(spared(name), why, "{name}");
    }
    assert!(
        spared("h8")
            .unwrap()
            .starts_with("only the list says that it is i-8")
    );
}

#[test]
fn an_instance_on_which_another_host_stays_is_spared() {
    // Two containers of one instance: the first is kept, the second is bad.
    let two = [
        ("h0", Some("i-1"), own("i-1")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let plan = planned(&two, false);
    assert_eq!(doomed(&plan), [""; 0]);
    let why = &plan.spared[0].why;
    assert_eq!(why, "i-1 is the instance of h0 too, which stays");
    // Where both are bad it goes, with one command for both.
    let bad = [
        ("h9", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h2", Some("i-1"), own("i-1")),
    ];
    let plan = planned(&bad, false);
    assert_eq!(doomed(&plan), ["i-1", "i-1"]);
    assert_eq!(plan.ids(0..2), ["i-1"]);
}

/// A plan for the second host of two, where somebody is asked or not.
fn of_two(concluded: impl Fn(&mut Concluded), is_asked: bool) -> Termination {
    let (run, mut record, mut ended) = race(&[
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ]);
    for raced in &mut record.hosts {
        raced.group = Some("all".to_owned());
    }
    concluded(&mut ended);
    Termination::plan(&run, &record, &ended, false, is_asked, &mut ec2(SOUND)).unwrap()
}

#[test]
fn doubtful_figures_terminate_nothing_unasked() {
    let doubt = |ended: &mut Concluded| ended.ranked[1].doubts.push("Others wrote.".to_owned());
    let plan = of_two(doubt, false);
    assert_eq!(doomed(&plan), [""; 0]);
    assert!(
        plan.spared[0].why.contains("doubtful: Others wrote"),
        "{plan:?}"
    );
    let plan = of_two(doubt, true);
    assert!(plan.text().contains("doubtful: Others wrote."), "{plan:?}");
    assert_eq!(doomed(&plan), ["i-1"]);
}

#[test]
fn a_group_that_keeps_too_few_terminates_nothing_unasked() {
    let group = |kept: usize| {
        move |ended: &mut Concluded| {
            ended.groups = vec![GroupEnd {
                name: "all".to_owned(),
                hosts: 2,
                end: None,
                kept,
                tied: 0,
                places: 0,
            }];
        }
    };
    let plan = of_two(group(0), false);
    assert_eq!(doomed(&plan), [""; 0]);
    assert!(plan.spared[0].why.contains("0 of 1 are kept"), "{plan:?}");
    assert_eq!(doomed(&of_two(group(0), true)), ["i-1"]);
    assert_eq!(doomed(&of_two(group(1), false)), ["i-1"]);
}

/// Of so many hosts all but the first, which are all of sound instances.
fn all_but_one(count: usize) -> Termination {
    let doomed = |at: usize| Doomed {
        host: format!("h{at}"),
        id: format!("i-{at}"),
        why: String::new(),
        state: None,
    };
    Termination {
        doomed: (1..count).map(doomed).collect(),
        spared: Vec::new(),
    }
}

#[test]
fn what_has_changed_since_the_question_is_spared() {
    let mut plan = all_but_one(4);
    let mut later = all_but_one(3);
    later.spare("h3", "i-3 is tagged keep".to_owned());
    assert_eq!(plan.keep_only(&later), ["h3 stays: i-3 is tagged keep."]);
    assert_eq!(doomed(&plan), ["i-1", "i-2"]);
    assert_eq!(plan.spared, later.spared);
}

#[test]
fn a_batch_that_fails_spares_none_behind_it_and_its_states_are_asked_for() {
    let mut plan = all_but_one(BATCH + 3);
    let mut first = true;
    let mut program = |program: &Exec| {
        let line = program.line();
        if line.contains("describe-instances") {
            // One of them was terminated all the same.
            let one = r#"{"InstanceId": "i-1", "State": {"Name": "shutting-down"}}"#;
            return Ok(format!(r#"{{"Reservations": [{{"Instances": [{one}]}}]}}"#).into_bytes());
        }
        if std::mem::take(&mut first) {
            return Err("i-7 is protected.".to_owned());
        }
        let ids = ["i-51", "i-52"].map(|id| {
            assert!(line.contains(id), "{line}");
            format!(r#"{{"InstanceId": "{id}", "CurrentState": {{"Name": "shutting-down"}}}}"#)
        });
        Ok(format!(r#"{{"TerminatingInstances": [{}]}}"#, ids.join(",")).into_bytes())
    };
    let why = plan.execute(&mut program, &mut |_| Ok(())).unwrap_err();
    assert_eq!(why, "i-7 is protected.");
    let state = |at: usize| plan.doomed[at].state.as_deref();
    assert_eq!(state(0), Some("shutting-down"));
    assert_eq!(state(6), Some(UNKNOWN));
    assert_eq!(state(BATCH), Some("shutting-down"));
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let mut plan = all_but_one(3);
    let mut never = |program: &Exec| panic!("{}", program.line());
    let full = || Err("The disk is full.".to_owned());
    let why = plan.execute(&mut never, &mut |_| full()).unwrap_err();
    assert_eq!(why, "The disk is full.");
    assert!(plan.doomed.iter().all(|one| one.state.is_none()));
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
    let plan = Termination::plan(&run, &record, &concluded, true, true, &mut ec2(SOUND));
    assert_eq!(plan.unwrap(), Termination::default());
}

#[test]
fn what_came_of_each_is_told_and_a_permission_that_is_missing_too() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let mut plan = planned(&hosts, false);
    let mut written = Vec::new();
    let mut write_down = |plan: &Termination| {
        written.push(plan.doomed[0].state.clone());
        Ok(())
    };
    plan.execute(&mut ec2(SOUND), &mut write_down).unwrap();
    // Before it is done it is not known what will come of it.
    assert_eq!(written, [Some(UNKNOWN.to_owned())]);
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
