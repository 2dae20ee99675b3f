//! Tests of the termination itself: commands sent, states recorded, messages shown.

use std::cell::Cell;

use super::*;

/// Result of a termination.
struct TerminationResult {
    run: FleetRun,
    error: Option<String>,
    /// Commands that terminate, in their order.
    sent: Vec<String>,
    notices: String,
    /// The states of all targets at each write of the ledger.
    saved: Vec<Vec<Option<String>>>,
}

impl TerminationResult {
    fn states(&self) -> Vec<Option<&str>> {
        let plan = self.run.race.as_ref().unwrap().termination.as_ref();
        let targets = &plan.unwrap().targets;
        targets.iter().map(|one| one.state.as_deref()).collect()
    }

    /// Remarks on a race, as shown.
    fn remarks(&self) -> Vec<String> {
        let (_, concluded) = race(&two());
        let record = self.run.race.as_ref().unwrap();
        crate::race::view::remarks(&self.run, record, &concluded)
    }
}

/// Terminates the bad hosts of a race. `fails_from` is the number of the write from which on the ledger fails; `agree`
/// gets the flag of the signal.
fn terminated(
    (mut run, concluded): (FleetRun, RaceConclusion),
    mut program: impl FnMut(&Exec) -> Result<Vec<u8>, Error>,
    fails_from: usize,
    mut agree: impl FnMut(&AtomicBool) -> bool,
) -> TerminationResult {
    let interrupt = AtomicBool::new(false);
    let (mut sent, mut notices, mut saved) = (Vec::new(), String::new(), Vec::new());
    let mut terminator = Terminator {
        program: &mut |exec| {
            if terminates(exec) {
                sent.push(exec.line());
            }
            program(exec)
        },
        save: &mut |run| {
            let plan = run.race.as_ref().unwrap().termination.clone();
            let targets = plan.unwrap().targets.into_iter();
            saved.push(targets.map(|one| one.state).collect());
            if saved.len() > fails_from {
                return Err("the disk is full".to_owned());
            }
            Ok(())
        },
        confirm: &mut |_| Ok(agree(&interrupt)),
        notice: &mut |text| notices.push_str(text),
        interrupt: &interrupt,
    };
    let done = terminator.terminate(&mut run, &concluded, SHOWN);
    let error = done.err().map(|failure| {
        assert!(matches!(failure, Failure::Midway(_)));
        failure.error().to_string()
    });
    TerminationResult {
        run,
        error,
        sent,
        notices,
        saved,
    }
}

#[test]
fn a_race_that_was_interrupted_terminates_nothing() {
    let (mut run, concluded) = race(&two());
    run.race.as_mut().unwrap().interrupted = true;
    let result = terminated((run, concluded), ec2(SOUND), 9, |_| true);
    assert_eq!((result.error, result.sent), (None, Vec::new()));
    assert_eq!(result.run.race.unwrap().termination, None);
}

#[test]
fn the_ledger_knows_of_each_before_it_is_terminated() {
    let result = terminated(race(&two()), ec2(SOUND), 9, |_| true);
    assert_eq!(result.error, None);
    assert_eq!(result.sent.len(), 1);
    assert!(result.notices.contains("h1 (i-1): 3 others are better."));
    assert_eq!(result.states(), [Some("shutting-down"); 2]);
    let all = |state: Option<&str>| vec![state.map(str::to_owned); 2];
    assert_eq!(result.saved, [all(None), all(Some(UNKNOWN))]);
}

#[test]
fn no_instance_is_terminated_that_the_ledger_does_not_have() {
    // Neither before nor after the question.
    for fails_from in [0, 1] {
        let mut asked = 0;
        let result = terminated(race(&two()), ec2(SOUND), fails_from, |_| {
            asked += 1;
            true
        });
        assert_eq!(result.sent, [""; 0]);
        assert_eq!(result.states(), [None; 2]);
        let error = result.error.unwrap();
        assert!(error.contains("the disk is full"), "{error}");
        assert_eq!(asked, fails_from);
    }
}

#[test]
fn an_instance_that_is_tagged_during_the_question_stays() {
    let is_answered = Cell::new(false);
    let mut before = ec2(SOUND);
    let mut after = ec2(&[("i-1", "running", true), ("i-6", "running", false)]);
    let program = |exec: &Exec| match is_answered.get() {
        true => after(exec),
        false => before(exec),
    };
    let result = terminated(race(&two()), program, 9, |_| {
        is_answered.set(true);
        true
    });
    assert_eq!(result.error, None);
    let [sent] = &result.sent[..] else {
        panic!("{:?}", result.sent);
    };
    assert!(sent.ends_with("--instance-ids i-6"), "{sent}");
    assert_eq!(result.states(), [Some("shutting-down")]);
    assert!(result.notices.contains("h1 stays: i-1 is tagged keep."));
    assert_eq!(result.remarks()[1], "h1 stays: i-1 is tagged keep.");
}

#[test]
fn the_user_sees_the_figures_and_those_that_are_better() {
    let run = crate::race::test_races::raced(&[1000.0, 900.0, 300.0]);
    let record = run.race.as_ref().unwrap();
    let mut concluded = crate::race::conclude(&run, record);
    concluded.ranked[0].doubts = vec!["It holds only zeros.".to_owned()];
    let kept = list::kept_hosts(&run, record, &concluded);
    let line = kept.lines().next().unwrap();
    assert!(line.starts_with("  db0 is kept (page-read.iops "), "{kept}");
    assert!(line.contains(", within "), "{kept}");
    assert!(
        kept.contains("\n    A doubt: It holds only zeros.\n  db1 is kept"),
        "{kept}"
    );
    let (run, mut concluded_of_two) = race(&two());
    concluded_of_two.ranked[1].known = concluded.ranked[2].known;
    concluded_of_two.ranked[1].doubts = vec!["It was hardly ever written.".to_owned()];
    let text = plan_of(&run, &concluded_of_two, SHOWN).text(&kept);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "To be terminated: 2 instances.");
    assert!(
        lines[1].starts_with("  h1 (i-1): 3 others are better (page-read.iops "),
        "{text}"
    );
    assert_eq!(lines[2], "    A doubt: It was hardly ever written.");
    assert!(text.contains("db0 is kept"), "{text}");
}

#[test]
fn without_agreement_no_instance_is_terminated() {
    let refused = |_: &AtomicBool| false;
    let result = terminated(race(&two()), ec2(SOUND), 9, refused);
    assert_eq!(result.sent, [""; 0]);
    assert!(result.error.as_ref().unwrap().contains("not confirmed"));
    assert_eq!(result.states(), [None; 2]);
    // A signal immediately after the confirmation cancels it.
    let result = terminated(race(&two()), ec2(SOUND), 9, |interrupt| {
        interrupt.store(true, Relaxed);
        true
    });
    assert_eq!(result.sent, [""; 0]);
    let error = result.error.as_ref().unwrap();
    assert!(error.contains("a signal came before"), "{error}");
    assert_eq!(result.states(), [None; 2]);
}

#[test]
fn without_states_in_the_answer_ec2_is_asked_for_them_and_the_rest_is_unknown() {
    let killed = Error::of("it was not done after 120 s and was killed", &[]);
    for (answer, problem) in [
        (Err(killed), "was killed"),
        (Ok(Vec::new()), "the state of its instance i-6 is unknown"),
    ] {
        // One of the two has ended; for the other it is unknown whether the request is being processed.
        let mut before = ec2(SOUND);
        let mut after = ec2(&[("i-1", "terminated", false), ("i-6", "running", false)]);
        let mut answer = Some(answer);
        let late = |exec: &Exec| {
            if terminates(exec) {
                return answer.take().unwrap();
            }
            match answer.is_none() {
                true => after(exec),
                false => before(exec),
            }
        };
        let result = terminated(race(&two()), late, 9, |_| true);
        assert_eq!(result.states(), [Some("terminated"), Some(UNKNOWN)]);
        assert!(result.error.as_ref().unwrap().contains(problem));
        let remarks = result.remarks();
        assert_eq!(remarks[0], "h1: its instance i-1 is terminated.");
        assert!(
            remarks[1].starts_with("h6: the state of its instance i-6 is unknown"),
            "{remarks:?}"
        );
    }
}

#[test]
fn an_answer_that_leaves_one_out_or_lets_it_run_is_no_success() {
    for (answer, states, problem) in [
        (
            r#"{"TerminatingInstances": [
                {"InstanceId": "i-6", "CurrentState": {"Name": "shutting-down"}}]}"#,
            [UNKNOWN, "shutting-down"],
            "the state of its instance i-1 is unknown",
        ),
        (
            r#"{"TerminatingInstances": [
                {"InstanceId": "i-6", "CurrentState": {"Name": "running"}},
                {"InstanceId": "i-1", "CurrentState": {"Name": "terminated"}}]}"#,
            ["terminated", "running"],
            "its instance i-6 is running",
        ),
        (
            "<html>",
            [UNKNOWN, UNKNOWN],
            "is not the JSON that it should be",
        ),
    ] {
        let mut sound = ec2(SOUND);
        let program = |exec: &Exec| match terminates(exec) {
            true => Ok(answer.as_bytes().to_vec()),
            false => sound(exec),
        };
        let result = terminated(race(&two()), program, 9, |_| true);
        assert_eq!(result.states(), states.map(Some));
        let error = result.error.unwrap();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn one_batch_that_fails_stops_no_other() {
    let names: Vec<String> = (0..=BATCH + 1).map(|at| format!("i-{at:03}")).collect();
    let mut hosts = vec![("h0", Some("i-0"), own("i-0"))];
    for name in &names {
        let name: &'static str = name.clone().leak();
        hosts.push((name, Some(name), own(name)));
    }
    let known: Vec<Instance> = hosts
        .iter()
        .map(|one| (one.1.unwrap(), "running", false))
        .collect();
    let mut sound = ec2(known.leak());
    let mut is_first = true;
    let protected = |exec: &Exec| {
        if terminates(exec) && is_first {
            is_first = false;
            return Err(error("OperationNotPermitted"));
        }
        sound(exec)
    };
    let result = terminated(race(&hosts), protected, 9, |_| true);
    assert_eq!(result.sent.len(), 2);
    let states = result.states();
    let (failed, others) = states.split_at(BATCH);
    assert!(failed.iter().all(|state| *state == Some(UNKNOWN)));
    assert!(others.iter().all(|state| *state == Some("shutting-down")));
    assert!(result.error.unwrap().contains("OperationNotPermitted"));
}

#[test]
fn a_permission_that_is_missing_is_reported() {
    let ids = ["i-1".to_owned()];
    assert_eq!(check_permission(&ids, &mut ec2(SOUND)), Ok(()));
    let mut denied = |_: &Exec| Err(error("UnauthorizedOperation"));
    let error = check_permission(&ids, &mut denied).unwrap_err();
    assert!(error.why.contains("UnauthorizedOperation"), "{error:?}");
    assert!(matches!(error.before_race(), Failure::Refused(_)));
    // It is checked again at the end.
    let mut sound = ec2(SOUND);
    let program = |exec: &Exec| match exec.line().contains("--dry-run") {
        true => denied(exec),
        false => sound(exec),
    };
    let result = terminated(race(&two()), program, 9, |_| {
        panic!("the user is not asked")
    });
    assert_eq!(result.sent, [""; 0]);
    assert!(result.error.unwrap().contains("UnauthorizedOperation"));
}

#[test]
fn a_dry_run_that_succeeds_may_have_terminated_one_instance_at_most() {
    let ids: Vec<String> = (0..200).map(|at| format!("i-{at:03}")).collect();
    let mut lines = Vec::new();
    let mut wrong = |exec: &Exec| {
        lines.push(exec.line());
        Ok(Vec::new())
    };
    let error = check_permission(&ids, &mut wrong).unwrap_err();
    assert_eq!(error.may_be_gone, ["i-000"]);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("--instance-ids i-000 --dry-run"),
        "{lines:?}"
    );
    assert!(matches!(error.before_race(), Failure::Midway(_)));
    // Also at the end.
    let mut sound = ec2(SOUND);
    let careless = |exec: &Exec| match exec.line().contains("--dry-run") {
        true => Ok(Vec::new()),
        false => sound(exec),
    };
    let result = terminated(race(&two()), careless, 9, |_| {
        panic!("the user is not asked")
    });
    assert_eq!(result.sent, [""; 0]);
    assert_eq!(result.states(), [Some(UNKNOWN), None]);
    assert_eq!(result.saved[1], [Some(UNKNOWN.to_owned()), None]);
    let error = result.error.unwrap();
    assert!(error.contains("the state of i-1 is unknown"), "{error}");
}

#[test]
fn no_dry_run_is_of_an_instance_that_the_source_tags_keep() {
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
