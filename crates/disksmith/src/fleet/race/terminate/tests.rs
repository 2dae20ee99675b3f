use std::cell::RefCell;

use linux::exec::Exec;

use super::*;
use crate::fleet::race::conclude::{Decided, GroupEnd, Ranked};
use crate::fleet::race::record::{RaceRecord, RacedHost};
use crate::fleet::run::{HostRun, Kind};

type Member = (&'static str, Option<&'static str>, RacedHost);

/// A race that has measured all of its hosts to be bad, but the first.
fn race(hosts: &[Member]) -> (FleetRun, Concluded) {
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
    let ranked = |place: usize| Ranked {
        place,
        decided: Decided::Cull,
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
        tied: 0,
        places: 0,
    };
    let concluded = Concluded {
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

fn planned_of(run: &FleetRun, concluded: &Concluded, is_of_ec2: bool) -> Termination {
    let asked = Asked {
        is_of_ec2,
        is_shown: true,
    };
    planned_as(run, concluded, asked)
}

fn planned_as(run: &FleetRun, concluded: &Concluded, asked: Asked) -> Termination {
    let record = run.race.as_ref().unwrap();
    let (chosen, spared) = choose(run, record, concluded, asked, &mut no_name);
    Termination::of(&chosen, spared, asked.is_shown, &mut ec2(SOUND)).unwrap()
}

/// A resolver that knows no name.
fn no_name(_: &str) -> Vec<std::net::IpAddr> {
    Vec::new()
}

/// As with `--yes`.
const UNSEEN: Asked = Asked {
    is_of_ec2: false,
    is_shown: false,
};

fn planned(hosts: &[Member], is_of_ec2: bool) -> Termination {
    let (run, concluded) = race(hosts);
    planned_of(&run, &concluded, is_of_ec2)
}

fn doomed(plan: &Termination) -> Vec<&str> {
    plan.doomed.iter().map(|one| one.id.as_str()).collect()
}

fn why<'a>(plan: &'a Termination, name: &str) -> Option<&'a str> {
    let mut spared = plan.spared.iter();
    let found = spared.find(|one| one.host == name);
    found.map(|one| one.why.as_str())
}

/// What came of a termination.
struct Came {
    run: FleetRun,
    error: Option<String>,
    /// What `aws` was asked to terminate, without the rehearsal.
    sent: Vec<String>,
    told: String,
    /// The states of all that shall be terminated, as often as the ledger was written.
    kept: Vec<Vec<Option<String>>>,
}

impl Came {
    fn states(&self) -> Vec<Option<&str>> {
        let plan = self.run.race.as_ref().unwrap().termination.as_ref();
        let doomed = &plan.unwrap().doomed;
        doomed.iter().map(|one| one.state.as_deref()).collect()
    }
}

/// Terminates what a race has found bad. `fails_from` is the number of the write from which on the ledger
/// fails; `agree` is asked once.
fn terminated(
    hosts: &[Member],
    program: impl FnMut(&Exec) -> Result<Vec<u8>, String>,
    fails_from: usize,
    agree: impl FnMut() -> bool,
) -> Came {
    terminated_unless(&AtomicBool::new(false), hosts, program, fails_from, agree)
}

/// The same, where a signal may come.
fn terminated_unless(
    interrupt: &AtomicBool,
    hosts: &[Member],
    mut program: impl FnMut(&Exec) -> Result<Vec<u8>, String>,
    fails_from: usize,
    mut agree: impl FnMut() -> bool,
) -> Came {
    let (mut run, concluded) = race(hosts);
    let (mut sent, mut told, mut kept) = (Vec::new(), String::new(), Vec::new());
    let mut means = Means {
        program: &mut |exec| {
            let line = exec.line();
            if line.contains("terminate-instances") && !line.contains("--dry-run") {
                sent.push(line);
            }
            program(exec)
        },
        resolve: &mut no_name,
        keep: &mut |run| {
            let plan = run.race.as_ref().unwrap().termination.clone();
            kept.push(
                plan.unwrap()
                    .doomed
                    .into_iter()
                    .map(|one| one.state)
                    .collect(),
            );
            if kept.len() > fails_from {
                return Err("the disk is full".to_owned());
            }
            Ok(())
        },
        is_agreed: &mut |_| Ok(agree()),
        tell: &mut |text| told.push_str(text),
        interrupt,
    };
    let asked = Asked {
        is_of_ec2: false,
        is_shown: true,
    };
    let done = means.terminate(&mut run, &concluded, asked);
    let error = done.err().map(|failure| {
        assert!(matches!(failure, Failure::Midway(_)));
        failure.error().to_string()
    });
    Came {
        run,
        error,
        sent,
        told,
        kept,
    }
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
            ("h9", Some("i-*"), own("i-*")),
        ],
        false,
    );
    assert_eq!(doomed(&plan), ["i-1"]);
    for (name, told) in [
        ("h0", None),
        ("h2", Some("i-2 is tagged keep")),
        ("h3", Some("i-3 is stopped")),
        ("h4", Some("EC2 does not know i-4")),
        ("h5", Some("the id of its instance is not known")),
        ("h6", Some("it is tagged keep")),
        ("h7", Some("it calls itself i-9, and not i-7")),
        ("h9", Some("its id is 'i-*', which is none of EC2")),
    ] {
        assert_eq!(why(&plan, name), told, "{name}");
    }
    assert!(
        why(&plan, "h8")
            .unwrap()
            .starts_with("only the list says that it is i-8")
    );
}

#[test]
fn an_instance_that_another_host_has_too_stays_unless_all_of_it_is_bad() {
    let kept = ("h0", Some("i-0"), own("i-0"));
    let bad = ("h1", Some("i-1"), own("i-1"));
    let tagged = RacedHost {
        is_tagged_keep: true,
        ..own("i-1")
    };
    let silent = RacedHost::default();
    // The same instance is kept, tagged, of the list alone, or known to another host only.
    for other in [
        ("h0", Some("i-1"), own("i-1")),
        ("h6", Some("i-1"), tagged),
        ("h8", Some("i-1"), silent.clone()),
        ("h7", Some("i-7"), own("i-1")),
    ] {
        let is_kept = other.0 == "h0";
        let name = other.0;
        let hosts = if is_kept {
            vec![other, bad.clone()]
        } else {
            vec![kept.clone(), bad.clone(), other]
        };
        let plan = planned(&hosts, false);
        assert_eq!(doomed(&plan), [""; 0], "{name}");
        let told = format!("i-1 is also that of {name}, which is not terminated");
        assert_eq!(why(&plan, "h1"), Some(told.as_str()));
    }
    // Who does not know its instance, and has the boot or the address of one that is bad.
    let booted = |id: Option<&str>| RacedHost {
        boot: "b".to_owned(),
        own_id: id.map(str::to_owned),
        ..RacedHost::default()
    };
    let container = [
        ("h0", None, booted(None)),
        ("h1", Some("i-1"), booted(Some("i-1"))),
    ];
    assert_eq!(doomed(&planned(&container, false)), [""; 0]);
    let port = [("H1", None, silent), bad.clone()];
    assert_eq!(doomed(&planned(&port, false)), [""; 0]);
    // Two instances may well be alike in their boots: each has said which it is.
    let alike = [
        ("h0", Some("i-0"), booted(Some("i-0"))),
        ("h1", Some("i-1"), booted(Some("i-1"))),
    ];
    assert_eq!(doomed(&planned(&alike, false)), ["i-1"]);
    // Both are bad: it is one instance, and is terminated once.
    let both = [kept, bad, ("h9", Some("i-1"), own("i-1"))];
    let plan = planned(&both, false);
    assert_eq!(doomed(&plan), ["i-1"]);
    assert_eq!(plan.doomed[0].host, "h1, h9");
}

#[test]
fn who_is_worse_than_hosts_with_doubtful_figures_stays_with_yes() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (run, mut concluded) = race(&hosts);
    concluded.ranked[0].decided = Decided::Keep;
    concluded.ranked[0].doubts = vec!["The blocks hold only zeros.".to_owned()];
    // A floor is missed whatever others do.
    concluded.ranked[2].decided = Decided::Floor;
    let everyone = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(doomed(&everyone), ["i-1", "i-6"]);
    concluded.ranked[0].is_doubtful = true;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(doomed(&plan), ["i-6"]);
    assert_eq!(
        why(&plan, "h1"),
        Some(
            "the figures of those that are better are doubtful: The blocks hold only zeros; without --yes you \
             are asked"
        )
    );
}

#[test]
fn who_was_started_anew_since_it_was_measured_stays() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (mut run, concluded) = race(&hosts);
    run.hosts[1].came = crate::fleet::run::Came::Unfit;
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(doomed(&plan), ["i-6"]);
    assert_eq!(
        why(&plan, "h1"),
        Some("it is not what was measured any more")
    );
}

#[test]
fn an_instance_that_was_started_since_the_race_began_stays() {
    let (mut run, concluded) = race(&two());
    let planned = |run: &FleetRun, time: &str| {
        let asked = Asked {
            is_of_ec2: false,
            is_shown: true,
        };
        let record = run.race.as_ref().unwrap();
        let (chosen, spared) = choose(run, record, &concluded, asked, &mut no_name);
        let mut sound = ec2(SOUND);
        Termination::of(&chosen, spared, true, &mut |exec| {
            let said = String::from_utf8(sound(exec)?).unwrap();
            Ok(said.replace("1969-12-31T23:00:00+00:00", time).into_bytes())
        })
        .unwrap()
    };
    assert_eq!(
        doomed(&planned(&run, "1970-01-01T00:00:00.000Z")),
        ["i-1", "i-6"]
    );
    let plan = planned(&run, "1970-01-01T00:00:01+00:00");
    assert_eq!(
        why(&plan, "h1"),
        Some("i-1 was started at 1970-01-01T00:00:01Z, after the race began")
    );
    let plan = planned(&run, "");
    assert_eq!(
        why(&plan, "h1"),
        Some("EC2 does not say since when i-1 runs")
    );
    // This machine's clock is an hour and a half ahead of that of one host, so that the race began earlier.
    run.hosts[1].clock_ahead_s = Some(-5400.0);
    run.hosts[2].clock_ahead_s = Some(5400.0);
    assert_eq!(doomed(&planned(&run, "1969-12-31T23:00:00+00:00")), ["i-6"]);
}

#[test]
fn who_has_the_same_boot_and_says_no_id_is_on_the_same_machine_whatever_a_list_says() {
    let booted = |own_id: Option<&str>| RacedHost {
        own_id: own_id.map(str::to_owned),
        boot: "b1".to_owned(),
        ..RacedHost::default()
    };
    let hosts = [
        ("h0", Some("i-9"), booted(None)),
        ("h1", Some("i-1"), booted(Some("i-1"))),
    ];
    assert!(doomed(&planned(&hosts, false)).is_empty());
    // EC2 knows better than any list.
    assert_eq!(doomed(&planned(&hosts, true)), ["i-1"]);
}

#[test]
fn who_may_have_been_slowed_by_others_stays_and_other_doubts_are_shown() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (run, mut concluded) = race(&hosts);
    concluded.ranked[1].doubts = vec!["The disk did more than was asked.".to_owned()];
    concluded.ranked[1].is_slowed = true;
    concluded.ranked[2].doubts = vec!["It was hardly ever written.".to_owned()];
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(doomed(&plan), ["i-6"]);
    assert_eq!(
        why(&plan, "h1"),
        Some("its figures are doubtful: The disk did more than was asked")
    );
    let text = plan.text("");
    assert!(
        text.contains("A doubt: It was hardly ever written."),
        "{text}"
    );
}

#[test]
fn a_group_of_which_nobody_is_kept_stays() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let (run, mut concluded) = race(&hosts);
    concluded.groups[0].kept = 0;
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(doomed(&plan), [""; 0]);
    assert!(
        why(&plan, "h1")
            .unwrap()
            .starts_with("no host of its group")
    );
    concluded.groups[0].tied = 2;
    concluded.groups[0].places = 1;
    assert_eq!(doomed(&planned_of(&run, &concluded, false)), ["i-1"]);
    assert_eq!(doomed(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
}

#[test]
fn a_group_in_which_too_few_are_kept_stays_where_nobody_is_asked() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let (mut run, concluded) = race(&hosts);
    assert_eq!(doomed(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
    run.race.as_mut().unwrap().keep = 2;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(doomed(&plan), [""; 0]);
    assert!(why(&plan, "h1").unwrap().starts_with("of its group 1 of 2"));
    assert_eq!(doomed(&planned_of(&run, &concluded, false)), ["i-1"]);
}

#[test]
fn who_is_kept_and_dead_by_now_does_not_count_as_kept() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (mut run, mut concluded) = race(&hosts);
    run.race.as_mut().unwrap().keep = 2;
    concluded.groups[0].kept = 2;
    for place in [0, 2] {
        concluded.ranked[place].decided = Decided::Keep;
        concluded.ranked[place].is_bad = false;
    }
    assert_eq!(doomed(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
    concluded.ranked[2].is_gone = true;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(doomed(&plan), [""; 0]);
    assert_eq!(
        why(&plan, "h1"),
        Some("of its group 1 of 2 are kept and there; without --yes you are asked")
    );
    assert_eq!(doomed(&planned_of(&run, &concluded, false)), ["i-1"]);
    // It would be the last of its group.
    concluded.ranked[0].is_gone = true;
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(
        why(&plan, "h1"),
        Some("no host of its group that is kept is there any more")
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
fn who_alone_says_which_instance_it_is_must_be_where_ec2_has_that() {
    let (mut run, concluded) = race(&two());
    let known = &[
        ("i-1", "running", "10.0.0.1", false),
        ("i-6", "running", "10.0.0.6", false),
    ];
    for raced in &mut run.race.as_mut().unwrap().hosts {
        raced.given_id = None;
    }
    let mut resolve = |name: &str| match name {
        "h6" => vec!["192.0.2.6".parse().unwrap(), "10.0.0.6".parse().unwrap()],
        "far" => vec!["192.0.2.1".parse().unwrap()],
        _ => Vec::new(),
    };
    let mut planned = |address: &str, is_shown: bool| {
        run.hosts[1].address = address.to_owned();
        let asked = Asked {
            is_of_ec2: false,
            is_shown,
        };
        let record = run.race.as_ref().unwrap();
        let (chosen, spared) = choose(&run, record, &concluded, asked, &mut resolve);
        Termination::of(&chosen, spared, is_shown, &mut ec2(known)).unwrap()
    };
    assert_eq!(doomed(&planned("me@10.0.0.1", false)), ["i-1", "i-6"]);
    for (address, told) in [
        ("10.0.0.2", "EC2 does not have that at 10.0.0.2"),
        ("far", "EC2 does not have that at far"),
        ("alias", "alias is no address that EC2 could know"),
    ] {
        let plan = planned(address, false);
        assert_eq!(doomed(&plan), ["i-6"], "{address}");
        let why = why(&plan, "h1").unwrap();
        assert!(why.contains(told) && why.contains("--yes"), "{why}");
        // Who is asked sees it.
        let plan = planned(address, true);
        assert_eq!(doomed(&plan), ["i-1", "i-6"], "{address}");
        assert!(plan.text("").contains(told), "{}", plan.text(""));
    }
}

#[test]
fn a_race_that_was_interrupted_terminates_nothing() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let (mut run, concluded) = race(&hosts);
    run.race.as_mut().unwrap().interrupted = true;
    let plan = planned_of(&run, &concluded, true);
    assert_eq!(plan, Termination::default());
}

/// Two that are bad.
fn two() -> [Member; 3] {
    [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ]
}

#[test]
fn the_ledger_knows_of_each_before_it_is_terminated_and_what_came_of_it() {
    let came = terminated(&two(), ec2(SOUND), 9, || true);
    assert_eq!(came.error, None);
    assert_eq!(came.sent.len(), 1);
    assert!(came.told.contains("h1 (i-1): 3 others are better."));
    assert_eq!(came.states(), [Some("shutting-down"); 2]);
    let all = |state: Option<&str>| vec![state.map(str::to_owned); 2];
    let kept = [all(None), all(Some(UNKNOWN)), all(Some("shutting-down"))];
    assert_eq!(came.kept, kept);
}

#[test]
fn nothing_is_terminated_of_which_the_ledger_would_say_nothing() {
    // Neither before anybody is asked, nor after.
    for fails_from in [0, 1] {
        let mut asked = 0;
        let came = terminated(&two(), ec2(SOUND), fails_from, || {
            asked += 1;
            true
        });
        assert_eq!(came.sent, [""; 0]);
        assert_eq!(came.states(), [None; 2]);
        let error = came.error.unwrap();
        assert!(error.contains("the disk is full"), "{error}");
        assert_eq!(asked, fails_from);
    }
}

#[test]
fn what_somebody_tagged_while_the_question_stood_stays() {
    let is_answered = RefCell::new(false);
    let mut before = ec2(SOUND);
    let mut after = ec2(&[
        ("i-1", "running", "h1", true),
        ("i-6", "running", "h6", false),
    ]);
    let program = |exec: &Exec| {
        if *is_answered.borrow() {
            after(exec)
        } else {
            before(exec)
        }
    };
    let came = terminated(&two(), program, 9, || {
        is_answered.replace(true);
        true
    });
    assert_eq!(came.error, None);
    assert_eq!(came.sent.len(), 1);
    assert!(
        came.sent[0].ends_with("--instance-ids i-6"),
        "{:?}",
        came.sent
    );
    assert_eq!(came.states(), [Some("shutting-down")]);
    assert!(came.told.contains("h1 stays: i-1 is tagged keep."));
}

#[test]
fn who_is_asked_sees_the_figures_and_those_that_are_better() {
    let run = crate::fleet::race::sample::raced(&[1000.0, 900.0, 300.0]);
    let record = run.race.as_ref().unwrap();
    let mut concluded = crate::fleet::race::conclude(&run, record);
    concluded.ranked[0].doubts = vec!["It holds only zeros.".to_owned()];
    let kept = plan::kept(&run, record, &concluded);
    let line = kept.lines().next().unwrap();
    assert!(line.starts_with("  db0 is kept (page-read.iops "), "{kept}");
    assert!(line.contains(", within "), "{kept}");
    assert!(
        kept.contains("\n    A doubt: It holds only zeros.\n  db1 is kept"),
        "{kept}"
    );
    let (mut run, mut concluded_of_two) = race(&two());
    run.race.as_mut().unwrap().figures = record.figures.clone();
    concluded_of_two.ranked[1].known = concluded.ranked[2].known;
    let text = planned_of(&run, &concluded_of_two, false).text(&kept);
    let line = text.lines().nth(1).unwrap();
    assert!(
        line.starts_with("  h1 (i-1): 3 others are better (page-read.iops "),
        "{text}"
    );
    assert!(text.contains("db0 is kept"), "{text}");
}

#[test]
fn who_stays_is_in_the_answer_with_the_reason() {
    let came = terminated(
        &[two()[0].clone(), ("h2", Some("i-2"), own("i-2"))],
        ec2(SOUND),
        9,
        || true,
    );
    let (_, concluded) = race(&two());
    let record = came.run.race.as_ref().unwrap();
    let remarks = crate::fleet::race::say::remarks(&came.run, record, &concluded);
    assert_eq!(remarks, ["h2 stays: i-2 is tagged keep."]);
}

#[test]
fn nobody_who_does_not_agree_loses_anything() {
    let came = terminated(&two(), ec2(SOUND), 9, || false);
    assert_eq!(came.sent, [""; 0]);
    assert!(came.error.as_ref().unwrap().contains("nobody has agreed"));
    assert_eq!(came.states(), [None; 2]);
}

#[test]
fn a_signal_behind_the_agreement_is_told_as_one() {
    let interrupt = AtomicBool::new(false);
    let came = terminated_unless(&interrupt, &two(), ec2(SOUND), 9, || {
        interrupt.store(true, Relaxed);
        true
    });
    assert_eq!(came.sent, [""; 0]);
    let error = came.error.unwrap();
    assert!(error.contains("a signal came before"), "{error}");
}

#[test]
fn after_an_error_it_is_asked_what_is_gone_and_the_rest_is_not_known() {
    // One of both is gone by now; of the other nobody can know whether the request is on its way.
    let mut before = ec2(SOUND);
    let mut after = ec2(&[
        ("i-1", "terminated", "h1", false),
        ("i-6", "running", "h6", false),
    ]);
    let mut is_sent = false;
    let late = |exec: &Exec| {
        let line = exec.line();
        if line.contains("terminate-instances") && !line.contains("--dry-run") {
            is_sent = true;
            return Err("it was not done after 120 s and was killed".to_owned());
        }
        if is_sent { after(exec) } else { before(exec) }
    };
    let came = terminated(&two(), late, 9, || true);
    assert_eq!(came.states(), [Some("terminated"), Some(UNKNOWN)]);
    assert!(came.error.as_ref().unwrap().contains("was killed"));
    assert_eq!(came.kept.len(), 3, "what came of it is kept");
    let (_, concluded) = race(&two());
    let record = came.run.race.as_ref().unwrap();
    let remarks = crate::fleet::race::say::remarks(&came.run, record, &concluded).join(" ");
    assert!(
        remarks.contains("h6: what came of its instance i-6 is not known"),
        "{remarks}"
    );
    assert!(!remarks.contains("not terminated"), "{remarks}");
}

#[test]
fn an_answer_that_leaves_one_out_or_lets_it_run_is_no_success() {
    for (answer, states, told) in [
        (
            r#"{"TerminatingInstances": [
                {"InstanceId": "i-6", "CurrentState": {"Name": "shutting-down"}}]}"#,
            [UNKNOWN, "shutting-down"],
            "What came of i-1 is not known",
        ),
        (
            r#"{"TerminatingInstances": [
                {"InstanceId": "i-6", "CurrentState": {"Name": "running"}},
                {"InstanceId": "i-1", "CurrentState": {"Name": "terminated"}}]}"#,
            ["terminated", "running"],
            "asked to terminate i-6, and answered that it is running",
        ),
    ] {
        let mut sound = ec2(SOUND);
        let came = terminated(
            &two(),
            |exec| {
                let line = exec.line();
                if line.contains("terminate-instances") && !line.contains("--dry-run") {
                    return Ok(answer.as_bytes().to_vec());
                }
                sound(exec)
            },
            9,
            || true,
        );
        assert_eq!(came.states(), states.map(Some));
        let error = came.error.unwrap();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn one_batch_that_fails_leaves_no_other() {
    let names: Vec<String> = (0..=BATCH + 1).map(|at| format!("i-{at:03}")).collect();
    let mut hosts = vec![("h0", Some("i-0"), own("i-0"))];
    for name in &names {
        let name: &'static str = name.clone().leak();
        hosts.push((name, Some(name), own(name)));
    }
    let known: Vec<Instance> = hosts
        .iter()
        .map(|one| (one.1.unwrap(), "running", one.0, false))
        .collect();
    let mut sound = ec2(known.leak());
    let mut is_first = true;
    let protected = |exec: &Exec| {
        let line = exec.line();
        if line.contains("terminate-instances") && !line.contains("--dry-run") && is_first {
            is_first = false;
            return Err("(OperationNotPermitted) i-003 may not be terminated".to_owned());
        }
        sound(exec)
    };
    let came = terminated(&hosts, protected, 9, || true);
    assert_eq!(came.sent.len(), 2);
    let states = came.states();
    assert!(states[..BATCH].iter().all(|state| *state == Some(UNKNOWN)));
    assert!(
        states[BATCH..]
            .iter()
            .all(|state| *state == Some("shutting-down"))
    );
    assert!(came.error.unwrap().contains("OperationNotPermitted"));
}

#[test]
fn a_permission_that_is_missing_is_told() {
    let ids = ["i-1".to_owned()];
    assert_eq!(check_permission(&ids, &mut ec2(SOUND)), Ok(()));
    let mut denied = |_: &Exec| Err("status 254: (UnauthorizedOperation)".to_owned());
    let Err(Unrehearsed::Refused(why)) = check_permission(&ids, &mut denied) else {
        panic!("it is allowed")
    };
    assert!(why.contains("UnauthorizedOperation"), "{why}");
}

#[test]
fn what_terminates_in_place_of_a_rehearsal_does_so_with_one_at_most() {
    let ids: Vec<String> = (0..200).map(|at| format!("i-{at:03}")).collect();
    let mut lines = Vec::new();
    let mut wrong = |exec: &Exec| {
        lines.push(exec.line());
        Ok(Vec::new())
    };
    let why = check_permission(&ids, &mut wrong).unwrap_err();
    assert_eq!(why, Unrehearsed::MayBeGone(vec!["i-000".to_owned()]));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("--instance-ids i-000 --dry-run"),
        "{lines:?}"
    );
    assert!(matches!(why.before_race(), Failure::Midway(_)));
    // In the end too, and what came of that one is not known then, unless EC2 says so.
    for (gone, state) in [("running", UNKNOWN), ("terminated", "terminated")] {
        let mut sound = ec2(SOUND);
        let mut is_sent = false;
        let careless = |exec: &Exec| {
            let line = exec.line();
            if line.contains("--dry-run") {
                is_sent = true;
                return Ok(Vec::new());
            }
            let said = sound(exec)?;
            let said = String::from_utf8(said).unwrap();
            let now = if is_sent { gone } else { "running" };
            Ok(said.replace("running", now).into_bytes())
        };
        let came = terminated(&two(), careless, 9, || panic!("nobody is asked"));
        assert_eq!(came.sent, [""; 0]);
        assert_eq!(came.states(), [Some(state), None]);
        let error = came.error.unwrap();
        assert!(error.starts_with("'aws ec2 terminate"), "{error}");
        assert!(error.contains("what came of i-1 is not known"), "{error}");
    }
}

#[test]
fn no_rehearsal_is_of_what_the_source_tags_keep() {
    let host = |id: &str, tag: &str| Host {
        id: Some(id.to_owned()),
        tags: [(tag.to_owned(), String::new())].into(),
        ..Host::default()
    };
    let ids = ids_of(&[host("i-1", "KEEP"), host("i-2", "a")]);
    assert_eq!(ids, Ok(vec!["i-2".to_owned()]));
    let wrong = ids_of(&[host("--x", "a"), host("i-2", "a"), host("i-*", "keep")]).unwrap_err();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("'--x', which is none"), "{wrong:?}");
}
