//! Tests of the choice: which instances are terminated and which hosts spared.

use super::*;

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
    assert_eq!(targets(&plan), ["i-1"]);
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
            .starts_with("only the list states that it is i-8")
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
        assert_eq!(targets(&plan), [""; 0], "{name}");
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
    assert_eq!(targets(&planned(&container, false)), [""; 0]);
    let port = [("H1", None, silent.clone()), bad.clone()];
    let plan = planned(&port, false);
    assert_eq!(targets(&plan), [""; 0]);
    let told =
        "H1 is at the same address, did not report whether it is i-1 too, and is not terminated";
    assert_eq!(why(&plan, "h1"), Some(told));
    // Who was never met is a doubt.
    let (mut run, mut concluded) = race(&[kept.clone(), bad.clone(), ("H1", None, silent)]);
    run.race.as_mut().unwrap().hosts[2].group = None;
    concluded.ranked[2].is_bad = false;
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(targets(&plan), ["i-1"]);
    let told = "A doubt: H1 is at the same address, and did not report whether it is i-1 too.";
    assert!(plan.text("").contains(told), "{}", plan.text(""));
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(targets(&plan), [""; 0]);
    assert!(why(&plan, "h1").unwrap().contains("without --yes"));
    // Where it is tagged keep, none at its address is terminated.
    run.race.as_mut().unwrap().hosts[2].is_tagged_keep = true;
    assert_eq!(targets(&planned_of(&run, &concluded, false)), [""; 0]);
    // Two instances may well be alike in their boots: each has said which it is.
    let alike = [
        ("h0", Some("i-0"), booted(Some("i-0"))),
        ("h1", Some("i-1"), booted(Some("i-1"))),
    ];
    assert_eq!(targets(&planned(&alike, false)), ["i-1"]);
    // Both are bad: it is one instance, and is terminated once.
    let both = [kept, bad, ("h9", Some("i-1"), own("i-1"))];
    let plan = planned(&both, false);
    assert_eq!(targets(&plan), ["i-1"]);
    assert_eq!(plan.targets[0].host, "h1, h9");
}

#[test]
fn a_host_that_is_worse_than_hosts_with_doubtful_figures_stays_with_yes() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (run, mut concluded) = race(&hosts);
    concluded.ranked[0].decided = Decision::Keep;
    concluded.ranked[0].doubts = vec!["The blocks hold only zeros.".to_owned()];
    // A floor is missed whatever others do.
    concluded.ranked[2].decided = Decision::Floor;
    let everyone = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(targets(&everyone), ["i-1", "i-6"]);
    concluded.ranked[0].is_doubtful = true;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(targets(&plan), ["i-6"]);
    assert_eq!(
        why(&plan, "h1"),
        Some(
            "the figures of those that are better are doubtful: The blocks hold only zeros; without --yes you \
             are asked"
        )
    );
}

#[test]
fn a_host_that_was_started_again_since_it_was_measured_stays() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (mut run, concluded) = race(&hosts);
    run.race.as_mut().unwrap().hosts[1].may_be_other = true;
    run.hosts[1].why = Some("/mnt is another disk than at the start of the race.".to_owned());
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(targets(&plan), ["i-6"]);
    assert_eq!(
        why(&plan, "h1"),
        Some(
            "it may not be the measured host any more: when it was reached again, /mnt is another disk than at the \
             start of the race"
        )
    );
}

#[test]
fn an_instance_that_was_started_since_the_race_began_stays() {
    let (mut run, concluded) = race(&two());
    let planned = |run: &FleetRun, time: &str| {
        let asked = ChoiceOptions {
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
        targets(&planned(&run, "1970-01-01T00:00:00.000Z")),
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
        Some("EC2 does not report since when i-1 runs")
    );
    // Where this machine's clock is behind, it may have been before.
    run.hosts[1].clock_ahead_s = Some(600.0);
    let plan = planned(&run, "1970-01-01T00:00:01+00:00");
    assert_eq!(
        why(&plan, "h1"),
        Some(
            "i-1 was started at 1970-01-01T00:00:01Z, after the race began by this machine's clock, which is \
             600 s behind that of the host"
        )
    );
    // This machine's clock is an hour and a half ahead of that of one host, so that the race began earlier.
    run.hosts[1].clock_ahead_s = Some(-5400.0);
    run.hosts[2].clock_ahead_s = Some(5400.0);
    assert_eq!(
        targets(&planned(&run, "1969-12-31T23:00:00+00:00")),
        ["i-6"]
    );
}

#[test]
fn a_host_that_has_the_same_boot_and_says_no_id_is_on_the_same_machine_whatever_a_list_says() {
    let booted = |own_id: Option<&str>| RacedHost {
        own_id: own_id.map(str::to_owned),
        boot: "b1".to_owned(),
        ..RacedHost::default()
    };
    let hosts = [
        ("h0", Some("i-9"), booted(None)),
        ("h1", Some("i-1"), booted(Some("i-1"))),
    ];
    assert!(targets(&planned(&hosts, false)).is_empty());
    // EC2 knows better than any list.
    assert_eq!(targets(&planned(&hosts, true)), ["i-1"]);
}

#[test]
fn a_host_that_may_have_been_slowed_by_others_stays_and_other_doubts_are_shown() {
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
    assert_eq!(targets(&plan), ["i-6"]);
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
fn a_group_of_which_no_one_is_kept_stays() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let (run, mut concluded) = race(&hosts);
    concluded.groups[0].kept = 0;
    let plan = planned_of(&run, &concluded, false);
    assert_eq!(targets(&plan), [""; 0]);
    assert!(
        why(&plan, "h1")
            .unwrap()
            .starts_with("no host of its group")
    );
    concluded.groups[0].tied = 2;
    concluded.groups[0].places = 1;
    assert_eq!(targets(&planned_of(&run, &concluded, false)), ["i-1"]);
    assert_eq!(targets(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
}

#[test]
fn a_group_in_which_too_few_are_kept_stays_where_no_one_is_asked() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
    ];
    let (mut run, concluded) = race(&hosts);
    assert_eq!(targets(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
    run.race.as_mut().unwrap().keep = 2;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(targets(&plan), [""; 0]);
    assert!(why(&plan, "h1").unwrap().starts_with("of its group 1 of 2"));
    assert_eq!(targets(&planned_of(&run, &concluded, false)), ["i-1"]);
}

#[test]
fn a_host_that_is_kept_and_dead_by_now_does_not_count_as_kept() {
    let hosts = [
        ("h0", Some("i-0"), own("i-0")),
        ("h1", Some("i-1"), own("i-1")),
        ("h6", Some("i-6"), own("i-6")),
    ];
    let (mut run, mut concluded) = race(&hosts);
    run.race.as_mut().unwrap().keep = 2;
    concluded.groups[0].kept = 2;
    for place in [0, 2] {
        concluded.ranked[place].decided = Decision::Keep;
        concluded.ranked[place].is_bad = false;
    }
    assert_eq!(targets(&planned_as(&run, &concluded, UNSEEN)), ["i-1"]);
    concluded.ranked[2].is_gone = true;
    let plan = planned_as(&run, &concluded, UNSEEN);
    assert_eq!(targets(&plan), [""; 0]);
    assert_eq!(
        why(&plan, "h1"),
        Some("of its group 1 of 2 are kept and there; without --yes you are asked")
    );
    assert_eq!(targets(&planned_of(&run, &concluded, false)), ["i-1"]);
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
    assert_eq!(targets(&planned(&hosts, true)), ["i-1"]);
    let moved = [hosts[0].clone(), ("h9", Some("i-1"), RacedHost::default())];
    let plan = planned(&moved, true);
    assert!(plan.targets.is_empty());
    assert_eq!(plan.spared[0].why, "i-1 is not at admin@h9");
}

#[test]
fn a_host_that_alone_says_which_instance_it_is_must_be_where_ec2_has_that() {
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
        let asked = ChoiceOptions {
            is_of_ec2: false,
            is_shown,
        };
        let record = run.race.as_ref().unwrap();
        let (chosen, spared) = choose(&run, record, &concluded, asked, &mut resolve);
        Termination::of(&chosen, spared, is_shown, &mut ec2(known)).unwrap()
    };
    assert_eq!(targets(&planned("me@10.0.0.1", false)), ["i-1", "i-6"]);
    for (address, told) in [
        ("10.0.0.2", "EC2 does not have it at 10.0.0.2"),
        ("far", "EC2 does not have it at far"),
        ("alias", "alias is not an address that EC2 could know"),
    ] {
        let plan = planned(address, false);
        assert_eq!(targets(&plan), ["i-6"], "{address}");
        let why = why(&plan, "h1").unwrap();
        assert!(why.contains(told) && why.contains("--yes"), "{why}");
        // Who is asked sees it.
        let plan = planned(address, true);
        assert_eq!(targets(&plan), ["i-1", "i-6"], "{address}");
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
