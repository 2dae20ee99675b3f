//! `watch --latency` on loop devices of its own: requests against the kernel's counts, recorded, drawn and served.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use loops::{Loop, Other, Throttle, bytes_read, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Place, number, output_of};

/// Timeout of a wait for something that takes seconds, on a very busy host too.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Reads of a test.
const READS: u64 = 3000;

/// A watch in the background, and its lines as they come.
struct Watching {
    child: Child,
    lines: Receiver<Value>,
}

impl Watching {
    fn start(place: &Place, device: &Loop, options: &[&str]) -> Watching {
        let name = device.name();
        let words = ["watch", &name, "--latency", "--json", "--interval", "200ms"];
        let mut command = place.command(&[&words[..], options].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap());
            }
        });
        Watching { child, lines }
    }

    /// Samples up to the one at which `is_enough` of all.
    fn samples(&self, what: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let end = Instant::now() + TIMEOUT;
        let mut samples = Vec::new();
        while !is_enough(&samples) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{what} was not seen: {:#?}", samples.last());
            };
            if line["kind"] == "sample" {
                samples.push(line);
            }
        }
        samples
    }

    /// Samples that came since, once it has ended.
    fn rest(&self) -> Vec<Value> {
        let lines = self.lines.iter();
        lines.filter(|line| line["kind"] == "sample").collect()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loop device of which requests can be traced. `None`, with a note, where that cannot be.
fn traced_disk(place: &Place) -> Option<Loop> {
    let disk = Loop::new(64)?;
    let name = disk.name();
    let tried = place.run(&format!("watch {name} --latency --json --count 1"));
    if tried.status == Some(0) {
        return Some(disk);
    }
    // Where the kernel can trace, a refusal is a fault of the program.
    tried.warns(&["tracefs"]);
    support::skipped(&format!("requests cannot be traced here: {}", tried.err));
    None
}

/// Reads that a program makes one at a time past the page cache.
fn read(device: &Loop, count: u64) {
    let input = format!("if={}", device.path());
    let count = format!("count={count}");
    run(
        "dd",
        &[&input, "of=/dev/null", "bs=4k", "iflag=direct", &count],
    );
}

/// Sum of a figure of the requests of one kind over samples.
fn sum(samples: &[Value], kind: &str) -> u64 {
    let latencies = samples
        .iter()
        .map(|sample| &sample["devices"][0]["latency"][kind]);
    latencies.filter_map(|kind| kind["count"].as_u64()).sum()
}

/// Requests of the processes of this name, or of all of them.
fn requests_of(samples: &[Value], name: Option<&str>) -> u64 {
    let processes = samples
        .iter()
        .filter_map(|sample| sample["host"]["processes"].as_array());
    processes
        .flatten()
        .filter(|process| name.is_none_or(|name| process["name"] == name))
        .map(|process| number(&process["requests"]))
        .sum()
}

#[test]
fn with_root_every_request_is_timed_once_and_its_process_named() {
    // Whoever lists this host's disks meanwhile, as other tests do, reads this one too: the run without them counts.
    assert!((0..5).any(|_| every_request_is_timed_once()));
}

/// False if others read the disk.
fn every_request_is_timed_once() -> bool {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return true;
    };
    let mut watching = Watching::start(&place, &disk, &["--all"]);
    watching.samples("the first sample", |samples| !samples.is_empty());
    let before = bytes_read(&disk);
    read(&disk, READS);
    let samples = watching.samples("all reads", |samples| sum(samples, "read") >= READS);
    // On a busy host processes are not counted in each interval.
    let named = requests_of(&samples, Some("dd"));
    let more = watching.samples("dd", |more| {
        more.len() > 1 && named + requests_of(more, Some("dd")) > 0
    });
    if bytes_read(&disk) - before != READS * 4096 {
        return false;
    }
    // As many as the program made: none is missing, none was seen twice.
    assert_eq!(sum(&samples, "read") + sum(&more, "read"), READS);
    assert_eq!(sum(&samples, "all"), READS);
    let busy: Vec<&Value> = samples
        .iter()
        .map(|sample| &sample["devices"][0]["latency"]["read"])
        .filter(|latency| !latency.is_null())
        .collect();
    for latency in busy {
        let figure = |key: &str| number(&latency[key]);
        assert!(figure("p50_ns") <= figure("p99_ns") && figure("p99_ns") <= figure("p999_ns"));
        assert!(0 < figure("p50_ns") && figure("p999_ns") <= figure("max_ns"));
        let bins = latency["bins"].as_array().unwrap();
        let binned: u64 = bins.iter().map(|bin| number(&bin["count"])).sum();
        assert_eq!(binned, figure("count"));
    }
    let of_hosts = |key: &str| -> u64 {
        let tracing = samples.iter().map(|sample| &sample["host"]["tracing"]);
        tracing.map(|tracing| number(&tracing[key])).sum()
    };
    assert_eq!((of_hosts("lost_events"), of_hosts("requests")), (0, READS));
    assert!(of_hosts("cpu_ns") > 0);
    let dd = named + requests_of(&more, Some("dd"));
    assert!(dd <= READS, "{dd}");
    // The kernel's instance goes with it.
    let own = format!("disksmith-{}-", watching.child.id());
    assert!(instances().iter().any(|name| name.starts_with(&own)));
    watching.signal(Signal::INT);
    assert_eq!(watching.end(), Some(0));
    assert!(!instances().iter().any(|name| name.starts_with(&own)));
    true
}

/// Instances of tracefs, by a mount that only this looks through.
fn instances() -> Vec<String> {
    let script = "mount -t tracefs none /mnt && ls /mnt/instances";
    let mut command = Command::new("unshare");
    let listed = output_of(command.args(["-m", "sh", "-c", script])).ends_with(0);
    listed.out.lines().map(str::to_owned).collect()
}

#[test]
fn with_root_slow_requests_stand_out_in_the_percentiles_and_not_in_the_median() {
    let place = Place::new();
    let Some(below) = traced_disk(&place) else {
        return;
    };
    let Some(throttle) = Throttle::on(&below) else {
        return;
    };
    // The thread of the device above reads the one below, in its group: there each read waits for its turn.
    let above = Loop::part_of(below.path().as_ref(), &["--direct-io=on"]).unwrap();
    throttle.limit_iops(20);
    let watching = Watching::start(&place, &above, &[]);
    let mut reader = Command::new("dd");
    let input = format!("if={}", above.path());
    reader.args([&input, "of=/dev/null", "bs=4k", "iflag=direct"]);
    let _reader = Other::start(&mut throttle.hold(&reader));
    let slow = |samples: &[Value]| {
        let latencies = samples.iter().filter_map(|sample| {
            let devices = sample["devices"].as_array()?;
            let above = devices.iter().find(|one| one["name"] == above.name())?;
            above["latency"]["read"]["max_ns"].as_u64()
        });
        // One read in 50 ms is let through.
        latencies.max().is_some_and(|max| max > 25_000_000)
    };
    watching.samples("a slow read", slow);
}

#[test]
fn with_root_times_are_recorded_shown_again_and_drawn() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let mut watching = Watching::start(&place, &disk, &["--all", "--record"]);
    // Others may have read the disk before, and that is recorded too.
    let mut samples = watching.samples("the first sample", |samples| !samples.is_empty());
    read(&disk, READS);
    samples.extend(watching.samples("all reads", |samples| sum(samples, "read") >= READS));
    watching.signal(Signal::INT);
    assert_eq!(watching.end(), Some(0));
    samples.extend(watching.rest());
    let name = disk.name();
    let replay = format!("watch --at -1h --for 2h {name}");
    let again = place.run(&format!("{replay} --json --all"));
    let again: Vec<Value> = again
        .ends_with(0)
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "sample")
        .collect();
    assert_eq!(sum(&again, "read"), sum(&samples, "read"));
    let busiest = |samples: &[Value]| {
        let latencies = samples
            .iter()
            .map(|one| &one["devices"][0]["latency"]["all"]);
        latencies
            .max_by_key(|all| all["count"].as_u64())
            .unwrap()
            .clone()
    };
    assert_eq!(busiest(&again), busiest(&samples));
    let requests = |samples: &[Value]| -> u64 {
        let tracing = samples.iter().map(|sample| &sample["host"]["tracing"]);
        tracing
            .filter_map(|tracing| tracing["requests"].as_u64())
            .sum()
    };
    assert_eq!(requests(&again), requests(&samples));
    assert_eq!(requests_of(&again, None), requests_of(&samples, None));
    let plain = place.run(&format!("{replay} --plain")).ends_with(0);
    for words in [" p50 ", " p99.9 ", "tracing: "] {
        assert!(plain.out.contains(words), "no '{words}' in {}", plain.out);
    }
    let page = place.path("page.html");
    let report = format!("{replay} --report {}", page.display());
    place.run(&report).ends_with(0);
    let page = fs::read_to_string(page).unwrap();
    for words in [
        "Time of requests, from issue to completion",
        "Requests by their time",
        "<h2>Processes</h2>",
    ] {
        assert!(page.contains(words), "no '{words}'");
    }
}

#[test]
fn with_root_times_are_served_as_classic_histograms() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let port = support::ports::free_port();
    let watching = Watching::start(&place, &disk, &["--all", "--prometheus", &port.to_string()]);
    watching.samples("the first sample", |samples| !samples.is_empty());
    read(&disk, READS);
    watching.samples("all reads", |samples| sum(samples, "read") >= READS);
    // The sample is served before it is printed.
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    let name = "disksmith_disk_request_duration_seconds";
    let labels = format!("device=\"{}\",op=\"read\"", disk.name());
    let value = |series: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("no {series} in {text}"))
            .trim()
            .parse()
            .unwrap()
    };
    let count = value(&format!("{name}_count{{{labels}}}"));
    // Whoever lists this host's disks meanwhile, as other tests do, reads this one too.
    let others = READS as f64..2.0 * READS as f64;
    assert!(others.contains(&count), "{count}");
    let buckets: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with(&format!("{name}_bucket{{{labels}")))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(
        buckets.is_sorted() && buckets.last() == Some(&count),
        "{buckets:?}"
    );
    assert!(text.contains(&format!("# TYPE {name} histogram")));
    assert_eq!(value("disksmith_tracing_lost_events_total"), 0.0);
}
