use record::{Bytes, Machine, Origin, Target, TargetKind};

use super::*;
use crate::store::store_at;

/// A run of a host that has measured nothing.
fn run_of(host: &str) -> Run {
    let started = jiff::Timestamp::UNIX_EPOCH;
    Run {
        id: RunId::new(started, 1),
        started,
        disksmith: "0.1.0".to_owned(),
        command: Vec::new(),
        origin: Origin::Measured,
        target: Target {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            device: None,
            disks: Vec::new(),
            model: None,
            serial: None,
            size: Bytes::gib(100),
            unwritten_fraction: None,
            zero_fraction: None,
            direct: true,
            in_memory: false,
            caches: Vec::new(),
        },
        machine: Machine {
            hostname: host.to_owned(),
            ..Machine::default()
        },
        suite: "database".to_owned(),
        p99_target: None,
        replay: None,
        phases: Vec::new(),
        notes: Vec::new(),
        interrupted: true,
    }
}

fn ended(fleet: &str, host: &str) -> EndedVerb {
    EndedVerb {
        name: format!("{fleet}.{host}.1"),
        order: crate::protocol::VerbRequest {
            fleet: fleet.to_owned(),
            host: host.to_owned(),
            args: vec!["bench".to_owned()],
            program: false,
        },
        by: crate::protocol::EndedBy::Loss,
        status: None,
        seconds: 1.0,
        answer: serde_json::json!({ "filler": "x".repeat(10_000) }),
        stderr: String::new(),
        runs: Vec::new(),
    }
}

fn empty(id: &str) -> FleetRun {
    FleetRun {
        id: id.to_owned(),
        began: jiff::Timestamp::UNIX_EPOCH,
        kind: RunKind::Run,
        args: Vec::new(),
        hosts: Vec::new(),
        race: None,
    }
}

#[test]
fn a_thread_that_waits_for_the_ledger_lets_its_agent_know_that_it_is_there() {
    let store = AnswerStore::new(empty("f"));
    let beats = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Nothing is written, as with a slow disk of the ledger.
        let waiting = scope.spawn(|| {
            store.put_collected(ended("old", "h1"), &mut || {
                beats.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            })
        });
        while beats.load(std::sync::atomic::Ordering::Relaxed) < 2 {
            std::thread::sleep(HEARTBEAT_INTERVAL / 10);
        }
        store.close();
        assert!(!waiting.join().unwrap());
    });
}

#[test]
fn late_answers_of_many_hosts_come_to_one_run_that_is_no_newer_for_them() {
    let place = tempfile::tempdir().unwrap();
    let mut store = store_at(&place.path().join("ledger.db"));
    add(&mut store, "done", &empty("done")).unwrap();
    let busy = store_at(&place.path().join("ledger.db"));
    let busy = OwnedJob::begin(busy, "busy", &empty("busy"), Takeover::FromDead).unwrap();
    let began = store.ledger().list_work(None).unwrap();
    let names: Vec<String> = (0..60).map(|at| format!("h{at:02}")).collect();
    let mut earlier: Vec<EndedVerb> = names
        .iter()
        .flat_map(|name| ["done", "unknown"].map(|fleet| ended(fleet, name)))
        .collect();
    earlier.push(ended("busy", "h1"));
    // A second collection changes nothing.
    for _ in 0..2 {
        let mut received = ReceivedAnswers {
            earlier: earlier.clone(),
            ..ReceivedAnswers::default()
        };
        received.write(&mut store).unwrap();
    }
    for fleet in ["done", "unknown"] {
        let work = store.find::<FleetRun>(fleet).unwrap().unwrap();
        let hosts: Vec<&String> = work.document.hosts.iter().map(|host| &host.host).collect();
        assert!(hosts.iter().copied().eq(&names), "{hosts:?}");
        assert!(work.summary.finished.is_some());
    }
    let done = store.find::<FleetRun>("done").unwrap().unwrap().summary;
    assert!(
        began
            .iter()
            .any(|work| work.key == "done" && work.began == done.began)
    );
    // Another process works on this one, which is left unchanged; the answer is stored beside it.
    assert!(store.find::<FleetRun>("busy.h1.1").unwrap().is_some());
    busy.finish(&empty("busy")).unwrap();
}

#[test]
fn two_hosts_may_give_the_same_id_and_a_run_that_comes_twice_is_kept_once() {
    let place = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(place.path().join("ledger.db")).unwrap();
    let first = run_of("h1");
    let mut second = first.clone();
    second.machine.hostname = "h2".to_owned();
    let id = first.id.clone();
    for run in [&first, &second, &first, &second] {
        save(&mut ledger, &mut run.clone()).unwrap();
    }
    let kept = ledger.list(&ledger::Filter::default()).unwrap();
    let mut hosts: Vec<&str> = kept.iter().map(|run| run.host.as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["h1", "h2"]);
    assert_eq!(kept.iter().filter(|run| run.id == id).count(), 1);
}
