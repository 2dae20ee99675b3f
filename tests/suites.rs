//! `bench --suite`: the classic suites through the real program, and next to the tools that they are
//! named after.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a comparison says what it has seen")]

#[path = "support/beside.rs"]
mod beside;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::process::Command;

use serde_json::Value;

use beside::{LIMIT, Limited, can_run, same, tries};
use loops::Loop;
use support::Place;

#[test]
fn every_suite_runs_by_its_name_and_leaves_nothing() {
    let place = Place::new();
    for (suite, options, expected) in [
        (
            "sysbench",
            &["--seconds", "200ms", "--files", "4"][..],
            "requests/s",
        ),
        ("seek", &["--seconds", "200ms"], "random access time"),
        // On a busy host too little is read to compare them.
        ("zones", &["--seconds", "200ms"], "ends"),
        (
            "curve",
            &["--seconds", "400ms", "--p99", "1us"],
            "p99 ≤ 1.00 µs",
        ),
    ] {
        let words = ["bench", "data", "--suite", suite, "--size", "16M"];
        let said = place.run(&[&words, options].concat()).ends_with(0);
        assert!(said.prose().to_lowercase().contains(expected), "{said:#?}");
        place.assert_nothing_left();
    }
    let runs = place.run("show last --json").ends_with(0).json();
    assert_eq!(runs["suite"], "curve");
    assert_eq!(runs["answer"]["p99_target_ns"], 1000);
}

#[test]
fn a_report_draws_the_zones() {
    let place = Place::new();
    let words = "bench data --suite zones --size 16M --seconds 100ms --report zones.html";
    place.run(words).ends_with(0);
    let page = std::fs::read_to_string(place.path("zones.html")).unwrap();
    assert!(page.contains("Throughput by position"));
    // A host that is busy may not have read enough zones in this time.
    assert!(page.contains("Ends: ") || page.contains("Too few zones were read"));
}

/// Result of a suite on a device at a limit.
fn suite(limited: &Limited, place: &Place, arguments: &[&str]) -> Value {
    let words = ["bench", limited.path(), "--json", "--no-ledger"];
    limited.document(&place.command(&[&words, arguments].concat()))
}

/// Checks that random reads of 4 KiB at this depth have the same rate in fio.
fn seeks_agree(in_flight: &str, times: usize) -> bool {
    if !can_run("fio", "--version") {
        return true;
    }
    let (Some(theirs), Some(ours)) = (Limited::new(64), Limited::new(64)) else {
        return true;
    };
    let place = Place::new();
    let by_fio = || {
        let mut fio = Command::new("fio");
        fio.args(["--name=seeker", "--rw=randread", "--bs=4k", "--direct=1"]);
        fio.args(["--ioengine=libaio", "--runtime=6", "--time_based"]);
        fio.args(["--ramp_time=1", "--output-format=json"]);
        fio.arg(format!("--iodepth={in_flight}"));
        fio.arg(format!("--filename={}", theirs.path()));
        let document = theirs.document(&fio);
        document["jobs"][0]["read"]["iops"].as_f64().unwrap()
    };
    let by_disksmith = || {
        let phase = format!("seek-{in_flight}");
        // Long enough that what the limit lets through at once at the start, a tenth of a second's
        // worth, is small.
        let options = ["--suite", "seek", "--seconds", "7s", "--phase", &phase];
        let document = suite(&ours, &place, &options);
        let point = &document["answer"]["points"][0];
        point["seeks_per_s"]["mean"].as_f64().unwrap()
    };
    let tries = tries(times, by_fio, by_disksmith);
    let what = format!("{in_flight} in flight by fio");
    same(&what, Some(LIMIT as f64), &tries)
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_all_seeks_at_a_limit_are_those_that_fio_makes() {
    for in_flight in ["1", "2", "4", "8", "16", "32", "64"] {
        assert!(seeks_agree(in_flight, 5), "{in_flight}");
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_the_curve_ends_at_the_limit() {
    let Some(limited) = Limited::new(64) else {
        return;
    };
    let options = ["--suite", "curve", "--p99", "100ms"];
    let document = suite(&limited, &Place::new(), &options);
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
    let options = ["--suite", "zones", "--block", "4k"];
    let document = suite(&limited, &Place::new(), &options);
    let ends = &document["answer"]["ends"];
    println!("{ends:#}");
    assert_eq!(ends["differ"], false);
    let first = ends["first"].as_f64().unwrap() / 4096.0;
    assert!((first / LIMIT as f64 - 1.0).abs() < 0.1, "{first}");
}

/// The largest request that a device takes in one piece, which it keeps when it is detached: as it was
/// before, when this is dropped.
struct Largest {
    file: String,
    before: String,
}

impl Largest {
    fn set(device: &Loop, kib: &str) -> Largest {
        let file = format!("/sys/block/{}/queue/max_sectors_kb", device.name());
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, kib).unwrap();
        Largest { file, before }
    }
}

impl Drop for Largest {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.file, self.before.trim());
    }
}

/// zcav reads through the page cache, whose requests are large: what it is held to is bytes. They are
/// few, so that a zone takes half a second: what a limit saves up between zones is in their figures.
/// The device takes requests of 64 KiB at most, which a zone has room for many of: larger ones through
/// io_uring would be counted twice.
#[test]
#[ignore = "long proof: make prove"]
fn with_root_a_device_at_a_limit_is_as_fast_as_zcav_says() {
    const BYTES_PER_S: u64 = 8 << 20;
    if !can_run("zcav", "-h") {
        return;
    }
    let (Some(theirs), Some(ours)) = (Limited::new(256), Limited::new(256)) else {
        return;
    };
    for device in [&theirs, &ours] {
        device.throttle.limit_bytes(BYTES_PER_S);
    }
    let _largest = [&theirs, &ours].map(|device| Largest::set(&device.device, "64"));
    let place = Place::new();
    let by_zcav = || {
        // What it has read once it would find in memory.
        loops::run("blockdev", &["--flushbufs", theirs.path()]);
        let mut zcav = Command::new("zcav");
        zcav.args(["-b", "4", "-u", "root", theirs.path()]);
        let text = theirs.output(&zcav);
        // A position, a rate and seconds for each 4 MiB; its own sum is in whole MiB a second.
        let seconds: Vec<f64> = text
            .lines()
            .filter(|line| !line.contains("#block") && !line.starts_with("# "))
            .filter_map(|line| line.split_whitespace().nth(2)?.parse().ok())
            .collect();
        assert_eq!(seconds.len(), 64, "{text}");
        256.0 / seconds.iter().sum::<f64>()
    };
    let by_disksmith = || {
        let document = suite(&ours, &place, &["--suite", "zones"]);
        let zones = document["answer"]["zones"].as_array().unwrap();
        // How long a byte takes, over all zones.
        let times = zones
            .iter()
            .map(|zone| 1.0 / zone["first"]["mean"].as_f64().unwrap());
        zones.len() as f64 / times.sum::<f64>() / (1 << 20) as f64
    };
    let limit = BYTES_PER_S as f64 / (1 << 20) as f64;
    assert!(same(
        "MiB/s by zcav",
        Some(limit),
        &tries(3, by_zcav, by_disksmith)
    ));
}

/// Files in a file system for each of the two, held at the limit.
struct Files {
    sysbench: Limited,
    ours: Limited,
    place: Place,
}

const FILES: [&str; 3] = ["fileio", "--file-num=8", "--file-total-size=32M"];
/// Length of a cell: the limit may let through what it has saved up when a cell begins (seen, about
/// every other time: 75 requests at once, a fifth of a second's), and that must be small next to the whole.
const CELL_SECONDS: u32 = 9;

impl Files {
    fn new() -> Option<Files> {
        if !can_run("sysbench", "--version") {
            return None;
        }
        let files = Files {
            sysbench: Limited::with_files(96)?,
            ours: Limited::with_files(96)?,
            place: Place::new(),
        };
        let mut prepare = Command::new("sysbench");
        prepare.args(FILES).arg("prepare");
        prepare.current_dir(files.sysbench.path());
        assert!(prepare.output().unwrap().status.success());
        Some(files)
    }

    /// Requests a second by sysbench itself.
    fn by_sysbench(&self, mode: &str, threads: &str) -> f64 {
        let mut command = Command::new("sysbench");
        command.args(FILES).args([
            "--file-extra-flags=direct",
            "--file-fsync-freq=0",
            "--file-block-size=16384",
            "--events=1000000",
        ]);
        command.arg(format!("--file-test-mode={mode}"));
        command.arg(format!("--time={CELL_SECONDS}"));
        command.arg(format!("--threads={threads}")).arg("run");
        command.current_dir(self.sysbench.path());
        let text = self.sysbench.output(&command);
        let rate = |key: &str| -> f64 {
            let line = text.lines().find(|line| line.contains(key)).unwrap();
            line.split_whitespace().last().unwrap().parse().unwrap()
        };
        rate("reads/s:") + rate("writes/s:")
    }

    fn by_disksmith(&self, mode: &str, threads: &str) -> f64 {
        let phase = format!("{mode}-8x4MiB-{threads}t");
        let seconds = format!("{CELL_SECONDS}s");
        let mut options = vec!["--suite", "sysbench", "--size", "32M", "--files", "8"];
        options.extend([
            "--threads",
            threads,
            "--phase",
            &phase,
            "--seconds",
            &seconds,
        ]);
        let document = suite(&self.ours, &self.place, &options);
        let cell = &document["answer"]["cells"][0];
        cell["requests_per_s"].as_f64().unwrap()
    }

    /// As [`seeks_agree`].
    fn agree(&self, mode: &str, threads: &str, times: usize) -> bool {
        let tries = tries(
            times,
            || self.by_sysbench(mode, threads),
            || self.by_disksmith(mode, threads),
        );
        let what = format!("{mode}, {threads} threads, by sysbench");
        same(&what, Some(LIMIT as f64), &tries)
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_all_cells_at_a_limit_have_the_figures_that_sysbench_has() {
    let Some(files) = Files::new() else {
        return;
    };
    for mode in ["rndrd", "rndwr"] {
        for threads in ["1", "4", "16", "64"] {
            assert!(files.agree(mode, threads, 5), "{mode} {threads}");
        }
    }
}
