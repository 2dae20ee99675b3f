//! Tests of the termination itself: commands sent, results recorded, messages shown.

use std::cell::RefCell;

use super::*;

/// Result of a termination.
struct TerminationResult {
    run: FleetRun,
    error: Option<String>,
    /// Ids that `aws` was asked to terminate, dry runs left out.
    sent: Vec<String>,
    told: String,
    /// The states of all that are to be terminated, as often as the ledger was written.
    kept: Vec<Vec<Option<String>>>,
}

impl TerminationResult {
    fn states(&self) -> Vec<Option<&str>> {
        let plan = self.run.race.as_ref().unwrap().termination.as_ref();
        let targets = &plan.unwrap().targets;
        targets.iter().map(|one| one.state.as_deref()).collect()
    }
}

/// Terminates what a race has found bad. `fails_from` is the number of the write from which on the ledger
/// fails; `agree` is asked once.
fn terminated(
    hosts: &[Member],
    program: impl FnMut(&Exec) -> Result<Vec<u8>, String>,
    fails_from: usize,
    agree: impl FnMut() -> bool,
) -> TerminationResult {
    terminated_unless(&AtomicBool::new(false), hosts, program, fails_from, agree)
}

/// The same, where a signal may come.
fn terminated_unless(
    interrupt: &AtomicBool,
    hosts: &[Member],
    mut program: impl FnMut(&Exec) -> Result<Vec<u8>, String>,
    fails_from: usize,
    mut agree: impl FnMut() -> bool,
) -> TerminationResult {
    let (mut run, concluded) = race(hosts);
    let (mut sent, mut told, mut kept) = (Vec::new(), String::new(), Vec::new());
    let mut terminator = Terminator {
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
                    .targets
                    .into_iter()
                    .map(|one| one.state)
                    .collect(),
            );
            if kept.len() > fails_from {
                return Err("the disk is full".to_owned());
            }
            Ok(())
        },
        confirm: &mut |_| Ok(agree()),
        notice: &mut |text| told.push_str(text),
        interrupt,
    };
    let asked = ChoiceOptions {
        is_of_ec2: false,
        is_shown: true,
    };
    let done = terminator.terminate(&mut run, &concluded, asked);
    let error = done.err().map(|failure| {
        assert!(matches!(failure, Failure::Midway(_)));
        failure.error().to_string()
    });
    TerminationResult {
        run,
        error,
        sent,
        told,
        kept,
    }
}

#[test]
fn the_ledger_knows_of_each_before_it_is_terminated_and_what_came_of_it() {
    let result = terminated(&two(), ec2(SOUND), 9, || true);
    assert_eq!(result.error, None);
    assert_eq!(result.sent.len(), 1);
    assert!(result.told.contains("h1 (i-1): 3 others are better."));
    assert_eq!(result.states(), [Some("shutting-down"); 2]);
    let all = |state: Option<&str>| vec![state.map(str::to_owned); 2];
    let kept = [all(None), all(Some(UNKNOWN)), all(Some("shutting-down"))];
    assert_eq!(result.kept, kept);
}

#[test]
fn all_that_is_known_of_the_instances_comes_back_from_the_ledger() {
    let (mut run, concluded) = race(&two());
    let mut plan = planned_of(&run, &concluded, false);
    for (one, number) in plan.targets.iter_mut().zip(1..) {
        one.figure = Some(format!("page-read.iops {number}"));
        one.doubts = vec!["It was hardly ever written.".to_owned()];
        one.state = Some(UNKNOWN.to_owned());
    }
    note(&mut run, &plan);
    // The ledger keeps nothing that would not.
    let back: FleetRun = serde_json::from_slice(&serde_json::to_vec(&run).unwrap()).unwrap();
    assert_eq!(back, run);
}

#[test]
fn nothing_is_terminated_of_which_the_ledger_would_say_nothing() {
    // Neither before the user is asked, nor after.
    for fails_from in [0, 1] {
        let mut asked = 0;
        let result = terminated(&two(), ec2(SOUND), fails_from, || {
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
fn what_someone_tagged_while_the_question_stood_stays() {
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
    let result = terminated(&two(), program, 9, || {
        is_answered.replace(true);
        true
    });
    assert_eq!(result.error, None);
    assert_eq!(result.sent.len(), 1);
    assert!(
        result.sent[0].ends_with("--instance-ids i-6"),
        "{:?}",
        result.sent
    );
    assert_eq!(result.states(), [Some("shutting-down")]);
    assert!(result.told.contains("h1 stays: i-1 is tagged keep."));
}

#[test]
fn the_user_sees_the_figures_and_those_that_are_better() {
    let run = crate::race::test_races::raced(&[1000.0, 900.0, 300.0]);
    let record = run.race.as_ref().unwrap();
    let mut concluded = crate::race::conclude(&run, record);
    concluded.ranked[0].doubts = vec!["It holds only zeros.".to_owned()];
    let kept = list::kept(&run, record, &concluded);
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
    let result = terminated(
        &[two()[0].clone(), ("h2", Some("i-2"), own("i-2"))],
        ec2(SOUND),
        9,
        || true,
    );
    let (_, concluded) = race(&two());
    let record = result.run.race.as_ref().unwrap();
    let remarks = crate::race::view::remarks(&result.run, record, &concluded);
    assert_eq!(remarks, ["h2 stays: i-2 is tagged keep."]);
}

#[test]
fn no_one_who_does_not_agree_loses_anything() {
    let result = terminated(&two(), ec2(SOUND), 9, || false);
    assert_eq!(result.sent, [""; 0]);
    assert!(
        result
            .error
            .as_ref()
            .unwrap()
            .contains("it was not confirmed")
    );
    assert_eq!(result.states(), [None; 2]);
}

#[test]
fn a_signal_behind_the_agreement_is_told_as_one() {
    let interrupt = AtomicBool::new(false);
    let result = terminated_unless(&interrupt, &two(), ec2(SOUND), 9, || {
        interrupt.store(true, Relaxed);
        true
    });
    assert_eq!(result.sent, [""; 0]);
    let error = result.error.unwrap();
    assert!(error.contains("a signal came before"), "{error}");
}

#[test]
fn after_an_error_it_is_asked_what_is_gone_and_the_rest_is_not_known() {
    // One of both is gone by now; for the other it is unknown whether the request is on its way.
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
    let result = terminated(&two(), late, 9, || true);
    assert_eq!(result.states(), [Some("terminated"), Some(UNKNOWN)]);
    assert!(result.error.as_ref().unwrap().contains("was killed"));
    assert_eq!(result.kept.len(), 3, "what came of it is kept");
    let (_, concluded) = race(&two());
    let record = result.run.race.as_ref().unwrap();
    let remarks = crate::race::view::remarks(&result.run, record, &concluded).join(" ");
    assert!(
        remarks.contains("h6: the state of its instance i-6 is unknown"),
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
            "The state of i-1 is unknown",
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
        let result = terminated(
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
        assert_eq!(result.states(), states.map(Some));
        let error = result.error.unwrap();
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
    let result = terminated(&hosts, protected, 9, || true);
    assert_eq!(result.sent.len(), 2);
    let states = result.states();
    assert!(states[..BATCH].iter().all(|state| *state == Some(UNKNOWN)));
    assert!(
        states[BATCH..]
            .iter()
            .all(|state| *state == Some("shutting-down"))
    );
    assert!(result.error.unwrap().contains("OperationNotPermitted"));
}

#[test]
fn a_permission_that_is_missing_is_told() {
    let ids = ["i-1".to_owned()];
    assert_eq!(check_permission(&ids, &mut ec2(SOUND)), Ok(()));
    let mut denied = |_: &Exec| Err("status 254: (UnauthorizedOperation)".to_owned());
    let Err(DryRunError::Refused(why)) = check_permission(&ids, &mut denied) else {
        panic!("it is allowed")
    };
    assert!(why.contains("UnauthorizedOperation"), "{why}");
}

#[test]
fn what_terminates_instead_of_a_rehearsal_does_so_with_one_at_most() {
    let ids: Vec<String> = (0..200).map(|at| format!("i-{at:03}")).collect();
    let mut lines = Vec::new();
    let mut wrong = |exec: &Exec| {
        lines.push(exec.line());
        Ok(Vec::new())
    };
    let why = check_permission(&ids, &mut wrong).unwrap_err();
    assert_eq!(why, DryRunError::MayBeGone(vec!["i-000".to_owned()]));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("--instance-ids i-000 --dry-run"),
        "{lines:?}"
    );
    assert!(matches!(why.before_race(), Failure::Midway(_)));
    // In the end too, and what came of that one is not known then, unless EC2 says so.
    for (gone, state, fails_from) in [
        ("running", UNKNOWN, 9),
        ("terminated", "terminated", 9),
        ("running", UNKNOWN, 1),
    ] {
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
        let result = terminated(&two(), careless, fails_from, || {
            panic!("the user is not asked")
        });
        assert_eq!(result.sent, [""; 0]);
        assert_eq!(result.states(), [Some(state), None]);
        let error = result.error.unwrap();
        assert!(error.starts_with("'aws ec2 terminate"), "{error}");
        assert!(error.contains("the state of i-1 is unknown"), "{error}");
        // The ledger says the opposite then.
        let is_wrong = error.contains("none of them is terminated, which may not be so");
        assert_eq!(is_wrong, fails_from == 1, "{error}");
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
