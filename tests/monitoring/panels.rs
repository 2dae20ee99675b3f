//! Panels of the dashboard, with real series of what each is about: a disk that is held to a limit and whose requests are timed,
//! a tally, and in the lab a RAID 1 that is checked.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::loops::{Loop, Other, Throttle};
use crate::prometheus::{exporter, scrape, start};
use crate::support::lab::in_lab;
use crate::support::{Place, Running, TIMEOUT, has_program, is_root, skipped};
use crate::{label_values, packaged, queries, query, serving};

/// Metrics of a watch while md checks an array, slowed so that the check lasts.
const CHECK: &str = "
ip link set lo up
mdadm -q --create /dev/md0 --run --level 1 --raid-devices 2 --assume-clean --bitmap none /dev/vda /dev/vdb >&2 || exit 8
echo 1000 > /sys/block/md0/md/sync_speed_max
echo check > /sys/block/md0/md/sync_action
disksmith watch --prometheus 9187 >&2 &
for i in $(seq 100); do
    sleep 1
    wget -qO metrics http://127.0.0.1:9187/metrics && grep -q '^disksmith_md_done_ratio' metrics && cat metrics && exit
done
echo 'no ratio of the check within 100 s' >&2
exit 9
";

/// A watch of a disk whose requests are traced. `None`, with a note, where that cannot be.
fn timed(place: &Place, disk: &Loop) -> Option<(Running, String)> {
    let tried = place.run(&format!("watch {} --latency --json --count 1", disk.name()));
    if tried.status != Some(0) {
        // Where the kernel can trace, a refusal is a fault of the program.
        tried.warns(&["tracefs"]);
        skipped(&format!("requests cannot be traced here: {}", tried.err));
        return None;
    }
    Some(serving(place, "http", "--latency --all"))
}

/// A tally that follows a log with an event and a line that is none, and the address of its metrics.
fn tally(place: &Place) -> (Running, String) {
    fs::write(place.path("events.log"), "login:2|c\nnonsense\n").unwrap();
    let address = format!("127.0.0.1:{}", crate::support::ports::free_port());
    let words =
        format!("tally --from events.log --follow --store sqlite:tally.db --metrics {address}");
    (Running::start(&mut place.command(&words)), address)
}

#[test]
fn with_root_each_panel_of_the_dashboard_has_what_it_is_about() {
    if !is_root() {
        return;
    }
    if !has_program("prometheus") {
        return skipped("prometheus is not installed");
    }
    let place = Place::new();
    let options = ["--volumes", "2xiops=3000:256MiB", "--timeout", "20m"];
    let Some(array) = in_lab(&place, &options, CHECK) else {
        return;
    };
    let array = array.ends_with(0).out;
    let Some(disk) = Loop::new(64) else {
        return;
    };
    let Some(throttle) = Throttle::on(&disk) else {
        return;
    };
    throttle.limit_iops(20);
    let mut reader = Command::new("dd");
    reader.args([
        &format!("if={}", disk.path()),
        "of=/dev/null",
        "bs=4k",
        "iflag=direct",
    ]);
    let Some((_watch, of_disk)) = timed(&place, &disk) else {
        return;
    };
    let (_tally, of_tally) = tally(&place);
    let of_array = exporter(array);
    scrape(&place, &[&of_disk, &of_tally, &of_array]);
    let (port, _prometheus) = start(&place);

    let asked = Instant::now();
    let wait_for = |what: &str, is_there: &dyn Fn() -> bool| {
        while !is_there() {
            assert!(asked.elapsed() < TIMEOUT, "no series: {what}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // A finding is counted from the scrape before it.
    let is_scraped = r#"disksmith_findings_total{code="cgroup-limit"}"#;
    wait_for(is_scraped, &|| !query(port, is_scraped).is_empty());
    let _reader = Other::start(&mut throttle.hold(&reader));
    for promql in queries() {
        // Only volumes of EBS report it.
        if !promql.contains("disksmith_volume_exceeded_seconds_total") {
            wait_for(&promql, &|| !query(port, &promql).is_empty());
        }
    }
    let bucket = "disksmith_disk_request_duration_seconds_bucket";
    let is_timed = format!("{bucket}{{device=\"{}\"}} > 0", disk.name());
    wait_for(&is_timed, &|| !query(port, &is_timed).is_empty());
    let is_found = r#"disksmith_finding_active{code="cgroup-limit"} == 1"#;
    wait_for(is_found, &|| !query(port, is_found).is_empty());

    let text = fs::read_to_string(packaged("grafana/disksmith.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let of_variable = |name: &str| {
        let variable = variables.iter().find(|one| one["name"] == name).unwrap();
        let asked = variable["query"]["query"].as_str().unwrap();
        assert_eq!(variable["definition"], asked);
        label_values(port, asked)
    };
    for instance in [of_disk, of_array] {
        let values = of_variable("instance");
        assert!(values.contains(&instance), "{values:?}");
    }
    let devices = of_variable("device");
    for device in ["md0", "vda", "vdb"].map(str::to_owned) {
        assert!(devices.contains(&device), "{devices:?}");
    }
}
