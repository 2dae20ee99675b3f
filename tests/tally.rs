//! The verb `tally`, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, ProgramOutput, Running, said};

/// Sums what comes on standard input.
fn tally(place: &Place, input: &str, arguments: &[&str]) -> ProgramOutput {
    let mut command = place.command(&[&["tally", "--from", "-"], arguments].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap().into()
}

/// The answer to a query over all time.
fn query(place: &Place, tag: &str, arguments: &[&str]) -> Value {
    let words = ["tally", "query", tag, "--from", "2020-01-01", "--json"];
    place.run(&[&words, arguments].concat()).ends_with(0).json()
}

fn count(place: &Place, tag: &str) -> f64 {
    let words = [
        "tally",
        "query",
        tag,
        "--from",
        "2020-01-01",
        "--by",
        "month",
        "--json",
    ];
    let said = place.run(&words);
    match said.status {
        Some(0) => said.json()["total"]["count"].as_f64().unwrap(),
        _ => 0.0,
    }
}

const EVENTS: &str = "\
{\"tag\":\"login\",\"n\":2,\"ts\":\"2026-11-24T10:00:05Z\"}
{\"tag\":\"login\",\"ts\":\"2026-11-24T10:00:59Z\"}
{\"tag\":\"login\",\"ts\":\"2026-11-24T11:30:00Z\"}
{\"tag\":\"api.get\",\"ms\":150,\"ts\":\"2026-11-24T10:00:00Z\",\"labels\":{\"host\":\"a\"}}
{\"tag\":\"api.get\",\"ms\":900,\"ts\":\"2026-11-24T10:00:01Z\",\"labels\":{\"host\":\"b\"}}
{\"tag\":\"api.get\",\"ms\":2500,\"ts\":\"2026-11-24T10:01:00Z\",\"labels\":{\"host\":\"b\"}}
load:3|g|T1795514400
load:1|g|T1795514401
";

#[test]
fn events_are_summed_by_minute_hour_day_and_month() {
    let place = Place::new();
    tally(&place, EVENTS, &[]).ends_with(0);
    let minutes = query(&place, "login", &[]);
    let counts: Vec<_> = minutes["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["count"])
        .collect();
    assert_eq!(counts, [3.0, 1.0]);
    assert_eq!(minutes["rows"][0]["start"], "2026-11-24T10:00:00Z");
    for (by, rows, start) in [
        ("hour", 2, "2026-11-24T10:00:00Z"),
        ("day", 1, "2026-11-24T00:00:00Z"),
        ("month", 1, "2026-11-01T00:00:00Z"),
    ] {
        let found = query(&place, "login", &["--by", by]);
        assert_eq!(found["rows"].as_array().unwrap().len(), rows, "{by}");
        assert_eq!(found["rows"][0]["start"], start);
        assert_eq!(found["total"]["count"], 4.0);
    }
    // Labels that are not named are summed.
    let all = query(&place, "api.get", &["--by", "day"]);
    let total = &all["total"];
    assert_eq!(
        (&total["count"], &total["sum"], &total["min"], &total["max"]),
        (&3.0.into(), &3550.0.into(), &150.0.into(), &2500.0.into())
    );
    let classes: Vec<f64> = total["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["count"].as_f64().unwrap())
        .collect();
    assert_eq!(classes, [1.0, 0.0, 1.0, 0.0, 1.0]);
    let p50 = total["p50"].as_f64().unwrap();
    assert!((p50 / 900.0 - 1.0).abs() < 0.0055, "{p50}");
    assert_eq!(query(&place, "api.get;host=a", &[])["total"]["count"], 1.0);
    let load = &query(&place, "load", &["--by", "hour"])["total"];
    assert_eq!((&load["last"], &load["max"]), (&1.0.into(), &3.0.into()));
    let listed = place.run(&["tally", "query"]).ends_with(0);
    assert_eq!(listed.out, "api.get;host=a\napi.get;host=b\nload\nlogin\n");
    let said = place
        .run(&["tally", "query", "api.get", "--from", "2020-01-01"])
        .ends_with(0);
    said.fits(100);
    assert!(
        said.out.starts_with("api.get  █▅\n") && said.out.contains("2,500"),
        "{said:#?}"
    );
    let mut narrow = place.command(&["tally", "query", "api.get", "--from", "2020-01-01"]);
    self::said(narrow.env("COLUMNS", "40"))
        .ends_with(0)
        .fits(40);
    place.run(&["tally", "query", "nothing"]).ends_with(1);
}

#[test]
fn a_file_is_summed_once_however_often_it_is_named() {
    let place = Place::new();
    fs::write(place.path("a.log"), "a:1|c\na:2|c\n").unwrap();
    let again = ["tally", "--from", "a.log"];
    place.run(&again).ends_with(0);
    place.run(&again).ends_with(0);
    assert_eq!(count(&place, "a"), 3.0);
    let mut file = fs::File::options()
        .append(true)
        .open(place.path("a.log"))
        .unwrap();
    file.write_all(b"a:4|c\n").unwrap();
    place.run(&again).ends_with(0);
    assert_eq!(count(&place, "a"), 7.0);
    // Under another name it is the same file.
    fs::rename(place.path("a.log"), place.path("b.log")).unwrap();
    place.run(&["tally", "--from", "b.log"]).ends_with(0);
    assert_eq!(count(&place, "a"), 7.0);
}

#[test]
fn lines_that_are_no_events_are_kept_with_their_reason() {
    let place = Place::new();
    let tag = "x".repeat(1 << 20);
    let input = format!("a:1|c\nhello\nu:1|s\n{tag}:1|c\nb:nan|ms\n\u{1}:1|c\n");
    let said = tally(&place, &input, &[]).ends_with(0);
    assert!(
        said.err.contains("1 events") && said.err.contains("5 rejected"),
        "{said:#?}"
    );
    let kept = fs::read_to_string(place.path("tally.rejected")).unwrap();
    let reasons: Vec<Value> = kept
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(reasons.len(), 5);
    assert!(
        reasons[1]["reason"].as_str().unwrap().contains("sets"),
        "{kept}"
    );
    assert_eq!(count(&place, "a"), 1.0);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_taken() {
    let place = Place::new();
    place.run(&["tally"]).refuses(&["--from"]);
    place
        .run(&["tally", "--from", "missing.log"])
        .refuses(&["missing.log"]);
    place
        .run(&["tally", "--from", "data"])
        .refuses(&["no regular file"]);
    place
        .run(&["tally", "--from", "-", "--store", "oracle://x"])
        .refuses(&["no store"]);
    place
        .run(&["tally", "--from", "-", "--timezone", "Mars/Base"])
        .refuses(&["no time zone"]);
    place
        .run(&["tally", "query", "a"])
        .refuses(&["there is no store"]);
    tally(
        &place,
        "a:1|c\n",
        &["--classes", "10,20", "--timezone", "Asia/Tokyo"],
    )
    .ends_with(0);
    let changed = ["tally", "--from", "-", "--classes", "10,30"];
    place.run(&changed).refuses(&["10,20"]);
    fs::write(
        place.path("text.db"),
        "no database, but some text that is long enough".repeat(100),
    )
    .unwrap();
    place
        .run(&["tally", "--from", "-", "--store", "sqlite:text.db"])
        .refuses(&["text.db"]);
}

#[test]
fn a_followed_file_is_read_on_across_a_rotation_and_a_stop_flushes() {
    let place = Place::new();
    let log = place.path("a.log");
    fs::write(&log, "a:1|c\n").unwrap();
    let mut command = place.command(&[
        "tally",
        "--from",
        "a.log",
        "--follow",
        "--flush-every",
        "100ms",
    ]);
    let mut running = Running::start(&mut command);
    running.wait_until("does not take the first line", || count(&place, "a") == 1.0);
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"a:10|c\na:100").unwrap();
    running.wait_until("does not follow", || count(&place, "a") == 11.0);
    file.write_all(b"|c\n").unwrap();
    fs::rename(&log, place.path("a.log.1")).unwrap();
    file.write_all(b"a:1000|c\n").unwrap();
    fs::write(&log, "a:10000|c\n").unwrap();
    running.wait_until("does not follow the rotation", || {
        count(&place, "a") == 11_111.0
    });
    running.signal(Signal::TERM);
    running.end().ends_with(0);
    // Nothing is read twice.
    place.run(&["tally", "--from", "a.log"]).ends_with(0);
    assert_eq!(count(&place, "a"), 11_111.0);
}
