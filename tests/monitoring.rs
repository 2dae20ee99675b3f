//! The dashboard and the alert rules that are packaged, against a real Prometheus that scrapes a real watch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
#[path = "monitoring/panels.rs"]
mod panels;
#[path = "support/prometheus.rs"]
mod prometheus;
mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use prometheus::{encoded, get};
use serde_json::Value;
use support::{Place, Running, TIMEOUT, has_program, output_of, skipped};

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(name)
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

/// The answer to a variable's `label_values(SERIES, LABEL)`, as Grafana asks Prometheus for it.
fn label_values(port: u16, asked: &str) -> Vec<String> {
    let inner = asked.strip_prefix("label_values(").unwrap();
    let (series, label) = inner.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
    let series = encoded(&filled(series));
    let body = get(
        port,
        &format!("/api/v1/label/{label}/values?match[]={series}"),
    );
    let answer: Value = serde_json::from_str(&body.unwrap()).unwrap();
    assert_eq!(answer["status"], "success", "{asked}: {answer}");
    serde_json::from_value(answer["data"].clone()).unwrap()
}

/// A text of the dashboard with its variables as Grafana would fill them in.
fn filled(text: &str) -> String {
    text.replace("$__rate_interval", "1m")
        .replace("$instance", ".*")
        .replace("$device", ".*")
}

/// A watch that serves metrics on a port that is free, and its address.
fn serving(place: &Place, scheme: &str, options: &str) -> (Running, String) {
    let words = format!("watch --interval 500ms --prometheus 127.0.0.1:0 {options}");
    let mut watch = Running::start(&mut place.command(&words));
    let address = RefCell::new(None);
    watch.wait_for_output(|text| {
        let behind = text.split_once(&format!(" {scheme}://"));
        let found = behind.and_then(|(_, behind)| behind.split_once("/metrics."));
        *address.borrow_mut() = found.map(|(address, _)| address.to_owned());
        found.is_some()
    });
    (watch, address.into_inner().unwrap())
}

/// The queries of the dashboard's panels.
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
    let (_watch, address) = serving(&place, "http", "");
    let rules = packaged("prometheus/disksmith.rules.yml")
        .canonicalize()
        .unwrap();
    let config = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: ['{}']\nscrape_configs:\n  \
         - job_name: disksmith\n    static_configs:\n      - targets: ['{address}']\n",
        rules.display()
    );
    fs::write(place.path("scrape.yml"), config).unwrap();
    let (port, _prometheus) = prometheus::start(&place);

    let asked = Instant::now();
    let is_there = || !query(port, "rate(node_disk_reads_completed_total[1m])").is_empty();
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

/// Certificates of the server and of two clients, by one authority, with openssl as users have it.
fn certificates(place: &Place) {
    let openssl = |words: &str| {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split(' ')).current_dir(place.path(""));
        output_of(&mut openssl).ends_with(0);
    };
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!(
        "req -x509 {new_key} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"
    ));
    for (name, subject) in [
        ("server", "IP:127.0.0.1"),
        ("scraper", "DNS:scraper.example"),
        ("stranger", "DNS:stranger.example"),
    ] {
        fs::write(place.path("names"), format!("subjectAltName={subject}\n")).unwrap();
        openssl(&format!(
            "req {new_key} -keyout {name}.key -out {name}.csr -subj /CN={name}"
        ));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {name}.crt -days 2 -extfile names"
        ));
    }
}

/// The health of each target and its last error, by job.
fn targets(port: u16) -> Option<Vec<(String, String, String)>> {
    let answer: Value = serde_json::from_str(&get(port, "/api/v1/targets")?).ok()?;
    let targets = answer["data"]["activeTargets"].as_array()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |target: &Value| {
        (
            text(&target["labels"]["job"]),
            text(&target["health"]),
            text(&target["lastError"]),
        )
    };
    Some(targets.iter().map(of).collect())
}

#[test]
fn a_real_prometheus_scrapes_by_a_web_configuration_with_its_certificate_and_password_alone() {
    for program in ["prometheus", "openssl"] {
        if !has_program(program) {
            return skipped(&format!("{program} is not installed"));
        }
    }
    let place = Place::new();
    certificates(&place);
    // Of "secret", by crypt(3) of glibc's libxcrypt.
    let hash = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";
    let web = format!(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n  \
         client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n  \
         client_allowed_sans: [scraper.example]\nbasic_auth_users:\n  scraper: {hash}\n"
    );
    fs::write(place.path("web.yml"), web).unwrap();
    let file = place.path("web.yml").display().to_string();
    let (mut watch, address) = serving(&place, "https", &format!("--web.config.file {file}"));

    // What is needed to read a renewed key (CAP_DAC_READ_SEARCH, bit 2), and nothing else.
    let tasks = format!("/proc/{}/task", watch.id());
    let capabilities = || -> Vec<(String, u64)> {
        let threads = fs::read_dir(&tasks).unwrap();
        let capabilities = threads.filter_map(|thread| {
            let folder = thread.ok()?.path();
            let name = fs::read_to_string(folder.join("comm")).ok()?;
            let status = fs::read_to_string(folder.join("status")).ok()?;
            let permitted = status
                .lines()
                .find_map(|line| line.strip_prefix("CapPrm:"))?;
            Some((
                name.trim().to_owned(),
                u64::from_str_radix(permitted.trim(), 16).unwrap(),
            ))
        });
        capabilities.collect()
    };
    // A thread gives itself its name.
    let is_named = || capabilities().iter().any(|(name, _)| name == "metrics");
    watch.wait_until("answers by no thread", is_named);
    let capabilities = capabilities();
    for name in ["disksmith", "metrics"] {
        assert!(
            capabilities.contains(&(name.to_owned(), 1 << 2)),
            "{name}: {capabilities:?}"
        );
    }

    let job = |name: &str, certificate: &str, password: &str| {
        let path = |name: &str| place.path(name).display().to_string();
        format!(
            "  - job_name: {name}\n    scheme: https\n    tls_config:\n      ca_file: {}\n      \
             cert_file: {}\n      key_file: {}\n    basic_auth:\n      username: scraper\n      \
             password: {password}\n    static_configs:\n      - targets: ['{address}']\n",
            path("ca.crt"),
            path(&format!("{certificate}.crt")),
            path(&format!("{certificate}.key")),
        )
    };
    let config = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n{}{}{}  - job_name: plain\n    static_configs:\n      \
         - targets: ['{address}']\n",
        job("right", "scraper", "secret"),
        job("wrong", "scraper", "Secret"),
        job("stranger", "stranger", "secret"),
    );
    fs::write(place.path("scrape.yml"), config).unwrap();
    let (port, _prometheus) = prometheus::start(&place);
    let asked = Instant::now();
    // On a busy host a scrape may take too long; a later one does not.
    let is_as_wanted = |(job, health, error): &(String, String, String)| match job.as_str() {
        "right" => health == "up" && error.is_empty(),
        "wrong" => error.contains("401"),
        "plain" => error.contains("400"),
        _ => health == "down" && error.contains("tls: "),
    };
    loop {
        let targets = targets(port).unwrap_or_default();
        if targets.len() == 4 && targets.iter().all(is_as_wanted) {
            break;
        }
        assert!(asked.elapsed() < TIMEOUT, "{targets:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_web_configuration_that_cannot_be_used_is_refused_before_anything_is_served() {
    let place = Place::new();
    for (text, words) in [
        (
            "basic_auth_users:\n  scraper: secret\n",
            "not a bcrypt hash",
        ),
        (
            "tls_server_config:\n  cert_file: absent.crt\n  key_file: absent.key\n",
            "absent.crt",
        ),
        ("tls_config: 1\n", "tls_config"),
    ] {
        fs::write(place.path("web.yml"), text).unwrap();
        let file = place.path("web.yml").display().to_string();
        place
            .run(&format!("watch --prometheus 0 --web-config {file}"))
            .refuses(&[words, "web.yml"]);
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

/// The words of each command line of Nagios and Icinga 1.
fn nagios_commands(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let line = line.trim().strip_prefix("command_line ")?;
        let words = line.split_whitespace().map(|word| word.trim_matches('\''));
        Some(words.map(str::to_owned).collect())
    };
    text.lines().filter_map(line).collect()
}

/// The words of each command of Icinga 2, with all arguments.
fn icinga_commands(text: &str) -> Vec<Vec<String>> {
    let words = |object: &str| {
        let lines = object.lines().map(str::trim);
        let of_command = lines.filter(|line| !line.starts_with("description"));
        // The first is the name.
        let quoted = of_command.flat_map(|line| line.split('"').skip(1).step_by(2));
        quoted.skip(1).map(str::to_owned).collect()
    };
    let objects = text.split("\nobject CheckCommand ").skip(1);
    objects.map(words).collect()
}

#[test]
fn the_commands_of_nagios_and_icinga_are_understood() {
    let sample = |word: &String| match word.as_str() {
        "$ARG1$" | "$disksmith_warning$" => "await=20,busy=95".to_owned(),
        "$ARG2$" | "$disksmith_critical$" => "await=100".to_owned(),
        word => word.to_owned(),
    };
    let filled = |commands: Vec<Vec<String>>| -> Vec<Vec<String>> {
        let words = |words: &Vec<String>| words.iter().map(sample).collect();
        commands.iter().map(words).collect()
    };
    let read = |name: &str| fs::read_to_string(packaged(name)).unwrap();
    let commands = filled(nagios_commands(&read("nagios/disksmith.cfg")));
    let of_icinga = filled(icinga_commands(&read("nagios/icinga2.conf")));
    assert_eq!(commands, of_icinga);
    assert_eq!(commands.len(), 2);
    let place = Place::new();
    for words in &commands {
        assert_eq!(words[0], "/usr/bin/disksmith", "{words:?}");
        let mut line: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        line.push("--help");
        place.run(&line).ends_with(0);
    }
}

/// The rules are judged on series that a real watch and a real tally served, but for what only EBS volumes report.
#[test]
fn promtool_finds_that_the_rules_fire_and_end_as_they_should() {
    if !has_program("promtool") {
        return skipped("promtool is not installed");
    }
    let file = packaged("prometheus/disksmith.rules.test.yml");
    output_of(Command::new("promtool").args(["test", "rules"]).arg(file)).ends_with(0);
}
