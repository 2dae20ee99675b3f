//! The verb `trace`, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loops::{Loop, Mounted};
use serde_json::Value;
use support::{Place, TIMEOUT, skipped};

/// An hour of a real MySQL's I/O.
fn mysql() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/linux-mysql.load.gz")
}

fn shown(place: &Place, file: &Path) -> Value {
    place
        .run(&["trace", "show", file.to_str().unwrap(), "--json"])
        .ends_with(0)
        .json()
}

#[test]
fn an_hour_of_a_real_mysql_is_shown_and_says_what_was_not_recorded() {
    let place = Place::new();
    let found = shown(&place, &mysql());
    assert_eq!(found["ios"], 80_794);
    assert_eq!(found["reads"], 7187);
    assert_eq!(found["writes"], 73_607);
    assert_eq!(found["read_bytes"], 82_907_136);
    assert_eq!(found["write_bytes"], 1_101_479_936);
    assert_eq!(found["distinct_bytes"], 583_938_048);
    assert_eq!(found["verdict"], "trusted");
    assert!(found["queue_depth"].is_null() && found["processes"].is_null());
    let text = place
        .run(&["trace", "show", mysql().to_str().unwrap()])
        .ends_with(0)
        .out;
    for words in [
        "queue depth  not recorded",
        "flushes: not recorded",
        "by process: not recorded",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn conversions_keep_the_trace_and_list_what_they_cannot_hold() {
    let place = Place::new();
    let from = mysql();
    let own = shown(&place, &from);
    for format in [
        "disksmith",
        "blktrace",
        "blkparse",
        "fio-iolog-v2",
        "fio-iolog-v3",
    ] {
        let to = place.path(format);
        let words = [
            "trace",
            "convert",
            from.to_str().unwrap(),
            to.to_str().unwrap(),
        ];
        let words = [&words[..], &["--to", format, "--json"]].concat();
        let converted = place.run(&words).ends_with(0).json();
        assert_eq!(converted["ios"], 80_794);
        let not_held = converted["not_held"].as_array().unwrap();
        assert_eq!(
            not_held.is_empty(),
            !format.starts_with("fio"),
            "{not_held:?}"
        );
        let back = shown(&place, &to);
        for key in [
            "ios",
            "reads",
            "writes",
            "read_bytes",
            "write_bytes",
            "distinct_bytes",
            "skew",
        ] {
            assert_eq!(back[key], own[key], "{format}: {key}");
        }
        // What is there is not replaced.
        place.run(&words).ends_with(2);
    }
    let bytes = fs::metadata(place.path("disksmith")).unwrap().len();
    assert!(bytes <= 12 * 80_794, "{bytes}");
}

#[test]
fn fio_reads_the_logs_that_are_written() {
    let place = Place::new();
    let line = |n: u64| {
        let op = if n.is_multiple_of(3) { 'W' } else { 'R' };
        format!("0.{:06} ; {} ; 8 ; {op} ; 0.0 ; 0.0\n", n * 200, n * 8)
    };
    let text: String = (0..40).map(line).collect();
    fs::write(
        place.path("small.load"),
        format!("start ; sector ; length ; op\n{text}"),
    )
    .unwrap();
    let target = place.path("target");
    fs::write(&target, vec![0; 1 << 20]).unwrap();
    for format in ["fio-iolog-v2", "fio-iolog-v3"] {
        let log = place.path(format);
        let words = [
            "trace",
            "convert",
            "small.load",
            log.to_str().unwrap(),
            "--to",
            format,
        ];
        place.run(&words).ends_with(0);
        let run = Command::new("fio")
            .args(["--name=replay", "--output-format=json", "--ioengine=psync"])
            .arg(format!("--read_iolog={}", log.display()))
            .arg(format!("--replay_redirect={}", target.display()))
            .output();
        let Ok(run) = run else {
            return skipped("there is no fio");
        };
        let text = String::from_utf8_lossy(&run.stdout);
        let json = text.find('{').map(|at| &text[at..]).unwrap_or_default();
        let answer: Value =
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
        let job = &answer["jobs"][0];
        assert_eq!(job["read"]["total_ios"], 26, "{format}: {text}");
        assert_eq!(job["write"]["total_ios"], 14, "{format}: {text}");
    }
}

#[test]
fn what_is_malformed_is_named_by_file_line_and_column() {
    let place = Place::new();
    fs::write(
        place.path("bad.csv"),
        "419,W,8792731648,16384,1577808144360767\n419,W,x,16384,1577808144360768\n",
    )
    .unwrap();
    let refused = place.run(&["trace", "show", "bad.csv"]).ends_with(2);
    assert!(
        refused
            .err
            .contains("bad.csv:2:7: expected the offset in bytes"),
        "{}",
        refused.err
    );
    fs::write(place.path("none"), "hello\n").unwrap();
    let refused = place.run(&["trace", "show", "none"]).ends_with(2);
    assert!(
        refused.err.contains("is no trace that is known"),
        "{}",
        refused.err
    );
    place.run(&["trace", "show", "missing"]).ends_with(2);
}

/// A loop device; `None`, with a note, where there is none or nothing can be traced.
fn traced_disk(place: &Place) -> Option<Loop> {
    let disk = Loop::new(256)?;
    let tried = place.run(&[
        "trace",
        "record",
        &node(&disk),
        "-o",
        "try.dst",
        "--for",
        "100ms",
    ]);
    if tried.status != Some(0) {
        skipped(&format!("block I/O cannot be traced here: {}", tried.err));
        return None;
    }
    Some(disk)
}

fn node(disk: &Loop) -> String {
    disk.path().to_owned()
}

/// fio on a device: reads, writes and flushes that it made.
fn fio(device: &str) -> Option<[u64; 3]> {
    let run = Command::new("fio")
        .args([
            "--name=load",
            "--direct=1",
            "--rw=randrw",
            "--bs=4k",
            "--iodepth=8",
        ])
        .args([
            "--ioengine=libaio",
            "--number_ios=4000",
            "--size=200M",
            "--fsync=16",
        ])
        .args(["--output-format=json", &format!("--filename={device}")])
        .output();
    let Ok(run) = run else {
        skipped("there is no fio");
        return None;
    };
    let text = String::from_utf8_lossy(&run.stdout);
    let answer: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let job = &answer["jobs"][0];
    let count = |name: &str| job[name]["total_ios"].as_u64().unwrap();
    Some([count("read"), count("write"), count("sync")])
}

/// A recording that runs in the background, ended by a signal.
struct Recorder {
    child: std::process::Child,
}

impl Recorder {
    fn start(place: &Place, words: &[&str]) -> Recorder {
        let words = [&["trace", "record"], words].concat();
        let child = place
            .command(&words)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Recorder { child }
    }

    /// Waits until the file is there, which is when the recording runs.
    fn wait_for(&self, file: &Path) {
        let since = Instant::now();
        while fs::metadata(file).map_or(0, |metadata| metadata.len()) == 0 {
            assert!(
                since.elapsed() < TIMEOUT,
                "{} does not come",
                file.display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        // The file's head is written just before the trace begins.
        std::thread::sleep(Duration::from_millis(200));
    }

    fn end(mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap()
    }
}

#[test]
fn needs_root_a_recording_has_every_request_that_fio_made() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let file = place.path("t.dst");
    let recorder = Recorder::start(&place, &[&node(&disk), "-o", "t.dst", "--comm"]);
    recorder.wait_for(&file);
    let Some([reads, writes, flushes]) = fio(&node(&disk)) else {
        return;
    };
    assert!(recorder.end().success());
    let found = shown(&place, &file);
    assert_eq!(found["lost_events"], 0);
    assert_eq!(found["ambiguous_pairs"], 0);
    let fio = found["processes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "fio")
        .unwrap();
    assert_eq!(fio["ios"].as_u64().unwrap(), reads + writes + flushes);
    // The system's tools look at a new device, too.
    assert!(found["reads"].as_u64().unwrap() >= reads);
    assert_eq!(found["writes"], writes);
    assert!(found["flushes"].as_u64().unwrap() >= flushes);
    assert!(found["queue_depth"]["max"].as_u64().unwrap() >= 2);
    assert_eq!(found["devices"][0]["write_cache"], "back");
    let bytes = fs::metadata(&file).unwrap().len();
    assert!(
        bytes <= 12 * found["ios"].as_u64().unwrap() + 4096,
        "{bytes}"
    );
}

#[test]
fn needs_root_a_killed_recording_is_readable_and_its_instance_goes_with_the_next_start() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let file = place.path("t.dst");
    let mut recorder = Recorder::start(&place, &[&node(&disk), "-o", "t.dst"]);
    recorder.wait_for(&file);
    fio(&node(&disk));
    recorder.child.kill().unwrap();
    recorder.child.wait().unwrap();
    let found = shown(&place, &file);
    assert_eq!(found["cut_off"], true);
    assert_eq!(found["verdict"], "doubtful");
    let again = [
        "trace",
        "record",
        &node(&disk),
        "-o",
        "again.dst",
        "--for",
        "100ms",
    ];
    place.run(&again).ends_with(0);
    let mut left = instances();
    left.retain(|name| name.starts_with(&format!("disksmith-{}-", recorder.child.id())));
    assert_eq!(left, Vec::<String>::new());
}

/// Instances of tracefs, by a mount that only this looks through.
fn instances() -> Vec<String> {
    let script = "mount -t tracefs none /mnt && ls /mnt/instances";
    let run = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.err)
    );
    String::from_utf8_lossy(&run.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn needs_root_a_trace_is_not_written_onto_the_device_that_is_recorded() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    disk.mkfs();
    let mounted = Mounted::new(disk.path());
    let folder = mounted.point.as_path();
    let file = folder.join("t.dst");
    let words = [
        "trace",
        "record",
        &node(&disk),
        "-o",
        file.to_str().unwrap(),
    ];
    let refused = place.run(&words).ends_with(2);
    assert!(refused.err.contains("which is recorded"), "{}", refused.err);
    // Files of the folder are named by where they lie.
    fs::File::create(folder.join("ibdata1"))
        .unwrap()
        .write_all(&vec![7; 4 << 20])
        .unwrap();
    Command::new("sync").status().unwrap();
    let trace = place.path("named.dst");
    let named = [
        &node(&disk),
        "-o",
        "named.dst",
        "--dataset",
        folder.to_str().unwrap(),
    ];
    let recorder = Recorder::start(&place, &named);
    recorder.wait_for(&trace);
    let read = Command::new("dd")
        .args(["iflag=direct", "bs=64k", "of=/dev/null"])
        .arg(format!("if={}", folder.join("ibdata1").display()))
        .output()
        .unwrap();
    assert!(read.status.success());
    assert!(recorder.end().success());
    let found = shown(&place, &trace);
    let files = found["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["name"] == "ibdata1").unwrap();
    assert_eq!(file["bytes"], 4 << 20);
}
