//! The verb `tally`, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tally/services.rs"]
mod services;
mod support;

use std::fs;
use std::io::{BufRead as _, Read as _, Write as _};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, ProgramOutput, Running, Words, output_of};

/// Sums what comes on standard input.
fn tally(place: &Place, input: &str, arguments: &(impl Words + ?Sized)) -> ProgramOutput {
    let mut command = place.command(&[vec!["tally", "--from", "-"], arguments.words()].concat());
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
fn query(place: &Place, tag: &str, arguments: &(impl Words + ?Sized)) -> Value {
    let words = vec!["tally", "query", tag, "--from", "2020-01-01", "--json"];
    place
        .run(&[words, arguments.words()].concat())
        .ends_with(0)
        .json()
}

fn count(place: &Place, tag: &str) -> f64 {
    let words = format!("tally query {tag} --from 2020-01-01 --by month --json");
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
    tally(&place, EVENTS, "").ends_with(0);
    let minutes = query(&place, "login", "");
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
        let found = query(&place, "login", &format!("--by {by}"));
        assert_eq!(found["rows"].as_array().unwrap().len(), rows, "{by}");
        assert_eq!(found["rows"][0]["start"], start);
        assert_eq!(found["total"]["count"], 4.0);
    }
    // Labels that are not named are summed.
    let all = query(&place, "api.get", "--by day");
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
    assert_eq!(query(&place, "api.get;host=a", "")["total"]["count"], 1.0);
    let load = &query(&place, "load", "--by hour")["total"];
    assert_eq!((&load["last"], &load["max"]), (&1.0.into(), &3.0.into()));
    let listed = place.run("tally query").ends_with(0);
    assert_eq!(listed.out, "api.get;host=a\napi.get;host=b\nload\nlogin\n");
    let tags = place.run("tally query --json").ends_with(0).json();
    assert_eq!(tags["tags"][0]["labels"]["host"], "a");
    let said = place
        .run("tally query api.get --from 2020-01-01")
        .ends_with(0);
    said.fits(100);
    assert!(
        said.out.starts_with("api.get  █▅\n") && said.out.contains("2,500"),
        "{said:#?}"
    );
    let mut narrow = place.command("tally query api.get --from 2020-01-01");
    self::output_of(narrow.env("COLUMNS", "40"))
        .ends_with(0)
        .fits(40);
    place.run("tally query nothing").ends_with(1);
}

#[test]
fn a_file_is_summed_once_however_often_it_is_named() {
    let place = Place::new();
    fs::write(place.path("a.log"), "a:1|c\na:2|c\n").unwrap();
    let again = "tally --from a.log";
    place.run(again).ends_with(0);
    place.run(again).ends_with(0);
    assert_eq!(count(&place, "a"), 3.0);
    let mut file = fs::File::options()
        .append(true)
        .open(place.path("a.log"))
        .unwrap();
    file.write_all(b"a:4|c\n").unwrap();
    place.run(again).ends_with(0);
    assert_eq!(count(&place, "a"), 7.0);
    // Under another name it is the same file.
    fs::rename(place.path("a.log"), place.path("b.log")).unwrap();
    place.run("tally --from b.log").ends_with(0);
    assert_eq!(count(&place, "a"), 7.0);
}

#[test]
fn lines_that_are_no_events_are_kept_with_their_reason() {
    let place = Place::new();
    let tag = "x".repeat(1 << 20);
    let input = format!("a:1|c\nhello\nu:1|s\n{tag}:1|c\nb:nan|ms\n\u{1}:1|c\n");
    let said = tally(&place, &input, "").ends_with(0);
    said.warns(&["1 event in", "5 rejected"]);
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
    place.run("tally").refuses(&["--from"]);
    place
        .run("tally --from missing.log")
        .refuses(&["missing.log"]);
    place.run("tally --from data").refuses(&["no regular file"]);
    place
        .run("tally --from - --store oracle://x")
        .refuses(&["no store"]);
    place
        .run("tally --from - --timezone Mars/Base")
        .refuses(&["not a time zone"]);
    let twice = "tally --from - --store sqlite:a.db --store sqlite:a.db";
    place.run(twice).refuses(&["named twice"]);
    place
        .run("tally --from redis://x")
        .refuses(&["gearman://, http://, statsd://, kafka://"]);
    place.run("tally query a").refuses(&["there is no store"]);
    tally(&place, "a:1|c\n", "--classes 10,20 --timezone Asia/Tokyo").ends_with(0);
    let changed = "tally --from - --classes 10,30";
    place.run(changed).refuses(&["10,20"]);
    fs::write(
        place.path("text.db"),
        "no database, but some text that is long enough".repeat(100),
    )
    .unwrap();
    place
        .run("tally --from - --store sqlite:text.db")
        .refuses(&["text.db"]);
}

#[test]
fn a_followed_file_is_read_on_across_a_rotation_and_a_stop_flushes() {
    let place = Place::new();
    let log = place.path("a.log");
    fs::write(&log, "a:1|c\n").unwrap();
    let mut command = place.command("tally --from a.log --follow --flush-every 100ms");
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
    place.run("tally --from a.log").ends_with(0);
    assert_eq!(count(&place, "a"), 11_111.0);
    // What was written before a rotation that nobody saw is read, and what was never begun is not.
    fs::write(place.path("a.log.9"), "a:7|c\n").unwrap();
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"a:100000|c\n").unwrap();
    fs::rename(&log, place.path("a.log.2")).unwrap();
    fs::write(&log, "a:1000000|c\n").unwrap();
    let mut running = Running::start(&mut command);
    running.wait_until("does not catch up", || count(&place, "a") == 1_111_111.0);
    running.signal(Signal::TERM);
    running.end().ends_with(0);
}

#[test]
fn access_logs_are_summed_by_route() {
    let place = Place::new();
    let log = r#"10.0.0.1 - - [24/Nov/2026:09:00:00 +0000] "GET /users/17?x HTTP/1.1" 200 5 0.250
10.0.0.1 - - [24/Nov/2026:09:00:01 +0000] "GET /users/18 HTTP/1.1" 500 5 2.500
10.0.0.1 - - [24/Nov/2026:09:00:01 +0000] "\x16\x03" 400 5 0.000
"#;
    fs::write(place.path("access.log"), log).unwrap();
    let format = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time"#;
    let said = place
        .run(&["tally", "--from", "access.log", "--log-format", format])
        .ends_with(0);
    said.warns(&["2 events", "1 rejected"]);
    let total = &query(&place, "GET /users/*", "--by day")["total"];
    assert_eq!(
        (&total["count"], &total["sum"]),
        (&2.0.into(), &2750.0.into())
    );
    assert_eq!(
        query(&place, "GET /users/*;status=5xx", "")["total"]["count"],
        1.0
    );
}

/// The answer to a request, as text.
fn http(port: u16, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn post(port: u16, key: &str, body: &str) -> String {
    let length = body.len();
    http(
        port,
        &format!(
            "POST /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{body}"
        ),
    )
}

#[test]
fn a_request_is_answered_when_it_is_committed_and_counts_once() {
    let place = Place::new();
    let (port, metrics) = (services::free_port(), services::free_port());
    let source = format!("http://127.0.0.1:{port}/events");
    let mut command = place.command(&format!(
        "tally --from {source} --metrics 127.0.0.1:{metrics}"
    ));
    let mut running = Running::start(&mut command);
    running.wait_until("does not listen", || {
        std::net::TcpStream::connect(("127.0.0.1", metrics)).is_ok()
    });
    for _ in 0..3 {
        let answer = post(port, "one", "a:1|c\na:2|c\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(count(&place, "a"), 3.0);
    }
    assert!(post(port, "", "a:1|c").starts_with("HTTP/1.1 400"));
    assert!(
        http(port, "GET /events HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 405")
            || http(port, "GET /events HTTP/1.0\r\n\r\n").contains(" 405 ")
    );
    let large = format!(
        "POST /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: k\r\nContent-Length: {}\r\n\r\n",
        9 << 20
    );
    assert!(http(port, &large).starts_with("HTTP/1.1 413"));
    let head = format!(
        "POST /events HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(20 << 10)
    );
    assert!(http(port, &head).starts_with("HTTP/1.1 431"));
    // By the producer of ours.
    place
        .run(&format!("tally send --to {source} --key k b:5|c b:6|c"))
        .ends_with(0);
    place
        .run(&format!("tally send --to {source} --key k b:5|c b:6|c"))
        .ends_with(0);
    assert_eq!(count(&place, "b"), 11.0);
    let metrics = http(
        metrics,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    // Prometheus 3 takes no answer without its form.
    let form = "content-type: text/plain; version=0.0.4";
    assert!(
        metrics.contains("disksmith_tally_events_total") && metrics.contains(form),
        "{metrics}"
    );
    running.signal(Signal::TERM);
    running.end().ends_with(0);
    place
        .run("tally --from http://0.0.0.0:0/events")
        .refuses(&["--token-file"]);
}

#[test]
fn statsd_comes_over_udp_and_tcp() {
    let place = Place::new();
    let port = services::free_port();
    let source = format!("statsd://127.0.0.1:{port}");
    let mut command = place.command(&format!("tally --from {source} --flush-every 100ms"));
    let mut running = Running::start(&mut command);
    running.wait_until("does not listen", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    place
        .run(&format!("tally send --to {source} u:1|c u:2|c"))
        .ends_with(0);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"t:4|c\nt:5|c").unwrap();
    drop(stream);
    running.wait_until("does not sum", || {
        count(&place, "u") == 3.0 && count(&place, "t") == 9.0
    });
    running.signal(Signal::TERM);
    let ended = running.end().ends_with(0);
    assert!(ended.err.contains("at most once"), "{ended:?}");
}

#[test]
fn marks_of_the_time_are_shown_with_the_events() {
    let place = Place::new();
    tally(&place, EVENTS, "").ends_with(0);
    let mark = ["mark", "deploy 1.4.2", "--at", "2026-11-24T10:30:00Z"];
    place.run(&mark).ends_with(0);
    let of = |from: &str, to: &str, more: &[&str]| {
        let words = [
            "tally", "query", "login", "--by", "day", "--from", from, "--to", to,
        ];
        place.run(&[&words, more].concat())
    };
    let document = of("2026-11-24", "2026-11-25", &["--json"]).json();
    let markers = document["markers"].as_array().unwrap();
    assert_eq!(markers.len(), 1, "{document}");
    assert_eq!(markers[0]["text"], "deploy 1.4.2");
    let shown = of("2026-11-24", "2026-11-25", &[]);
    assert!(
        shown.out.contains("2026-11-24 10:30") && shown.out.contains(": deploy 1.4.2\n"),
        "{shown:?}"
    );
    // Of a day before it there is none, and of a time that ends before it begins no answer.
    let before = of("2026-11-01", "2026-11-23", &["--json"]);
    assert_eq!(before.json()["markers"], serde_json::json!([]));
    of("2026-11-25", "2026-11-24T00:00:00Z", &[]).refuses(&["--to"]);
}

#[test]
fn jobs_of_the_real_gearman_client_are_summed_and_poison_is_completed() {
    let place = Place::new();
    let Some((_daemon, source)) = services::gearmand(&place) else {
        return;
    };
    if !support::has_program("gearman") {
        return;
    }
    let port = source
        .trim_start_matches("gearman://127.0.0.1:")
        .trim_end_matches("/events")
        .to_owned();
    let submit = |unique: &[&str], text: &str| {
        let mut client = std::process::Command::new("gearman");
        client
            .args(["-h", "127.0.0.1", "-p", &port, "-b", "-f", "events"])
            .args(unique)
            .arg(text);
        assert!(client.status().unwrap().success());
    };
    submit(&["-u", "1"], "g:1|c\ng:2|c");
    submit(&["-u", "2"], "g:4|c");
    submit(&[], "no event at all");
    let mut command = place.command(&format!("tally --from {source} --flush-every 100ms"));
    let mut running = Running::start(&mut command);
    running.wait_until("does not sum", || count(&place, "g") == 7.0);
    let status = || {
        let mut admin =
            std::net::TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap())).unwrap();
        admin.write_all(b"status\n").unwrap();
        let mut text = String::new();
        std::io::BufReader::new(admin).read_line(&mut text).unwrap();
        text
    };
    // Queued, running, workers.
    running.wait_until("does not complete", || status() == "events\t0\t0\t1\n");
    running.signal(Signal::TERM);
    running.end().ends_with(0);
    let rejected = fs::read_to_string(place.path("tally.rejected")).unwrap();
    assert!(rejected.contains("no event at all"), "{rejected}");
}
