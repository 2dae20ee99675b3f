//! `bench --suite`: the classic suites through the real program, and beside the tools that they are
//! named after.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a comparison says what it has seen")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::process::Command;

use serde_json::Value;

use loops::{FileSystem, Loop, Throttle, fill, skipped};
use support::Place;

const LIMIT: u64 = 400;

#[test]
fn every_suite_runs_by_its_name_and_leaves_nothing() {
    let place = Place::new();
    for (suite, options, says) in [
        (
            "sysbench",
            &["--seconds", "200ms", "--files", "4"][..],
            "requests/s",
        ),
        ("seek", &["--seconds", "200ms"], "random access time"),
        ("zones", &["--seconds", "200ms"], "Ends: "),
        (
            "curve",
            &["--seconds", "400ms", "--p99", "1us"],
            "p99 ≤ 1.00 µs",
        ),
    ] {
        let words = ["bench", "data", "--suite", suite, "--size", "16M"];
        let said = place.run(&[&words, options].concat()).ends_with(0);
        assert!(said.prose().contains(says), "{said:#?}");
        place.assert_nothing_left();
    }
    let runs = place.run(&["show", "last", "--json"]).ends_with(0).json();
    assert_eq!(runs["suite"], "curve");
    assert_eq!(runs["answer"]["p99_target_ns"], 1000);
}

#[test]
fn a_report_draws_the_zones() {
    let place = Place::new();
    let words = [
        "bench",
        "data",
        "--suite",
        "zones",
        "--size",
        "16M",
        "--seconds",
        "100ms",
        "--report",
        "zones.html",
    ];
    place.run(&words).ends_with(0);
    let page = std::fs::read_to_string(place.path("zones.html")).unwrap();
    assert!(page.contains("Throughput by position") && page.contains("Ends: "));
}

/// What a command prints, held to the limit.
fn output(throttle: &Throttle, command: &Command) -> String {
    let output = throttle.hold(command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A device held at the limit.
struct Limited {
    // In this order they are taken down: the group first, since nothing of it may use the device.
    throttle: Throttle,
    device: Loop,
    place: Place,
}

impl Limited {
    fn new(mib: u64) -> Option<Limited> {
        let device = Loop::new(mib)?;
        fill(device.path(), mib);
        let throttle = Throttle::on(&device)?;
        throttle.limit_iops(LIMIT);
        Some(Limited {
            throttle,
            device,
            place: Place::new(),
        })
    }

    fn suite(&self, arguments: &[&str]) -> Value {
        let words = ["bench", self.device.path(), "--json", "--no-ledger"];
        let command = self.place.command(&[&words, arguments].concat());
        serde_json::from_str(&output(&self.throttle, &command)).unwrap()
    }

    /// Reads a second of 4 KiB at random with so many in flight, by fio. `None` without fio.
    fn seeks_by_fio(&self, in_flight: &str) -> Option<f64> {
        let mut fio = Command::new("fio");
        if fio.arg("--version").output().is_err() {
            skipped("fio is not installed");
            return None;
        }
        let mut fio = Command::new("fio");
        fio.args(["--name=seeker", "--rw=randread", "--bs=4k", "--direct=1"]);
        fio.args([
            "--ioengine=libaio",
            "--runtime=4",
            "--time_based",
            "--ramp_time=1",
        ]);
        fio.arg(format!("--iodepth={in_flight}"));
        fio.arg(format!("--filename={}", self.device.path()));
        fio.arg("--output-format=json");
        let text = output(&self.throttle, &fio);
        let document: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        document["jobs"][0]["read"]["iops"].as_f64()
    }

    fn seeks(&self, in_flight: &str) -> f64 {
        let phase = format!("seek-{in_flight}");
        let document = self.suite(&["--suite", "seek", "--seconds", "5s", "--phase", &phase]);
        document["answer"]["points"][0]["seeks_per_s"]["mean"]
            .as_f64()
            .unwrap()
    }

    /// Whether both have the same figure within 3 % at some try: a host without an idle processor
    /// does not hold a device at its limit, and then either of them is too low.
    fn agrees(&self, in_flight: &str, tries: usize) -> Option<bool> {
        for _ in 0..tries {
            let (theirs, ours) = (self.seeks_by_fio(in_flight)?, self.seeks(in_flight));
            println!("{in_flight} in flight: fio {theirs:.1}, disksmith {ours:.1}");
            if (ours / theirs - 1.0).abs() < 0.03 {
                return Some(true);
            }
        }
        Some(false)
    }
}

#[test]
fn with_root_seeks_at_a_limit_are_those_that_fio_makes() {
    let Some(limited) = Limited::new(64) else {
        return;
    };
    assert_ne!(limited.agrees("4", 3), Some(false));
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_all_seeks_at_a_limit_are_those_that_fio_makes() {
    let Some(limited) = Limited::new(64) else {
        return;
    };
    for in_flight in ["1", "2", "4", "8", "16", "32", "64"] {
        assert_ne!(limited.agrees(in_flight, 5), Some(false), "{in_flight}");
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_the_curve_ends_at_the_limit() {
    let Some(limited) = Limited::new(64) else {
        return;
    };
    let document = limited.suite(&["--suite", "curve", "--p99", "100ms"]);
    let answer = &document["answer"];
    println!("{answer:#}");
    let bound = |key: &str| answer[key].as_f64().unwrap();
    // Requests that come at random wait longer and longer as the limit comes near.
    assert!(200.0 < bound("low") && bound("low") <= 1.02 * LIMIT as f64);
    assert!(bound("high") < 1.3 * LIMIT as f64);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_zones_at_a_limit_are_alike() {
    let Some(limited) = Limited::new(128) else {
        return;
    };
    let document = limited.suite(&["--suite", "zones", "--block", "4k"]);
    let ends = &document["answer"]["ends"];
    println!("{ends:#}");
    assert_eq!(ends["differ"], false);
    let first = ends["first"].as_f64().unwrap() / 4096.0;
    assert!((first / LIMIT as f64 - 1.0).abs() < 0.1, "{first}");
}

/// A file system on a device that is held at the limit, with the files of sysbench in it.
struct Files {
    throttle: Throttle,
    system: FileSystem,
    place: Place,
}

const FILES: [&str; 3] = ["fileio", "--file-num=8", "--file-total-size=64M"];

impl Files {
    fn new() -> Option<Files> {
        if Command::new("sysbench").arg("--version").output().is_err() {
            skipped("sysbench is not installed");
            return None;
        }
        let system = FileSystem::new("ext4", 256)?;
        let throttle = Throttle::on(&system.device)?;
        throttle.limit_iops(LIMIT);
        let mut prepare = Command::new("sysbench");
        prepare
            .args(FILES)
            .arg("prepare")
            .current_dir(system.path());
        assert!(prepare.output().unwrap().status.success());
        Some(Files {
            throttle,
            system,
            place: Place::new(),
        })
    }

    /// Requests a second by sysbench itself.
    fn by_sysbench(&self, mode: &str, threads: &str) -> f64 {
        let mut command = Command::new("sysbench");
        command.args(FILES).args([
            "--file-extra-flags=direct",
            "--file-fsync-freq=0",
            "--file-block-size=16384",
            "--time=5",
            "--events=1000000",
        ]);
        command.arg(format!("--file-test-mode={mode}"));
        command.arg(format!("--threads={threads}")).arg("run");
        command.current_dir(self.system.path());
        let text = output(&self.throttle, &command);
        let rate = |key: &str| -> f64 {
            let line = text.lines().find(|line| line.contains(key)).unwrap();
            line.split_whitespace().last().unwrap().parse().unwrap()
        };
        rate("reads/s:") + rate("writes/s:")
    }

    fn by_disksmith(&self, mode: &str, threads: &str) -> f64 {
        let phase = format!("{mode}-8x8MiB-{threads}t");
        let command = self.place.command(&[
            "bench",
            self.system.path().to_str().unwrap(),
            "--suite",
            "sysbench",
            "--size",
            "64M",
            "--files",
            "8",
            "--threads",
            threads,
            "--phase",
            &phase,
            "--seconds",
            "5s",
            "--json",
            "--no-ledger",
        ]);
        let document: Value = serde_json::from_str(&output(&self.throttle, &command)).unwrap();
        document["answer"]["cells"][0]["requests_per_s"]
            .as_f64()
            .unwrap()
    }

    /// As [`Limited::agrees`].
    fn agrees(&self, mode: &str, threads: &str, tries: usize) -> bool {
        (0..tries).any(|_| {
            let (theirs, ours) = (
                self.by_sysbench(mode, threads),
                self.by_disksmith(mode, threads),
            );
            println!("{mode}, {threads} threads: sysbench {theirs:.1}, disksmith {ours:.1}");
            (ours / theirs - 1.0).abs() < 0.03
        })
    }
}

#[test]
fn with_root_a_cell_at_a_limit_has_the_figure_that_sysbench_has() {
    let Some(files) = Files::new() else {
        return;
    };
    assert!(files.agrees("rndrd", "4", 3));
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_all_cells_at_a_limit_have_the_figures_that_sysbench_has() {
    let Some(files) = Files::new() else {
        return;
    };
    for mode in ["rndrd", "rndwr"] {
        for threads in ["1", "4", "16", "64"] {
            assert!(files.agrees(mode, threads, 5), "{mode} {threads}");
        }
    }
}
