//! Tests of the selection: terminated instances and spared hosts.

use super::*;

/// Asserts that only the second host of [`two`] is terminated, and the reason for the first.
fn assert_first_stays(run: &FleetRun, concluded: &RaceConclusion, reason: &str) {
    let plan = plan_of(run, concluded, SHOWN);
    assert_eq!(targets(&plan), ["i-6"]);
    assert_eq!(why(&plan, "h1"), Some(reason));
}

#[test]
fn only_bad_hosts_that_nothing_protects_and_whose_instance_is_certain_are_terminated() {
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
            ("h5", Some("i-5"), own("i-5")),
            ("h6", Some("i-6"), tagged),
            ("h7", Some("i-7"), own("i-9")),
            ("h8", Some("i-8"), RacedHost::default()),
            ("h9", Some("i-*"), own("i-*")),
            ("hx", None, RacedHost::default()),
        ],
        SHOWN,
    );
    assert_eq!(targets(&plan), ["i-1"]);
    for (name, reason) in [
        ("h0", None),
        ("h2", Some("i-2 is tagged keep")),
        ("h3", Some("i-3 is stopped")),
        ("h4", Some("EC2 does not know i-4")),
        ("h5", Some("EC2 does not report since when i-5 runs")),
        ("h6", Some("it is tagged keep")),
        ("h7", Some("it calls itself i-9, and not i-7")),
        (
            "h8",
            Some("only the list states that it is i-8: its metadata service did not answer"),
        ),
        ("h9", Some("its id is 'i-*', which is none of EC2")),
        ("hx", Some("the id of its instance is not known")),
    ] {
        assert_eq!(why(&plan, name), reason, "{name}");
    }
}

#[test]
fn a_host_that_other_work_slowed_or_that_may_be_another_machine_stays() {
    let (mut run, mut concluded) = race(&two());
    run.race.as_mut().unwrap().hosts[1].may_be_other = true;
    run.hosts[1].why = Some("/mnt is another disk than at the start of the race.".to_owned());
    let reason = "it may not be the measured host any more: when it was reached again, /mnt is another disk than at \
                  the start of the race";
    assert_first_stays(&run, &concluded, reason);
    concluded.ranked[1].doubts = vec!["The disk did more than was asked.".to_owned()];
    concluded.ranked[1].is_slowed = true;
    let reason = "its figures are doubtful: The disk did more than was asked";
    assert_first_stays(&run, &concluded, reason);
}

#[test]
fn an_instance_that_was_started_since_the_race_began_stays() {
    let (mut run, concluded) = race(&two());
    let started = |text: &str| text.parse().unwrap();
    run.began = started("1969-12-31T23:00:00Z");
    let plan = plan_of(&run, &concluded, SHOWN);
    assert_eq!(targets(&plan), ["i-1", "i-6"]);
    run.began = started("1969-12-31T22:59:59Z");
    let plan = plan_of(&run, &concluded, SHOWN);
    assert_eq!(targets(&plan), [""; 0]);
    // This machine's clock is an hour and a half ahead of that of one host, so that the race began earlier.
    run.began = started("1970-01-01T00:00:00Z");
    run.hosts[1].clock_ahead_s = Some(-5400.0);
    run.hosts[2].clock_ahead_s = Some(5400.0);
    let reason = "i-1 was started at 1969-12-31T23:00:00Z, after the race began at 1969-12-31T22:30:00Z by the \
                  earliest clock of this machine and its hosts";
    assert_first_stays(&run, &concluded, reason);
}

#[test]
fn a_group_of_which_no_host_is_kept_and_there_stays() {
    let (run, mut concluded) = race(&two());
    concluded.groups[0].there = 0;
    let plan = plan_of(&run, &concluded, SHOWN);
    assert_eq!(targets(&plan), [""; 0]);
    let reason = "no host of its group that is kept is there any more";
    assert_eq!(why(&plan, "h1"), Some(reason));
    concluded.groups[0].kept = 0;
    let plan = plan_of(&run, &concluded, SHOWN);
    assert_eq!(targets(&plan), [""; 0]);
    let reason = "no host of its group is kept, so that too much may have been asked";
    assert_eq!(why(&plan, "h1"), Some(reason));
    // One of the tied hosts will be kept.
    concluded.groups[0].tied = 2;
    concluded.groups[0].there = 1;
    assert_eq!(targets(&plan_of(&run, &concluded, UNSEEN)), ["i-1", "i-6"]);
}

/// A host with this boot id that reports this instance id.
fn booted(id: Option<&str>) -> RacedHost {
    RacedHost {
        boot: "b".to_owned(),
        own_id: id.map(str::to_owned),
        ..RacedHost::default()
    }
}

#[test]
fn an_instance_that_another_host_has_or_may_have_stays() {
    let [kept, bad, _] = two();
    let tagged = RacedHost {
        is_tagged_keep: true,
        ..own("i-1")
    };
    let silent = RacedHost::default();
    let container = ("h1", Some("i-1"), booted(Some("i-1")));
    let also = |name: &str| format!("i-1 is also that of {name}, which is not terminated");
    for (hosts, reason) in [
        // The same instance is kept, tagged, only in the list, or known to another host only.
        (vec![("h0", Some("i-1"), own("i-1")), bad.clone()], also("h0")),
        (vec![kept.clone(), bad.clone(), ("h6", Some("i-1"), tagged)], also("h6")),
        (vec![kept.clone(), bad.clone(), ("h8", Some("i-1"), silent.clone())], also("h8")),
        (vec![kept.clone(), bad.clone(), ("h7", Some("i-7"), own("i-1"))], also("h7")),
        // A host that does not report its instance has the boot id or the address of a bad one.
        (vec![("h0", None, booted(None)), container.clone()], also("h0")),
        (vec![("h0", Some("i-9"), booted(None)), container.clone()], also("h0")),
        (
            vec![("H1", None, silent), bad.clone()],
            "H1 is at the same address, did not report whether it is i-1 too, and is not terminated".to_owned(),
        ),
    ] {
        let plan = planned(&hosts, SHOWN);
        assert_eq!(targets(&plan), [""; 0], "{reason}");
        assert_eq!(why(&plan, "h1"), Some(reason.as_str()));
    }
    // EC2 and the host itself take precedence over a list: two instances may have similar boot ids.
    let listed = [("h0", Some("i-9"), booted(None)), container.clone()];
    assert_eq!(targets(&planned(&listed, OF_EC2)), ["i-1"]);
    let alike = [("h0", Some("i-0"), booted(Some("i-0"))), container];
    assert_eq!(targets(&planned(&alike, SHOWN)), ["i-1"]);
    // Both are bad and on one instance, which is terminated once.
    let plan = planned(&[kept, bad, ("h9", Some("i-1"), own("i-1"))], SHOWN);
    assert_eq!(targets(&plan), ["i-1"]);
    assert_eq!(plan.targets[0].host, "h1, h9");
}

#[test]
fn an_instance_at_the_address_of_a_host_that_was_never_met_is_doubtful() {
    let [kept, bad, _] = two();
    let (mut run, mut concluded) = race(&[kept, bad, ("H1", None, RacedHost::default())]);
    run.hosts[1].address = "me@Db.example".to_owned();
    run.hosts[2].address = "db.example".to_owned();
    run.race.as_mut().unwrap().hosts[2].group = None;
    concluded.ranked[2].is_bad = false;
    let plan = plan_of(&run, &concluded, SHOWN);
    assert_eq!(targets(&plan), ["i-1"]);
    let doubt = "A doubt: H1 is at the same address, and did not report whether it is i-1 too.";
    assert!(plan.text("").contains(doubt), "{}", plan.text(""));
    assert_eq!(targets(&plan_of(&run, &concluded, UNSEEN)), [""; 0]);
    // If it is tagged keep, no host at its address is terminated.
    run.race.as_mut().unwrap().hosts[2].is_tagged_keep = true;
    assert_eq!(targets(&plan_of(&run, &concluded, SHOWN)), [""; 0]);
}

#[test]
fn an_instance_that_ec2_listed_must_still_be_at_its_address() {
    let host = |name| (name, Some("i-1"), RacedHost::default());
    let [kept, ..] = two();
    let plan = planned(&[kept.clone(), host("h1")], OF_EC2);
    assert_eq!(targets(&plan), ["i-1"]);
    let plan = planned(&[kept, host("h9")], OF_EC2);
    assert_eq!(targets(&plan), [""; 0]);
    assert_eq!(why(&plan, "h9"), Some("i-1 is not at admin@10.0.0.9"));
}

#[test]
fn with_yes_any_doubt_spares_a_host() {
    type Change = fn(&mut FleetRun, &mut RaceConclusion);
    // A host at this address whose instance id only it reports itself.
    fn reach(run: &mut FleetRun, place: usize, address: &str) {
        run.race.as_mut().unwrap().hosts[place].given_id = None;
        run.hosts[place].address = address.to_owned();
    }
    // The change, the doubt about the first host, and whether the second is still terminated.
    let cases: [(Change, Option<&str>, bool); 9] = [
        (|_, _| {}, None, true),
        (
            |_, concluded| {
                concluded.ranked[1].doubts = vec!["It was hardly ever written.".to_owned()]
            },
            Some("It was hardly ever written"),
            true,
        ),
        // Doubts about the better hosts count if they concern their figures.
        (
            |_, concluded| {
                concluded.ranked[0].decided = Decision::Keep;
                concluded.ranked[0].doubts = vec!["It was slow once.".to_owned()];
            },
            None,
            true,
        ),
        (
            |_, concluded| {
                concluded.ranked[0].decided = Decision::Keep;
                concluded.ranked[0].doubts = vec!["The blocks hold only zeros.".to_owned()];
                concluded.ranked[0].is_doubtful = true;
                // A floor is missed independently of other hosts.
                concluded.ranked[2].decided = Decision::HostFloor;
            },
            Some("The figures of those that are better are doubtful: The blocks hold only zeros"),
            true,
        ),
        (
            |run, _| run.race.as_mut().unwrap().keep = 2,
            Some("Of its group 1 of 2 are kept and there"),
            false,
        ),
        (|run, _| reach(run, 1, "me@10.0.0.1"), None, true),
        (
            |run, _| reach(run, 1, "10.0.0.2"),
            Some(
                "Only the host itself reports that it is i-1, and EC2 does not have it at 10.0.0.2",
            ),
            true,
        ),
        (|run, _| reach(run, 2, "me@six"), None, true),
        (
            |run, _| reach(run, 1, "alias"),
            Some("Only the host itself reports that it is i-1, and no address of alias was found"),
            true,
        ),
    ];
    for (change, doubt, is_other_terminated) in cases {
        let (mut run, mut concluded) = race(&two());
        change(&mut run, &mut concluded);
        let plan = plan_of(&run, &concluded, UNSEEN);
        let reason =
            |doubt: &str| format!("there is a doubt: {doubt}; without --yes you are asked");
        let reason = doubt.map(reason);
        assert_eq!(why(&plan, "h1"), reason.as_deref());
        assert_eq!(targets(&plan).contains(&"i-1"), reason.is_none());
        assert_eq!(targets(&plan).contains(&"i-6"), is_other_terminated);
        // Otherwise the user sees the list.
        let plan = plan_of(&run, &concluded, SHOWN);
        assert_eq!(targets(&plan), ["i-1", "i-6"]);
    }
}
