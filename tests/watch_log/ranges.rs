//! Ranges of node_exporter's counters, as a real Prometheus answers them.

use std::fs;
use std::process::Command;

use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;

use super::prometheus::{self, encoded, get};
use super::support::{Place, documents, has_program, skipped};

/// Seconds between two scrapes.
const STEP: i64 = 15;
/// Number of scrapes.
const SCRAPES: i64 = 41;
/// Scrapes between which the disk answers nothing.
const HANGS: std::ops::Range<i64> = 20..30;

/// A counter of sda at each scrape, from `first` on with the time of the scrape, as OpenMetrics.
fn series(name: &str, first: Timestamp, values: impl Iterator<Item = f64>) -> String {
    let labels = "device=\"sda\",instance=\"db1:9100\",job=\"node\"";
    let line = |(scrape, value): (i64, f64)| {
        let at = first.as_second() + STEP * scrape;
        format!("node_disk_{name}{{{labels}}} {value} {at}.000\n")
    };
    (0..SCRAPES).zip(values).map(line).collect()
}

/// Counters that grow by so much in an interval, and by so much in one in which the disk hangs.
fn counter(each: f64, hanging: f64) -> impl Iterator<Item = f64> {
    let mut value = 1000.0;
    (0..SCRAPES).map(move |scrape| {
        let before = value;
        value += match HANGS.contains(&scrape) {
            true => hanging,
            false => each,
        };
        before
    })
}

/// Metrics of a node_exporter: 100 reads a second of 4 KiB that take 2 ms each, and a while in which five are in
/// flight and none is answered.
fn scraped(first: Timestamp) -> String {
    let step = STEP as f64;
    let in_flight = (0..SCRAPES).map(|scrape| match HANGS.contains(&(scrape - 1)) {
        true => 5.0,
        false => 0.0,
    });
    let none = || counter(0.0, 0.0);
    [
        series("reads_completed_total", first, counter(100.0 * step, 0.0)),
        series("read_bytes_total", first, counter(409_600.0 * step, 0.0)),
        series("read_time_seconds_total", first, counter(0.2 * step, 0.0)),
        series("writes_completed_total", first, none()),
        series("written_bytes_total", first, none()),
        series("write_time_seconds_total", first, none()),
        series("io_time_seconds_total", first, counter(0.2 * step, step)),
        series(
            "io_time_weighted_seconds_total",
            first,
            counter(0.2 * step, 5.0 * step),
        ),
        series("io_now", first, in_flight),
        "# EOF\n".to_owned(),
    ]
    .concat()
}

/// Lines of a kind of what is printed of an answer of `host`.
pub(crate) fn of_host(place: &Place, answer: &str, host: &str, kind: &str) -> Vec<Value> {
    let path = place.path("answer.json");
    fs::write(&path, answer).unwrap();
    let path = path.to_str().unwrap();
    let said = place
        .run(&["watch", "--json", "--parse", path])
        .ends_with(0);
    let mut lines = documents::all(&said.out);
    assert_eq!(lines[0]["source"], "prometheus");
    assert_eq!(lines[0]["hostname"], host);
    lines.retain(|line| line["kind"] == kind);
    lines
}

fn parsed(place: &Place, answer: &str, kind: &str) -> Vec<Value> {
    of_host(place, answer, "db1:9100", kind)
}

#[test]
fn a_range_query_of_a_real_prometheus_is_read_at_the_step_of_its_scrapes_and_at_twice_that() {
    if !has_program("prometheus") || !has_program("promtool") {
        return skipped("prometheus is not installed");
    }
    let place = Place::new();
    let hour_ago = (Timestamp::now() - 1.hour()).as_second();
    let first = Timestamp::from_second(hour_ago / STEP * STEP).unwrap();
    fs::write(place.path("scrape.yml"), "scrape_configs: []\n").unwrap();
    fs::write(place.path("scraped"), scraped(first)).unwrap();
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([place.path("scraped"), prometheus::data(&place)])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let (port, _server) = prometheus::start(&place);
    let query = encoded("{__name__=~\"node_disk_.+\", instance=\"db1:9100\"}");
    let range = |step: i64| {
        let from = first.as_second();
        let to = from + STEP * (SCRAPES - 1);
        let path = format!("/api/v1/query_range?query={query}&start={from}&end={to}&step={step}");
        get(port, &path).unwrap()
    };
    for (step, most) in [(STEP, SCRAPES - 1), (2 * STEP, (SCRAPES - 1) / 2)] {
        let answer = range(step);
        let samples = parsed(&place, &answer, "sample");
        assert_eq!(samples.len() as i64, most, "{answer}");
        for (sample, scrape) in samples.iter().zip((0..).step_by((step / STEP) as usize)) {
            let disk = &sample["devices"][0];
            assert_eq!(sample["length_ns"], step * 1_000_000_000);
            assert_eq!(disk["name"], "sda");
            let hangs = HANGS.contains(&scrape);
            let expected = if hangs { (0.0, 1.0) } else { (100.0, 0.2) };
            let near = |key: &str, value: &Value, expected: f64| {
                let value = value.as_f64().unwrap();
                assert!((value - expected).abs() < 1e-6, "{key} {value}: {sample:#}");
            };
            near("iops", &disk["read"]["iops"], expected.0);
            near("busy", &disk["busy_fraction"], expected.1);
            if !hangs {
                near("wait", &disk["read"]["await_ns"], 2e6);
            }
        }
        let findings = parsed(&place, &answer, "finding");
        let stalled = findings
            .iter()
            .any(|finding| finding["finding"]["code"] == "stalled");
        assert!(stalled, "{findings:#?}");
    }
    // As the manual has it: the values as they were scraped.
    let path = format!("/api/v1/query?query={query}{}", encoded("[1d]"));
    let whole = parsed(&place, &get(port, &path).unwrap(), "sample");
    assert_eq!(whole, parsed(&place, &range(STEP), "sample"));
}
