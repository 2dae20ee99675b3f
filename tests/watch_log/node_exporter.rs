//! A real node_exporter of this host, as a real Prometheus scrapes it.

use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::loops::{Loop, run};
use super::prometheus::{self, Killed, encoded, get};
use super::ranges::of_host;
use super::support::ports::free_port;
use super::support::{Place, TIMEOUT, has_program};

/// Requests of 4 KiB that are made of each kind.
const REQUESTS: f64 = 500.0;

/// node_exporter on a port of loopback, with its counters of all disks.
fn exporter(address: &str) -> Killed {
    let mut exporter = Command::new("prometheus-node-exporter");
    exporter
        .arg(format!("--web.listen-address={address}"))
        .args(["--collector.disable-defaults", "--collector.diskstats"])
        // By default loop devices are excluded.
        .arg("--collector.diskstats.device-exclude=^$");
    Killed::start(&mut exporter)
}

/// The document that Prometheus answers a query with.
fn answer(port: u16, path: &str) -> Option<Value> {
    serde_json::from_str(&get(port, path)?).ok()
}

/// The first and the last value of a counter in an answer.
fn ends(answer: &Value, counter: &str) -> [f64; 2] {
    let series = answer["data"]["result"].as_array().unwrap().iter();
    let mut of_counter = series.filter(|one| one["metric"]["__name__"] == counter);
    let values = of_counter.next().unwrap()["values"].as_array().unwrap();
    let number = |value: &Value| value[1].as_str().unwrap().parse().unwrap();
    [number(&values[0]), number(&values[values.len() - 1])]
}

/// Requests of a kind in all samples. A disk that did nothing is in none.
fn requests(samples: &[Value], kind: &str) -> f64 {
    let of_sample = |sample: &Value| -> f64 {
        let rate = sample["devices"][0][kind]["iops"].as_f64();
        rate.unwrap_or(0.0) * sample["length_ns"].as_f64().unwrap() / 1e9
    };
    samples.iter().map(of_sample).sum()
}

#[test]
fn with_root_what_a_real_node_exporter_counts_is_read_to_the_request() {
    for program in ["prometheus", "prometheus-node-exporter"] {
        if !has_program(program) {
            return;
        }
    }
    let Some(disk) = Loop::new(8) else {
        return;
    };
    let place = Place::new();
    let address = format!("127.0.0.1:{}", free_port());
    let _exporter = exporter(&address);
    prometheus::scrape(&place, &[&address]);
    let began = Instant::now();
    let since = Timestamp::now().as_second();
    let (port, _server) = prometheus::start(&place);
    let reads = encoded(&format!(
        "node_disk_reads_completed_total{{device=\"{}\"}}",
        disk.name()
    ));
    let scraped = |least: f64| -> f64 {
        loop {
            let answer = answer(port, &format!("/api/v1/query?query={reads}"));
            let value =
                answer.and_then(|it| it["data"]["result"][0]["value"][1].as_str()?.parse().ok());
            match value {
                Some(count) if count >= least => return count,
                _ => assert!(began.elapsed() < TIMEOUT, "{value:?} of {least}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let before = scraped(0.0);
    let node = format!("of={}", disk.path());
    let dd = ["if=/dev/zero", &node, "bs=4k", "count=500", "oflag=direct"];
    run("dd", &dd);
    let node = format!("if={}", disk.path());
    let dd = ["of=/dev/null", &node, "bs=4k", "count=500", "iflag=direct"];
    run("dd", &dd);
    scraped(before + REQUESTS);
    let query = encoded(&format!(
        "{{__name__=~\"node_disk_.+\", device=\"{}\"}}",
        disk.name()
    ));
    let until = Timestamp::now().as_second() + 1;
    // As they were scraped, and as they were at each second.
    for path in [
        format!("/api/v1/query?query={query}{}", encoded("[1d]")),
        format!("/api/v1/query_range?query={query}&start={since}&end={until}&step=1"),
    ] {
        let text = get(port, &path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let samples = of_host(&place, &text, &address, "sample");
        for (kind, counter) in [
            ("read", "node_disk_reads_completed_total"),
            ("write", "node_disk_writes_completed_total"),
        ] {
            let [first, last] = ends(&document, counter);
            assert!(last - first >= REQUESTS, "{counter}: {first} to {last}");
            let shown = requests(&samples, kind);
            assert!(
                (shown - (last - first)).abs() < 0.5,
                "{kind}: {shown} and {first} to {last}: {samples:#?}"
            );
        }
    }
}
