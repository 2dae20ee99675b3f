//! Races from files.

use serde_json::json;

use super::*;
use crate::args::FleetVerb;
use crate::host_line::{LineVerb, parse};
use crate::race::{Decision, RaceConclusion, RoundsCommand, begun, conclude};

fn args(words: &[&str]) -> RaceArgs {
    let line = [
        "fleet",
        "race",
        "--list",
        "x",
        "--collect",
        "rounds",
        "--keep",
        "2",
    ];
    match parse([&line[..], words].concat()).unwrap() {
        LineVerb::Fleet(args) => match args.verb {
            FleetVerb::Race(args) => *args,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn hosts(names: &[&str]) -> Vec<Host> {
    let host = |name: &&str| Host {
        name: (*name).to_owned(),
        address: (*name).to_owned(),
        ..Host::default()
    };
    names.iter().map(host).collect()
}

/// An answer of a disk with this number of reads a second.
fn answer(run: &str, iops: f64) -> String {
    let flow = json!({ "ops": 1, "iops": { "mean": iops }, "bytes_per_s": { "mean": 4096.0 * iops },
        "latency_ns": { "mean": 1e6, "p50": 1e6, "p90": 1e6, "p95": 1e6, "p99": 2e6, "p99_9": 3e6 } });
    json!({ "schema": 1, "command": "bench", "run": run, "interrupted": false, "verdict": "trusted",
        "target": { "path": "/mnt", "device": "sda", "model": null, "serial": "v1", "size_bytes": 1 << 30 },
        "phases": [{ "name": "page-read", "read": flow, "write": null, "sync": null, "commit": null }],
        "findings": [] })
    .to_string()
}

/// Writes `rounds` rounds, in which hosts have these numbers of reads a second.
fn measured(folder: &Path, rounds: usize, hosts: &[(&str, f64)]) {
    for round in 1..=rounds {
        let place = folder.join(format!("round-{round}"));
        fs::create_dir_all(&place).unwrap();
        for (at, (name, iops)) in hosts.iter().enumerate() {
            let noise = ((round * 7 + at * 3) % 5) as f64 / 500.0;
            let text = answer(&format!("{name}-{round}"), iops * (1.0 + noise));
            fs::write(place.join(format!("{name}.json")), text).unwrap();
        }
    }
}

/// The race, and the indices of the hosts to be measured next.
type Collected = (FleetRun, Vec<usize>);

fn collected(folder: &Path, names: &[&str], words: &[&str]) -> Result<Collected, Failure> {
    let (args, hosts) = (args(words), hosts(names));
    let asked = RoundsCommand::of(&args).unwrap();
    collect(folder, &args, &hosts, begun(&args, &asked, &hosts))
}

fn decision(run: &FleetRun, concluded: &RaceConclusion, name: &str) -> Decision {
    let of = |one: &&crate::race::RankedHost| run.name(one.place) == name;
    concluded.ranked.iter().find(of).unwrap().decided
}

#[test]
fn rounds_of_files_decide_as_those_of_a_race() {
    let folder = tempfile::tempdir().unwrap();
    let levels = [
        ("db1", 9000.0),
        ("db2", 12_000.0),
        ("db3", 11_900.0),
        ("db4", 5000.0),
    ];
    measured(folder.path(), 240, &levels);
    let names = ["db1", "db2", "db3", "db4", "dead"];
    let (run, next) = collected(folder.path(), &names, &[]).unwrap();
    let record = run.race.as_ref().unwrap();
    assert!(!record.interrupted && next.is_empty());
    let concluded = conclude(&run, record);
    let of = |name| decision(&run, &concluded, name);
    assert_eq!([of("db2"), of("db3")], [Decision::Keep; 2]);
    assert_eq!([of("db1"), of("db4")], [Decision::Cull; 2]);
    assert_eq!(of("dead"), Decision::Unreachable);
    // With too few rounds it is undecided, and the hosts to be measured next are named.
    let short = tempfile::tempdir().unwrap();
    measured(short.path(), 2, &levels);
    let (run, next) = collected(short.path(), &names[..4], &[]).unwrap();
    assert!(run.race.as_ref().unwrap().interrupted);
    let next: Vec<&str> = next.into_iter().map(|place| run.name(place)).collect();
    assert!(next.contains(&"db2"), "{next:?}");
}

#[test]
fn a_host_that_misses_a_floor_in_a_round_is_out() {
    let folder = tempfile::tempdir().unwrap();
    measured(
        folder.path(),
        40,
        &[("db1", 9000.0), ("db2", 9100.0), ("db3", 400.0)],
    );
    let floor = ["--floor", "page-read.iops>=5000"];
    let (run, _) = collected(folder.path(), &["db1", "db2", "db3"], &floor).unwrap();
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    assert_eq!(decision(&run, &concluded, "db3"), Decision::HostFloor);
}

#[test]
fn an_invalid_round_is_refused_with_its_file() {
    let refused = |folder: &Path| {
        let failure = collected(folder, &["db1"], &[]).unwrap_err();
        failure.error().to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(folder.path()).contains("no folder of a round"));
    let first = folder.path().join("1");
    fs::create_dir_all(&first).unwrap();
    fs::write(first.join("db1.json"), "{}").unwrap();
    fs::write(first.join("web1.json"), answer("a", 1.0)).unwrap();
    let errors = refused(folder.path());
    assert!(errors.contains("db1.json: it is no answer of"), "{errors}");
    assert!(
        errors.contains("web1.json: no host is called web1"),
        "{errors}"
    );
    fs::remove_file(first.join("web1.json")).unwrap();
    let second = folder.path().join("2");
    fs::create_dir_all(&second).unwrap();
    for round in [&first, &second] {
        fs::write(round.join("db1.json"), answer("same", 1.0)).unwrap();
    }
    let errors = refused(folder.path());
    assert!(errors.contains("it is the run same of"), "{errors}");
    assert!(refused(Path::new("/nowhere")).contains("cannot be read"));
}
