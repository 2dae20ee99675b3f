//! A verb on very many simulated hosts, with a real ledger.

use std::time::Instant;

use ledger::Ledger;
use std::path::Path;

use super::*;
use crate::connection::{EARLIER_RUN, SimulatedTransport, simulated_hosts};
use crate::show;
use crate::store::{past, store_at};

/// Runs on these hosts. Returns the run, and the run read from the ledger.
fn run_on(hosts: &[Host], interrupt: &AtomicBool) -> (FleetRun, FleetRun) {
    let place = tempfile::tempdir().unwrap();
    run_with(&place.path().join("ledger.db"), hosts, interrupt)
}

/// Runs on these hosts with this ledger.
fn run_with(path: &Path, hosts: &[Host], interrupt: &AtomicBool) -> (FleetRun, FleetRun) {
    let run = begun(RunKind::Run, vec!["devices".to_owned()], hosts);
    let job = OwnedJob::begin(store_at(path), &run.id, &run, Takeover::FromDead).unwrap();
    let id = run.id.clone();
    let answers = AnswerStore::new(run);
    let ordered = VerbRunner {
        program: false,
        transport: &SimulatedTransport::default(),
        fleet: &id,
        args: &["devices".to_owned()],
        own: &[],
        interrupt,
        limits: TimeLimits::NONE,
        lost: Mutex::default(),
        met: MachineRegistry::default(),
        answers: &answers,
    };
    thread::scope(|scope| {
        scope.spawn(|| answers.write_all(job));
        each(hosts, 256, |at, host| ordered.run_on(at, host), |_, _| {}).unwrap();
        answers.close();
    });
    assert!(answers.failure().is_none());
    let kept = Ledger::open(path)
        .unwrap()
        .work::<FleetRun>(&id)
        .unwrap()
        .unwrap();
    assert!(kept.summary.finished.is_some());
    (answers.run(), kept.document)
}

#[test]
fn a_thousand_answers_are_in_the_ledger() {
    let began = Instant::now();
    let (run, kept) = run_on(&simulated_hosts(1000), &AtomicBool::new(false));
    assert_eq!(run, kept);
    assert!(
        run.hosts
            .iter()
            .all(|host| host.outcome == HostOutcome::Done)
    );
    assert!(
        run.hosts
            .iter()
            .all(|host| host.answer["command"] == "devices")
    );
    // A separate commit for each of them would take longer than this.
    assert!(began.elapsed().as_secs() < 1200, "{:?}", began.elapsed());
}

/// Hosts that have kept an answer of an earlier run.
fn with_something_left(count: usize) -> Vec<Host> {
    let mut hosts = simulated_hosts(count);
    for host in &mut hosts {
        host.name = format!("left{}", host.name);
    }
    hosts
}

/// Collects the kept answers of these hosts, while they run something else.
fn collect_from(count: usize) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ledger.db");
    let (run, _) = run_with(&path, &with_something_left(count), &AtomicBool::new(false));
    for host in &run.hosts {
        assert_eq!(host.outcome, HostOutcome::Done, "{:?}", host.why);
        assert_eq!(host.collected, [EARLIER_RUN]);
    }
    let ledger = Ledger::open(&path).unwrap();
    let earlier = ledger
        .work::<FleetRun>(EARLIER_RUN)
        .unwrap()
        .unwrap()
        .document;
    assert_eq!(earlier.hosts.len(), count);
    // The collected run is older, and the last run is the one that collected it.
    let keys = past::keys(&ledger).unwrap();
    let last = show::chosen(&keys, job::LAST_JOB_WORD);
    assert_eq!(last, Ok(Some(run.id.as_str())));
}

#[test]
fn kept_answers_are_collected_while_hosts_continue() {
    collect_from(20);
}

#[test]
#[ignore = "long proof: make prove"]
fn kept_answers_of_a_thousand_hosts_are_collected_and_none_is_lost() {
    collect_from(1000);
}

#[test]
fn a_host_that_is_dead_or_lost_is_reported_and_costs_the_others_nothing() {
    let mut hosts = simulated_hosts(5);
    hosts[1].name = "dead".to_owned();
    hosts[3].name = "mute".to_owned();
    hosts[4].name = "busy".to_owned();
    let (run, kept) = run_on(&hosts, &AtomicBool::new(false));
    assert_eq!(run, kept);
    let outcome: Vec<HostOutcome> = run.hosts.iter().map(|host| host.outcome).collect();
    assert_eq!(
        outcome,
        [
            HostOutcome::Done,
            HostOutcome::Unreached,
            HostOutcome::Done,
            HostOutcome::Lost,
            HostOutcome::Busy
        ]
    );
    let text = view::text(&run, 100);
    for expected in [
        "dead: unreached: dead was not reached.",
        "mute: lost: the connection",
        "busy: busy: busy: another run or race is measuring.",
        "2 of 5 hosts are done",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(matches!(ended(&run, false), Err(Failure::Midway(_))));
}

#[test]
fn after_a_signal_nothing_is_begun() {
    let (run, _) = run_on(&simulated_hosts(3), &AtomicBool::new(true));
    assert!(
        run.hosts
            .iter()
            .all(|host| host.outcome == HostOutcome::Interrupted),
        "{run:?}"
    );
    // Nothing was changed, and the message says so.
    assert!(matches!(ended(&run, true), Err(Failure::Refused(_))));
}

#[test]
fn a_signal_after_the_last_host_changes_nothing() {
    let mut run = begun(RunKind::Run, Vec::new(), &simulated_hosts(2));
    for host in &mut run.hosts {
        host.outcome = HostOutcome::Done;
    }
    assert!(matches!(ended(&run, true), Ok(CommandEnd::Done)));
    run.hosts[1].outcome = HostOutcome::Interrupted;
    run.hosts[1].seconds = Some(1.0);
    run.hosts[0].outcome = HostOutcome::Unreached;
    assert!(matches!(ended(&run, true), Err(Failure::Midway(_))));
}

#[test]
fn an_answer_that_was_kept_alongside_its_run_is_shown_with_it() {
    let mut run = begun(RunKind::Run, Vec::new(), &simulated_hosts(2));
    run.hosts[0].zone = Some("z".to_owned());
    let mut late = begun(RunKind::Run, Vec::new(), &simulated_hosts(1));
    late.hosts[0].outcome = HostOutcome::Lost;
    late.hosts[0].seconds = Some(2.0);
    run.merge(late);
    assert_eq!(run.hosts.len(), 2);
    assert_eq!(
        (run.hosts[0].outcome, run.hosts[0].seconds),
        (HostOutcome::Lost, Some(2.0))
    );
    assert_eq!(run.hosts[0].zone.as_deref(), Some("z"));
    assert_eq!(run.hosts[1].outcome, HostOutcome::Waiting);
}

#[test]
fn the_exit_status_shows_whether_anything_was_touched() {
    let mut run = begun(RunKind::Run, Vec::new(), &simulated_hosts(2));
    let mut set = |outcome: [HostOutcome; 2]| {
        for (host, outcome) in run.hosts.iter_mut().zip(outcome) {
            host.outcome = outcome;
        }
        run.clone()
    };
    assert!(matches!(
        ended(&set([HostOutcome::Done, HostOutcome::Done]), false),
        Ok(CommandEnd::Done)
    ));
    assert!(matches!(
        ended(&set([HostOutcome::Done, HostOutcome::No]), false),
        Ok(CommandEnd::No)
    ));
    assert!(matches!(
        ended(&set([HostOutcome::Refused, HostOutcome::Unreached]), false),
        Err(Failure::Refused(_))
    ));
    for bad in [
        HostOutcome::Failed,
        HostOutcome::Lost,
        HostOutcome::Unreached,
        HostOutcome::Refused,
        HostOutcome::Unfit,
    ] {
        assert!(
            matches!(
                ended(&set([HostOutcome::Done, bad]), false),
                Err(Failure::Midway(_))
            ),
            "{bad:?}"
        );
    }
}
