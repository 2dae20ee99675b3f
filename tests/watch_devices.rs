//! The verb `watch` on loop devices of its own: what the counters of a disk do not show.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use loops::{Loop, Other, Throttle, run};
use serde_json::Value;
use support::Place;

/// Timeout of a wait for something that takes seconds, on a very busy host too.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A watch in the background, and its lines as they come.
struct Watching {
    child: Child,
    lines: Receiver<Value>,
}

impl Watching {
    fn start(place: &Place, device: &Loop) -> Watching {
        let arguments = format!("watch {} --json --interval 500ms", device.name());
        let mut child = place
            .command(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(support::documents::all(&line).remove(0));
            }
        });
        Watching { child, lines }
    }

    /// The first line that is so, and the samples before it.
    fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> (Value, Vec<Value>) {
        let end = Instant::now() + TIMEOUT;
        let mut samples = Vec::new();
        while let Ok(line) = self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            if is_it(&line) {
                return (line, samples);
            }
            if line["kind"] == "sample" {
                samples.push(line);
            }
        }
        panic!(
            "{what} was not seen; the last sample: {:#?}",
            samples.last()
        );
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_change(line: &Value, change: &str, code: &str) -> bool {
    line["change"] == change && line["finding"]["code"] == code
}

/// A program that reads a device past the page cache, one request at a time, until it is dropped.
fn reader(device: &Loop) -> Command {
    let mut command = Command::new("dd");
    command.args([
        &format!("if={}", device.path()),
        "of=/dev/null",
        "bs=4k",
        "iflag=direct",
    ]);
    command
}

#[test]
fn with_root_a_group_that_is_held_to_its_limit_is_named() {
    let Some(device) = Loop::new(64) else {
        return;
    };
    let Some(throttle) = Throttle::on(&device) else {
        return;
    };
    let place = Place::new();
    throttle.limit_iops(20);
    let _reader = Other::start(&mut throttle.hold(&reader(&device)));
    let watching = Watching::start(&place, &device);
    let (found, _) = watching.wait("cgroup-limit", |line| {
        is_change(line, "opened", "cgroup-limit")
    });
    let finding = &found["finding"];
    assert_eq!(finding["name"], device.name());
    let text = finding["text"].as_str().unwrap();
    assert!(
        text.contains("/disksmith-test-") && text.contains("of 20.0 reads"),
        "{text}"
    );
    // The disk itself does hardly anything meanwhile: most of a request's time passes before it. Where another program
    // has the processors the disk's part is long, too.
    watching.wait("a short wait at the disk", |line| {
        let device = &line["devices"][0]["number"];
        let limits = line["host"]["cgroup_limits"].as_array();
        // Other programs' groups may be limited too, and one may have outlived a disk of the same number.
        let used = limits.and_then(|all| {
            let of_disk = all.iter().filter(|one| one["device"] == *device);
            let reads = of_disk.filter(|one| one["kind"] == "reads");
            reads
                .filter_map(|one| one["used_per_s"].as_f64())
                .find(|used| *used > 0.0)
        });
        let wait_ns = line["devices"][0]["read"]["await_ns"].as_f64();
        let waits_before = |(used, wait_ns): (f64, f64)| wait_ns / 1e9 < 0.5 / used;
        used.zip(wait_ns).is_some_and(waits_before)
    });
    // Without a limit, it is over.
    throttle.limit_iops(1_000_000);
    watching.wait("the end", |line| is_change(line, "closed", "cgroup-limit"));
}

#[test]
fn with_root_a_device_that_is_detached_is_named() {
    let Some(device) = Loop::new(8) else {
        return;
    };
    let place = Place::new();
    run(
        "dd",
        &[
            &format!("if={}", device.path()),
            "of=/dev/null",
            "bs=1M",
            "iflag=direct",
        ],
    );
    let watching = Watching::start(&place, &device);
    let name = device.name();
    let (sample, _) = watching.wait("the device", |line| line["devices"][0]["name"] == name);
    let id = sample["devices"][0]["id"].clone();
    drop(device);
    let (found, _) = watching.wait("removed", |line| is_change(line, "opened", "removed"));
    let finding = &found["finding"];
    assert_eq!(
        (&finding["name"], &finding["severity"]),
        (&name.into(), &"warn".into())
    );
    assert!(
        finding["text"].as_str().unwrap().contains("was removed"),
        "{finding}"
    );
    // Another may have its name by now, and be listed before it is known as another.
    watching.wait("a sample without it", |line| {
        let devices = line["devices"].as_array();
        devices.is_some_and(|devices| devices.iter().all(|device| device["id"] != id))
    });
}
