//! The findings of `bench`, made to happen on real loop devices. They need root; without it, or
//! where the kernel lacks a part, each says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "real_devices/contents.rs"]
mod contents;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use loops::{FileSystem, Loop, Other, Throttle, fill, run, skipped};
use support::{Place, ProgramOutput, Running, TIMEOUT, Words, output_of};

const PAGE_READ: [&str; 2] = ["--phase", "page-read"];
/// So many in flight that a device at its limit has work for more than half a second at 100 a second: the limit sets
/// the rate, however late a busy host lets the program see an answer.
const DEEP: [&str; 2] = ["--depth", "64"];

/// A device, a group that is limited on it, and a place for the ledger.
struct Limited {
    // In this order they are taken down: the group first, since nothing of it may use the device.
    throttle: Throttle,
    device: Loop,
    place: Place,
}

impl Limited {
    fn new(iops: u64) -> Option<Limited> {
        let device = Loop::direct(256)?;
        let throttle = Throttle::on(&device)?;
        throttle.limit_iops(iops);
        let place = Place::new();
        Some(Limited {
            throttle,
            device,
            place,
        })
    }

    /// Starts `bench` on the device, held to the limit, and waits until it measures.
    fn start(&self, arguments: &(impl Words + ?Sized)) -> Running {
        let words = vec!["bench", self.device.path(), "--json"];
        let words = [words, arguments.words()].concat();
        let command = self.place.command(&words);
        let running = Running::start(&mut self.throttle.hold(&command));
        // What it reads to see what it has before it are a few requests.
        self.wait_for_reads(100);
        running
    }

    fn document(&self, arguments: &(impl Words + ?Sized)) -> Value {
        self.start(arguments).end().ends_with(0).json()
    }

    /// A run in which 400 requests a second are let through for four seconds and then 100, both by the kernel's
    /// own count, and between which times of the run the change came, in seconds.
    fn burst(&self) -> Burst {
        let arguments = ["--seconds", "10s", "--precision", "0"];
        self.throttle.limit_iops(400);
        let spawned = Instant::now();
        let running = self.start(&[&PAGE_READ[..], &DEEP, &arguments].concat());
        let started = Instant::now();
        let high = self.rate_for(Duration::from_secs(4));
        let earliest = started.elapsed().as_secs_f64();
        self.throttle.limit_iops(100);
        let latest = spawned.elapsed().as_secs_f64();
        // What the higher limit still granted.
        sleep(Duration::from_millis(200));
        let low = self.rate_for(Duration::from_secs(3));
        Burst {
            document: running.end().ends_with(0).json(),
            high,
            low,
            change: earliest..latest,
        }
    }

    /// Waits until the device has answered so many more read requests.
    fn wait_for_reads(&self, more: u64) {
        let (before, began) = (reads(&self.device), Instant::now());
        while reads(&self.device) < before + more {
            assert!(began.elapsed() < TIMEOUT, "it reads nothing");
            sleep(Duration::from_millis(2));
        }
    }

    /// Read requests a second by the kernel's count, from now on.
    fn rate_for(&self, span: Duration) -> f64 {
        let (before, began) = (reads(&self.device), Instant::now());
        sleep(span);
        (reads(&self.device) - before) as f64 / began.elapsed().as_secs_f64()
    }
}

/// See [`Limited::burst`].
struct Burst {
    document: Value,
    high: f64,
    low: f64,
    change: std::ops::Range<f64>,
}

/// Requests to read that the kernel has counted on a device.
fn reads(device: &Loop) -> u64 {
    let counters = fs::read_to_string(format!("/sys/class/block/{}/stat", device.name())).unwrap();
    counters.split_whitespace().next().unwrap().parse().unwrap()
}

/// A file system on a device of which nothing is kept in memory below.
fn real_file_system(kind: &str, mib: u64) -> Option<FileSystem> {
    FileSystem::on(Loop::direct(mib)?, kind)
}

/// `bench` on a path, without a limit.
fn bench(path: &str, arguments: &(impl Words + ?Sized)) -> ProgramOutput {
    Place::new().run(&[vec!["bench", path, "--json"], arguments.words()].concat())
}

#[test]
fn with_root_a_loop_device_that_reads_through_the_page_cache_is_distinguished_from_one_that_does_not()
 {
    let (Some(device), Some(direct)) = (Loop::new(64), Loop::direct(64)) else {
        return;
    };
    for device in [&device, &direct] {
        fill(device.path(), 64);
    }
    let document = glance(device.path());
    let text = expect(&document, "cached");
    assert!(
        text.contains(device.path()) && text.contains("--direct-io=on"),
        "{text}"
    );
    assert_eq!(document["verdict"], "invalid");
    assert_eq!(document["target"]["caches"][0]["layer"], device.path());
    let document = glance(direct.path());
    expect_none(&document, &["cached"]);
    assert_eq!(document["target"]["caches"], Value::Array(Vec::new()));
}

/// Half a second of page reads.
fn glance(path: &str) -> Value {
    let briefly = [&PAGE_READ[..], &["--seconds", "500ms"]].concat();
    bench(path, &briefly).ends_with(0).json()
}

/// The text of a finding, if it was made.
fn finding<'a>(document: &'a Value, code: &str) -> Option<&'a str> {
    let findings = document["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["code"] == code)?;
    Some(found["text"].as_str().unwrap())
}

#[track_caller]
fn expect<'a>(document: &'a Value, code: &str) -> &'a str {
    finding(document, code).unwrap_or_else(|| panic!("no {code} in {:#}", document["findings"]))
}

#[track_caller]
fn expect_none(document: &Value, codes: &[&str]) {
    for code in codes {
        let text = finding(document, code);
        assert!(text.is_none(), "{code}: {text:?}");
    }
}

fn number(document: &Value, place: &str) -> f64 {
    let value = document.pointer(place);
    value
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {place} in {document:#}"))
}

#[track_caller]
fn assert_near(value: f64, wanted: f64, tolerance: f64) {
    assert!(
        (value / wanted - 1.0).abs() <= tolerance,
        "{value} is not within {tolerance} of {wanted}"
    );
}

/// Document of the first of ten runs during which no other program used the device, and in which the kernel was not
/// asked later than the run ended. `disksmith devices` of another test reads 33 MiB of a disk without a signature, to say
/// that it is blank.
fn undisturbed(run: impl Fn() -> Value) -> Value {
    let is_alone = |document: &Value| {
        let kernel = number(document, "/phases/0/device/iops");
        let done = number(document, "/phases/0/read/ops") / number(document, "/phases/0/seconds");
        (0.95..1.02).contains(&(kernel / done)) && finding(document, "foreign-io").is_none()
    };
    (0..10)
        .map(|_| run())
        .find(is_alone)
        .unwrap_or_else(|| panic!("the kernel counts as many requests in none of ten runs"))
}

/// The steadiness of a rate that the kernel limits, and so the finding, depends on the host: the kernel has threads of its
/// own for it, and for a loop device. What is found of a flat rate is tested alongside the rule.
#[test]
#[ignore = "needs a host with little else to do: make prove"]
fn with_root_a_cap_and_a_burst_of_the_kernel_are_named() {
    let Some(limited) = Limited::new(100) else {
        return;
    };
    let document = limited.document(&[PAGE_READ, DEEP].concat());
    assert_near(number(&document, "/phases/0/read/iops/mean"), 100.0, 0.03);
    let text = expect(&document, "capped");
    assert!(text.contains("at 9") || text.contains("at 10"), "{text}");
    drop(limited);
    a_burst_shows_both_levels_and_when_it_ended();
}

#[test]
fn with_root_what_a_cap_lets_through_is_measured_and_the_kernel_agrees() {
    let Some(limited) = Limited::new(100) else {
        return;
    };
    let document = undisturbed(|| limited.document(&[PAGE_READ, DEEP].concat()));
    // The kernel's own count is next to ours, of all that was done.
    let done = number(&document, "/phases/0/read/ops") / number(&document, "/phases/0/seconds");
    assert_near(number(&document, "/phases/0/device/iops"), done, 0.05);
    assert!(done < 110.0, "more than the cap: {done}");
    assert_near(
        number(&document, "/phases/0/device/mean_bytes"),
        16384.0,
        0.01,
    );
    // A busy host may make it unsteady, short, silent for a moment or bound to the processor, and then says so.
    expect_none(&document, &["foreign-io", "cached"]);
    // Nothing was ever written to it, which a look at a few blocks shows.
    let text = expect(&document, "unwritten");
    assert!(text.contains("hold only zeros"), "{text}");
    // A quarter of a GiB fits into many a cache.
    expect(&document, "small-span");
}

/// A group that was idle may do more at first: blkio grants at once what it would have granted meanwhile, and is
/// exact from then on.
#[test]
fn with_root_what_a_limit_grants_at_first_is_not_in_the_rate() {
    const LIMIT: f64 = 300.0;
    let Some(limited) = Limited::new(LIMIT as u64) else {
        return;
    };
    // A busy host delays some of what was granted, and the kernel grants it later: one of some rounds is undisturbed.
    let rates = std::iter::repeat_with(|| {
        let document = limited.document(&[&PAGE_READ[..], &["--seconds", "3s"]].concat());
        let [mean, low, high] = ["mean", "low", "high"]
            .map(|one| number(&document, &format!("/phases/0/read/iops/{one}")));
        let done = number(&document, "/phases/0/read/ops") / number(&document, "/phases/0/seconds");
        println!("{done:.1} a second in all, {mean:.1} ({low:.1} to {high:.1}) without the burst");
        assert!(low <= 1.01 * LIMIT, "{low} to {high}");
        mean
    });
    assert!(
        rates
            .take(60)
            .any(|rate| (rate / LIMIT - 1.0).abs() <= 0.005)
    );
}

#[test]
fn with_root_a_device_without_a_limit_is_not_capped_and_the_kernel_agrees() {
    let Some(device) = Loop::direct(256) else {
        return;
    };
    fill(device.path(), 256);
    let words = [&PAGE_READ[..], &["--seconds", "4s"]].concat();
    let document = undisturbed(|| bench(device.path(), &words).ends_with(0).json());
    expect_none(&document, &["capped", "cached", "foreign-io", "unwritten"]);
    // Our mean may leave out a warm-up, the kernel's does not: compare with all that was done.
    let done = number(&document, "/phases/0/read/ops") / number(&document, "/phases/0/seconds");
    assert_near(number(&document, "/phases/0/device/iops"), done, 0.05);
}

fn a_burst_shows_both_levels_and_when_it_ended() {
    let Some(limited) = Limited::new(400) else {
        return;
    };
    let Burst {
        document,
        high: high_counted,
        low: low_counted,
        change,
    } = limited.burst();
    let text = expect(&document, "burst");
    // "402 IOPS for the first 4.0 s, then 100: …"
    let numbers: Vec<f64> = text
        .split([' ', ':'])
        .filter_map(|word| word.trim_end_matches(',').replace(',', "").parse().ok())
        .collect();
    let [high, when, low] = numbers[..] else {
        panic!("{text}");
    };
    assert_near(high, high_counted, 0.15);
    assert_near(low, low_counted, 0.15);
    assert!(high > 3.0 * low, "{text}");
    // Within three slices of 0.1 s.
    assert!(
        (change.start - 0.3..change.end + 0.3).contains(&when),
        "not in {change:?}: {text}"
    );
    assert_eq!(document["verdict"], "doubtful");
    expect_none(&document, &["stall", "unsteady"]);
}

#[test]
fn with_root_a_device_that_answers_nothing_for_seconds_is_a_stall() {
    let Some(limited) = Limited::new(1000) else {
        return;
    };
    let arguments = ["--seconds", "9s", "--precision", "0"];
    let begun = Instant::now();
    let running = limited.start(&[&PAGE_READ[..], &arguments].concat());
    limited.wait_for_reads(1000);
    limited.throttle.freeze();
    let frozen = Instant::now();
    // What was let through before may still be on its way.
    let (mut before, mut since) = (reads(&limited.device), frozen);
    while since.elapsed() < Duration::from_millis(2500) {
        assert!(frozen.elapsed() < TIMEOUT, "it does not freeze");
        sleep(Duration::from_millis(1));
        if reads(&limited.device) != before {
            (before, since) = (reads(&limited.device), Instant::now());
        }
    }
    limited.throttle.limit_iops(1000);
    // A busy host may take its time: the stall ends when the kernel says so.
    while reads(&limited.device) == before {
        assert!(frozen.elapsed() < TIMEOUT, "it stays frozen");
        sleep(Duration::from_millis(1));
    }
    let document = running.end().ends_with(0).json();
    let whole = begun.elapsed().as_secs_f64();
    let text = expect(&document, "stall");
    // "For 2.4 s of 6.0 s nothing came back, with 20 requests waiting; …"
    let silent = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let silent: f64 = silent.unwrap_or_else(|| panic!("{text}"));
    assert!(silent >= 2.3, "{text}");
    assert!(text.contains("with 20 requests waiting"), "{text}");
    // The requests that waited meanwhile waited for as long. A busy host adds silence of its own, before or after, also
    // beyond the time of the phase.
    let max = number(&document, "/phases/0/read/latency_ns/max") / 1e9;
    assert!((2.3..whole).contains(&max), "{max}: {text}");
    assert_eq!(document["verdict"], "doubtful");
    expect_none(&document, &["burst"]);
}

#[test]
fn with_root_an_open_loop_counts_every_request_that_a_stall_made_late() {
    let Some(limited) = Limited::new(100_000) else {
        return;
    };
    let arguments = ["--rate", "500", "--seconds", "8s", "--precision", "0"];
    let running = limited.start(&[&PAGE_READ[..], &arguments].concat());
    limited.wait_for_reads(800);
    limited.throttle.freeze();
    sleep(Duration::from_secs(2));
    limited.throttle.limit_iops(100_000);
    let document = running.end().ends_with(0).json();
    expect(&document, "stall");
    // 500 a second for 8 s, whether or not they came back at once: five deviations of chance, less what a busy host
    // gave back after the end.
    let ops = number(&document, "/phases/0/read/ops");
    assert!((100.0..4320.0).contains(&ops), "{ops}");
    // A quarter of them waited, evenly between nothing and two seconds; on a busy host more of them, and longer.
    let at = |quantile: &str| number(&document, &format!("/phases/0/read/latency_ns/{quantile}"));
    assert!(at("p99") > 1.5e9, "{}", at("p99"));
    assert!(at("p90") > 0.5e9, "{}", at("p90"));
    let mean = at("mean") / 1e9;
    assert!(mean > 0.15, "{mean}");
}

#[test]
fn with_root_a_sparse_and_an_allocated_file_are_unwritten_and_a_written_one_is_not() {
    let Some(files) = real_file_system("ext4", 256) else {
        return;
    };
    let (sparse, allocated, written) = (
        files.join("sparse"),
        files.join("allocated"),
        files.join("written"),
    );
    File::create(&sparse).unwrap().set_len(32 << 20).unwrap();
    run("fallocate", &["--length", "32M", &allocated]);
    fill(&written, 32);
    for path in [&sparse, &allocated] {
        let document = glance(path);
        let text = expect(&document, "unwritten");
        assert!(text.contains("100 % of"), "{text}");
        assert_eq!(document["verdict"], "invalid");
    }
    let document = glance(&written);
    expect_none(&document, &["unwritten", "cached"]);
    assert_eq!(document["verdict"], "doubtful", "half a second is short");
}

#[test]
fn with_root_memory_is_cached_and_cpu_bound_and_a_disk_is_neither() {
    use std::os::unix::fs::MetadataExt as _;
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let text = run("stat", &["-f", "-c", "%T", memory.path().to_str().unwrap()]);
    if text != "tmpfs" {
        return skipped("/dev/shm is no tmpfs");
    }
    // One call after another: no time at all is spent waiting.
    let words = [
        "--seconds",
        "1s",
        "--size",
        "64M",
        "--depth",
        "1",
        "--engine",
        "sync",
    ];
    let words = [&PAGE_READ[..], &words].concat();
    let document = bench(memory.path().to_str().unwrap(), &words)
        .ends_with(0)
        .json();
    expect(&document, "cached");
    expect(&document, "cpu-bound");
    assert_eq!(document["verdict"], "invalid");
    assert_eq!(memory.path().read_dir().unwrap().count(), 0);

    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skipped("the rest needs root");
    }
    // Most of the time nothing is there to do, so that a busy host, on which a thread waits for a processor
    // before each request, cannot make the disk look like the host.
    let Some(limited) = Limited::new(20) else {
        return;
    };
    let words = ["bench", limited.device.path(), "--json", "--seconds", "1s"];
    let command = limited.place.command(&[&words[..], &PAGE_READ].concat());
    let document = output_of(&mut limited.throttle.hold(&command))
        .ends_with(0)
        .json();
    expect_none(&document, &["cached", "cpu-bound"]);
    // One second cannot end early, and is too short to know the rate from.
    expect(&document, "short");
}

#[test]
fn with_root_someone_else_on_the_device_is_foreign_io() {
    let Some(limited) = Limited::new(1000) else {
        return;
    };
    let Some(of_other) = Throttle::on(&limited.device) else {
        return;
    };
    of_other.limit_iops(400);
    let from = format!("if={}", limited.device.path());
    let mut dd = Command::new("dd");
    dd.args([&from, "of=/dev/null", "bs=16k", "iflag=direct"]);
    // Several, as the run has several in flight: a busy host takes from all alike.
    let _others = [(); 8].map(|()| Other::start(&mut of_other.hold(&dd)));
    // On a busy host the interval of a run's own rate may be wider than the rate of the others.
    // "… did 402 reads/s (6.3 MiB/s) beyond this run's own requests". A busy host takes from the others what it
    // likes; more than their limit they never get, but a program that lists the host's disks may be there as well.
    let reads = |text: &str| text.split_whitespace().find_map(|word| word.parse().ok());
    let text = (0..5)
        .map(|_| limited.document(&[&PAGE_READ[..], &["--seconds", "3s"]].concat()))
        .filter_map(|document| finding(&document, "foreign-io").map(str::to_owned))
        .find(|text| reads(text).is_some_and(|reads: f64| (1.0..450.0).contains(&reads)));
    let text = text.expect("others are found in one of some runs");
    assert!(text.contains(&limited.device.name()), "{text}");
    // That nobody else makes none is said of the device with the cap.
}

#[test]
fn with_root_a_span_larger_than_memory_is_not_small() {
    let memory: u64 = fs::read_to_string("/proc/meminfo")
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    // Sparse: nothing of it is written.
    let Some(device) = Loop::direct(memory / 1024 + 1024) else {
        return;
    };
    let document = glance(device.path());
    expect_none(&document, &["small-span"]);
    let part = bench(device.path(), "--phase seek --seconds 1s --span 64M");
    expect(&part.ends_with(0).json(), "small-span");
}

#[test]
fn with_root_the_suite_runs_in_a_directory_on_each_file_system_and_leaves_nothing() {
    for (kind, mib) in [("ext4", 512), ("xfs", 512), ("btrfs", 512)] {
        let Some(files) = real_file_system(kind, mib) else {
            continue;
        };
        let path = files.path().to_str().unwrap().to_owned();
        let suite = || {
            bench(&path, "--size 64M --seconds 300ms")
                .ends_with(0)
                .json()
        };
        let mut document = suite();
        // A busy host has stalls now and then, which are none of the file system's doing.
        for _ in 0..10 {
            if finding(&document, "stall").is_some() {
                document = suite();
            }
        }
        let phases = document["phases"].as_array().unwrap();
        assert_eq!(phases.len(), 7, "{kind}");
        assert!(
            phases.iter().all(|phase| !phase["device"].is_null()),
            "{kind}"
        );
        assert_eq!(document["target"]["disks"][0], files.device.name());
        assert_eq!(document["machine"]["filesystem"], kind);
        expect_none(&document, &["cached", "unwritten", "stall"]);
        files.assert_nothing_left();
    }
}
