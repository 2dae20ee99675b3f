//! `bench --json`: other programs read it, so its keys and types are pinned here one by one.

use serde_json::Value;

use crate::support::{Place, SHORT};

/// Path of every object of the document, with each key and the type of its value: `s` a string, `n` a
/// number, `i` a whole number, `b` a truth, `a` an array, `o` an object; `?` where it may be null.
const KEYS: [(&str, &str); 13] = [
    (
        "",
        "schema:i command:s disksmith:s run:s started:s origin:s interrupted:b target:o machine:o \
         suite:s phases:a answer:o? findings:a verdict:s notes:a",
    ),
    (
        "/target",
        "path:s kind:s device:s? disks:a model:s? serial:s? size_bytes:i unwritten_fraction:n? zero_fraction:n? \
         direct:b in_memory:b caches:a",
    ),
    (
        "/machine",
        "hostname:s kernel:s arch:s cpu:s cores:i memory_bytes:i memory_limit_bytes:i? \
         filesystem:s? mount_point:s? mount_options:s? scheduler:s? read_ahead_bytes:i? \
         rotational:b? write_cache:s? cloud:o?",
    ),
    (
        "/phases/0",
        "name:s workload:o engine:o began_s:n seconds:n drain_seconds:n warmup_seconds:n \
         stopped:s read:o? write:o? create:o? stat:o? delete:o? sync:o? commit:o? \
         threads_fairness:o cpu:o device:o? outcome:o? windows:a",
    ),
    (
        "/phases/0/workload",
        "pattern:s read_fraction:n block_bytes:i threads:i depth:i rate_per_s:n? span_bytes:i \
         sync_every:i sync_at_end:b details:o?",
    ),
    ("/phases/0/engine", "kind:s clock:s detail:s"),
    (
        "/phases/0/read",
        "ops:i bytes:i iops:o bytes_per_s:o latency_ns:o service_ns:o?",
    ),
    ("/phases/0/read/iops", "mean:n low:n? high:n?"),
    ("/phases/0/read/bytes_per_s", "mean:n low:n? high:n?"),
    (
        "/phases/0/read/latency_ns",
        "min:i mean:n stddev:n p50:i p90:i p95:i p99:i p99_9:i p99_99:i max:i",
    ),
    (
        "/phases/0/threads_fairness",
        "ops_mean:n ops_stddev:n seconds_mean:n? seconds_stddev:n?",
    ),
    ("/phases/0/cpu", "user_s:n system_s:n"),
    (
        "/phases/0/windows/0",
        "t_s:n seconds:n ops:i bytes:i p50_ns:i p99_ns:i max_ns:i in_flight:i",
    ),
];

fn is_of_type(value: &Value, kind: &str) -> bool {
    if value.is_null() {
        return kind.ends_with('?');
    }
    match kind.trim_end_matches('?') {
        "s" => value.is_string(),
        "n" => value.is_number(),
        "i" => value.is_u64(),
        "b" => value.is_boolean(),
        "a" => value.is_array(),
        "o" => value.is_object(),
        other => panic!("no type {other}"),
    }
}

#[test]
fn the_document_has_these_keys_of_these_types_and_no_others() {
    let place = Place::new();
    let run = place.document(&SHORT);
    for (at, keys) in KEYS {
        let object = run.pointer(at).and_then(Value::as_object);
        let object = object.unwrap_or_else(|| panic!("no object at '{at}'"));
        let mut wanted: Vec<&str> = Vec::new();
        for key in keys.split_whitespace() {
            let (key, kind) = key.split_once(':').unwrap();
            let value = object.get(key);
            let value = value.unwrap_or_else(|| panic!("no {key} at '{at}'"));
            assert!(is_of_type(value, kind), "{at}/{key} is {value}, not {kind}");
            wanted.push(key);
        }
        wanted.sort_unstable();
        let mut found: Vec<&str> = object.keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "at '{at}'");
    }
}

#[test]
fn the_document_says_what_was_done() {
    let place = Place::new();
    let said = place
        .bench(&[&SHORT[..], &["--json"]].concat())
        .ends_with(0);
    assert_eq!(said.err, "");
    let run = said.json();
    assert_eq!(run["schema"], 1);
    assert_eq!(run["command"], "bench");
    assert_eq!(run["disksmith"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["suite"], "database");
    assert_eq!(run["origin"], "measured");
    assert_eq!(run["interrupted"], false);
    assert_eq!(run["run"], place.runs()[0]);
    assert_eq!(run["target"]["kind"], "directory");
    assert_eq!(run["target"]["size_bytes"], 8 << 20);
    assert_eq!(run["target"]["unwritten_fraction"], 0.0);

    let phase = &run["phases"][0];
    assert_eq!(phase["name"], "page-read");
    assert_eq!(phase["stopped"], "time");
    assert_eq!(phase["workload"]["pattern"], "random");
    assert_eq!(phase["workload"]["block_bytes"], 16 << 10);
    assert_eq!(phase["workload"]["depth"], 20);
    let read = &phase["read"];
    let ops = read["ops"].as_u64().unwrap();
    assert_eq!(read["bytes"], ops * (16 << 10));
    let latency = |key: &str| read["latency_ns"][key].as_u64().unwrap();
    let rising = ["min", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"].map(latency);
    assert!(rising.is_sorted(), "{rising:?}");
    assert!(rising[0] > 1000, "no disk answers within a microsecond");
    for (finding, severity) in [("short", "warn"), ("small-span", "note")] {
        let findings = run["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["code"] == finding);
        assert_eq!(found.unwrap()["severity"], severity);
    }
}

#[test]
fn every_direction_of_every_phase_is_counted() {
    let place = Place::new();
    let run = place.document("--size 16M --seconds 200ms");
    let directions = ["read", "write", "sync", "commit"];
    let seen: Vec<String> = run["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| {
            let seen = directions.into_iter().filter(|key| !phase[*key].is_null());
            let seen: Vec<&str> = seen.collect();
            format!("{}: {}", phase["name"].as_str().unwrap(), seen.join(" "))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "seek: read",
            "page-read: read",
            "page-write: write",
            "page-mixed: read write",
            "log-append: write sync commit",
            "scan: read",
            "load: write sync",
        ]
    );
    // The one sync at the end of the load: it has a latency, and no rate.
    let latency = &run["phases"][6]["sync"]["latency_ns"];
    assert!(latency["max"].as_u64().unwrap() > 0, "{latency}");
    place.assert_nothing_left();
}
