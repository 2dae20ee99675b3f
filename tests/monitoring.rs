//! The dashboard and the alert rules that are packaged, against a real Prometheus that scrapes a real watch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Place, Running, TIMEOUT, has_program, said, skipped};

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(name)
}

/// A port that was free just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A process that is killed when the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The body of an answer; `None` where nobody answers.
fn get(port: u16, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some(body.to_owned())
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The answer to a query; an error of Prometheus fails the test.
fn query(port: u16, promql: &str) -> Vec<Value> {
    let path = format!("/api/v1/query?query={}", encoded(promql));
    let body = get(port, &path).unwrap();
    let answer: Value =
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(answer["status"], "success", "{promql}: {answer}");
    answer["data"]["result"].as_array().unwrap().clone()
}

/// The queries of the dashboard, with its variables as Grafana would fill them in.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(packaged("grafana/disksmith.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let expressions = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap());
    let filled = |text: &str| {
        text.replace("$__rate_interval", "1m")
            .replace("$instance", ".*")
            .replace("$device", ".*")
    };
    expressions.map(filled).collect()
}

/// Names of metrics in a text of PromQL or of an exporter.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = words.filter(|word| word.starts_with("node_") || word.starts_with("disksmith_"));
    ours.map(str::to_owned).collect()
}

#[test]
fn a_real_prometheus_answers_every_query_of_the_dashboard_and_loads_the_rules() {
    if !has_program("prometheus") {
        return skipped("prometheus is not installed");
    }
    let place = Place::new();
    let exporter = free_port();
    let address = format!("127.0.0.1:{exporter}");
    let mut watch = place.command(&["watch", "--interval", "500ms", "--prometheus", &address]);
    let mut watch = Running::start(&mut watch);
    watch.wait_for_text("/metrics.");
    let rules = packaged("prometheus/disksmith.rules.yml")
        .canonicalize()
        .unwrap();
    let config = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: ['{}']\nscrape_configs:\n  \
         - job_name: disksmith\n    static_configs:\n      - targets: ['{address}']\n",
        rules.display()
    );
    fs::write(place.path("scrape.yml"), config).unwrap();
    let port = free_port();
    let mut command = Command::new("prometheus");
    command
        .arg(format!(
            "--config.file={}",
            place.path("scrape.yml").display()
        ))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg(format!(
            "--storage.tsdb.path={}",
            place.path("data").display()
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _prometheus = Killed(command.spawn().unwrap());

    let asked = Instant::now();
    let is_there = || {
        get(port, "/-/ready").is_some_and(|body| body.contains("Ready"))
            && !query(port, "rate(node_disk_reads_completed_total[1m])").is_empty()
    };
    while !is_there() {
        assert!(asked.elapsed() < TIMEOUT, "no rates of disks came");
        std::thread::sleep(Duration::from_millis(200));
    }
    let queries = queries();
    assert!(queries.len() >= 20, "{queries:?}");
    for promql in &queries {
        query(port, promql);
    }
    // What depends on no particular hardware has an answer.
    for promql in queries.iter().filter(|promql| {
        [
            "rate(node_disk_reads_completed",
            "node_memory_Dirty",
            "rate(node_disk_io_time_seconds",
        ]
        .iter()
        .any(|begin| promql.starts_with(begin))
    }) {
        assert!(!query(port, promql).is_empty(), "{promql}");
    }
    let rules: Value = serde_json::from_str(&get(port, "/api/v1/rules").unwrap()).unwrap();
    let loaded = rules["data"]["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(loaded.len(), 7);
    for rule in loaded {
        assert_ne!(rule["health"], "err", "{rule}");
    }
}

/// A metric that is renamed would leave a panel empty, and an alert silent.
#[test]
fn every_metric_of_the_dashboard_and_the_rules_is_named_in_the_source() {
    let rules = fs::read_to_string(packaged("prometheus/disksmith.rules.yml")).unwrap();
    let wanted = names(&(queries().join("\n") + &rules));
    assert!(wanted.len() >= 15, "{wanted:?}");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut source = String::new();
    for file in [
        "watch/src/views/prometheus.rs",
        "watch/src/views/prometheus/disks.rs",
        "watch/src/views/prometheus/latency.rs",
    ] {
        source += &fs::read_to_string(crates.join(file)).unwrap();
    }
    let tally = fs::read_to_string(crates.join("tally/src/metrics.rs")).unwrap();
    for name in wanted {
        let found = match name.strip_prefix("disksmith_tally_") {
            Some("down") => tally.contains("disksmith_tally_down"),
            Some(rest) => tally.contains(&format!("\"{rest}\"")),
            None => source.contains(&format!("\"{}\"", name.trim_end_matches("_bucket"))),
        };
        assert!(found, "nothing serves {name}");
    }
}

/// The rules are judged on series that a real watch served.
#[test]
fn promtool_finds_that_the_rules_fire_and_end_as_they_should() {
    if !has_program("promtool") {
        return skipped("promtool is not installed");
    }
    let file = packaged("prometheus/disksmith.rules.test.yml");
    said(Command::new("promtool").args(["test", "rules"]).arg(file)).ends_with(0);
}
