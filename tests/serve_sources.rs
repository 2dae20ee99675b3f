//! `serve` over real servers, MariaDB, Prometheus and VictoriaMetrics, which go away and come back; and over a real array.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/prometheus.rs"]
mod prometheus;
#[path = "serve/server.rs"]
mod server;
#[path = "tally/services.rs"]
mod services;
mod support;
#[path = "serve/world.rs"]
mod world;

use std::process::Command;

use prometheus::Killed;
use serde_json::Value;
use server::{Server, wait_until};
use services::{MariaDb, free_port};
use support::lab::in_lab;
use support::{Place, Running, has_program, skipped};
use world::{Minute, World};

fn state(document: &Value, kind: &str) -> String {
    let sources = document["sources"].as_array().unwrap();
    let source = sources.iter().find(|source| source["kind"] == kind);
    source.unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn mariadb_answers_as_sqlite_does_and_comes_back() {
    let place = Place::new();
    let Some(mut database) = MariaDb::start(&place) else {
        return skipped("mariadbd is not installed");
    };
    let world = World::new(&place);
    let minutes = world.minutes(-90, 0);
    let mut events = String::new();
    world::write_events(&mut events, "api.get", minutes, |minute| Minute {
        p50_ms: 20.0 + (minute % 7) as f64,
        ..Minute::default()
    });
    let store = database.store();
    let sqlite = place.path("tally.db");
    let both = [
        "--store",
        &store,
        "--store",
        &format!("sqlite:{}", sqlite.display()),
    ];
    world.tally_events(&events, &both);
    let of_sqlite = Server::start(&place, &[]);
    let of_mariadb = Server::start(&place, &["--tally", &store]);
    let to = (world.minute(0) + 1) * 60;
    for span in ["5400", "86400", "31536000"] {
        let from = to - span.parse::<i64>().unwrap();
        let path = format!("/api/v1/response-times?tag=api.get&from={from}&to={to}");
        let [a, b] = [&of_sqlite, &of_mariadb].map(|server| server.document(&path));
        for key in ["level", "time_s", "requests_per_s", "p99_ms", "shares"] {
            assert_eq!(a[key], b[key], "{span} {key}");
        }
    }
    database.kill();
    let view = || of_mariadb.document("/api/v1/response-times?last=90m");
    wait_until("it does not see that MariaDB is gone", || {
        state(&view(), "tally") == "away"
    });
    database.begin();
    wait_until("it does not see that MariaDB is back", || {
        let view = view();
        state(&view, "tally") == "ok" && view["selection"] == "api.get"
    });
}

/// Starts a scraper by its program, on a port, with its data in a place.
type Start = fn(&Place, u16) -> Killed;

fn prometheus_server(place: &Place, port: u16) -> Killed {
    Killed::start(&mut prometheus::command(place, port))
}

fn victoria_metrics(place: &Place, port: u16) -> Killed {
    Killed::start(
        Command::new("victoria-metrics")
            .arg(format!(
                "-promscrape.config={}",
                place.path("scrape.yml").display()
            ))
            .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
            .arg(format!(
                "-storageDataPath={}",
                place.path("victoria").display()
            ))
            // What was scraped just now is answered too.
            .arg("-search.latencyOffset=1s"),
    )
}

/// Metrics of a host whose array is checked, as `watch --prometheus` writes them.
const CHECKED: &str = "node_load1 1
node_disk_io_time_seconds_total{device=\"md0\"} 5
node_md_state{device=\"md0\",state=\"active\"} 0
node_md_state{device=\"md0\",state=\"check\"} 1
disksmith_md_done_ratio{device=\"md0\"} 0.25
";

#[test]
fn prometheus_shows_the_disks_of_other_hosts_and_comes_back() {
    scraped("prometheus", prometheus_server);
}

#[test]
fn victoria_metrics_shows_the_disks_of_other_hosts_and_comes_back() {
    scraped("victoria-metrics", victoria_metrics);
}

fn scraped(program: &str, start: Start) {
    if !has_program(program) {
        return skipped(&format!("{program} is not installed"));
    }
    let place = Place::new();
    let exporter = format!("127.0.0.1:{}", free_port());
    let mut watch = place.command(&["watch", "--json", "--prometheus", &exporter]);
    let _watch = Running::start(&mut watch);
    let other = prometheus::exporter(CHECKED.to_owned());
    prometheus::scrape(&place, &[&exporter, &other]);
    let port = free_port();
    let scraper = start(&place, port);
    let url = format!("http://127.0.0.1:{port}");
    let load = "load=node_load1";
    let nonsense = "nonsense=sum(";
    let server = Server::start(
        &place,
        &["--prometheus", &url, "--series", load, "--series", nonsense],
    );
    let hosts = |document: &Value, source: &str| -> Vec<Value> {
        let hosts = document["hosts"].as_array().unwrap().iter();
        hosts
            .filter(|host| host["source"] == source)
            .cloned()
            .collect()
    };
    wait_until("the host is not seen", || {
        let now = server.document("/api/v1/now");
        let found = hosts(&now, "prometheus");
        found.iter().any(|host| {
            host["hostname"] == exporter.as_str()
                && host["load_1"].is_number()
                && host["disks"]
                    .as_array()
                    .is_some_and(|disks| disks.iter().any(|disk| disk["busy_fraction"].is_number()))
        })
    });
    wait_until("the check of an array is not seen", || {
        let now = server.document("/api/v1/now");
        let found = hosts(&now, "prometheus");
        found.iter().any(|host| {
            let array = &host["disks"][0]["array"];
            host["hostname"] == other.as_str()
                && array["action"] == "check"
                && array["done_fraction"] == 0.25
        })
    });
    wait_until("its disks are not on the axis", || {
        let view = server.document("/api/v1/response-times?last=5m");
        let disks = view["disks"].as_array().unwrap();
        let known = |line: &Value| {
            let values = line["mean"].as_array().unwrap().iter();
            values.filter(|value| value.is_number()).count() > 0
        };
        let is_ours = |disk: &Value| disk["hostname"] == exporter.as_str() && known(&disk["iops"]);
        let series = view["series"].as_array().unwrap();
        disks.iter().any(is_ours)
            && series.len() == 2
            && series[0]["name"].as_str().unwrap().starts_with("load ")
            && known(&series[0]["values"])
    });
    drop(scraper);
    let now = || server.document("/api/v1/now");
    wait_until("it is not seen that the server is gone", || {
        let now = now();
        state(&now, "prometheus") == "away"
            && hosts(&now, "prometheus")
                .iter()
                .all(|host| host["state"] == "stale")
    });
    assert_eq!(server.get("/healthz").status, 200);
    let _scraper = start(&place, port);
    wait_until("it is not seen that the server is back", || {
        let now = now();
        state(&now, "prometheus") == "ok"
            && hosts(&now, "prometheus")
                .iter()
                .any(|host| host["state"] == "live")
    });
}

/// A check of a real array, slowed so that it lasts, while `serve` runs beside it.
const CHECK: &str = "
fails() { echo \"$1\" >&2; exit 8; }
ip link set lo up
mdadm -q --create /dev/md0 --run --level 1 --raid-devices 2 --assume-clean --bitmap none /dev/vda /dev/vdb >&2 || exit 8
echo 1000 > /sys/block/md0/md/sync_speed_max
echo check > /sys/block/md0/md/sync_action
disksmith serve --listen 9188 >&2 &
server=$!
for i in $(seq 100); do
    sleep 1
    wget -qO- http://127.0.0.1:9188/api/v1/now > now.json && grep -q '\"action\":\"check\",\"done_fraction\":0' now.json && break
done
cat now.json
echo PAGE
wget -qO- http://127.0.0.1:9188/
kill $server
wait $server || fails 'serve failed'
";

#[test]
fn with_qemu_a_check_of_a_real_array_is_seen_while_it_runs() {
    let place = Place::new();
    let options = ["--volumes", "2xiops=3000:256MiB", "--timeout", "20m"];
    let Some(said) = in_lab(&place, &options, CHECK) else {
        return;
    };
    let said = said.ends_with(0);
    let (now, page) = said.out.split_once("PAGE").unwrap();
    let now: Value = serde_json::from_str(now).unwrap();
    let disks = now["hosts"][0]["disks"].as_array().unwrap();
    let array = disks.iter().find(|disk| disk["name"] == "md0").unwrap();
    assert_eq!(array["array"]["action"], "check", "{array}");
    let done = array["array"]["done_fraction"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&done), "{array}");
    assert_eq!(array["lies_on"], serde_json::json!(["vda", "vdb"]));
    assert!(page.contains("data-array=\"check\""), "{page}");
}
