//! The verb `trace`, through the real program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "trace/attributed.rs"]
mod attributed;
#[path = "trace/blktrace.rs"]
mod blktrace;
#[path = "serve/chromium.rs"]
mod chromium;
#[path = "trace/full.rs"]
mod full;
#[path = "trace/interrupted.rs"]
mod interrupted;
#[path = "trace/killed.rs"]
mod killed;
#[path = "support/loops.rs"]
mod loops;
#[path = "trace/memory.rs"]
mod memory;
#[path = "trace/report.rs"]
mod report;
#[path = "trace/started.rs"]
mod started;
mod support;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loops::{FileSystem, Loop};
use rustix::process::Signal;
use serde_json::Value;
use support::{Place, ProgramOutput, Running, has_program, is_root, number, output_of};

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
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "queue depth not recorded",
        "latency not recorded",
        "flushes: not recorded",
        "by process: not recorded",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn conversions_keep_the_trace_and_list_what_they_cannot_hold() {
    let place = Place::new();
    let from = place.path("part.load");
    let part = "gzip -dc \"$0\" | head -n 8001 > \"$1\"";
    loops::run(
        "sh",
        &[
            "-c",
            part,
            mysql().to_str().unwrap(),
            from.to_str().unwrap(),
        ],
    );
    let own = shown(&place, &from);
    let ios = number(&own["ios"]);
    assert!(ios > 4096, "{ios}");
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
        assert_eq!(converted["ios"], ios);
        // It has no flushes, and the others would show that it had none.
        let not_held = converted["not_held"].as_array().unwrap();
        assert_eq!(not_held.is_empty(), format == "disksmith", "{not_held:?}");
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
    assert!(bytes <= 12 * ios, "{bytes}");
}

/// On a disk that is full, or by a limit on files: what was there is there, and nothing else.
#[test]
fn a_conversion_that_fails_changes_nothing_also_by_force() {
    let place = Place::new();
    fs::write(place.path("earlier"), "what was there").unwrap();
    let from = mysql();
    let names = || support::names_in(&place.path(""));
    let before = names();
    for (to, more) in [("earlier", &["--force"][..]), ("new", &[])] {
        let words = [&["trace", "convert", from.to_str().unwrap(), to], more].concat();
        // Blocks of 512 bytes in a POSIX shell.
        let said = support::under("ulimit -f 100", &place.command(&words)).ends_with(3);
        assert!(
            said.err.contains(&format!("{to} is not written")),
            "{said:#?}"
        );
        assert_eq!(names(), before);
        let there = fs::read_to_string(place.path("earlier")).unwrap();
        assert_eq!(there, "what was there");
    }
    let words = ["trace", "convert", from.to_str().unwrap(), "earlier"];
    place.run(&words).ends_with(2);
    place.run(&[&words[..], &["--force"]].concat()).ends_with(0);
    assert_eq!(shown(&place, &place.path("earlier"))["ios"], 80_794);
    assert_eq!(names(), before);
}

#[test]
fn fio_reads_the_logs_that_are_written() {
    if !has_program("fio") {
        return;
    }
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
        let job = job_of(&run.unwrap().stdout);
        assert_eq!(job["read"]["total_ios"], 26, "{format}: {job}");
        assert_eq!(job["write"]["total_ios"], 14, "{format}: {job}");
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

/// The job of fio's JSON, before which it may print notes.
fn job_of(printed: &[u8]) -> Value {
    let text = String::from_utf8_lossy(printed);
    let json = text.find('{').map_or("", |at| &text[at..]);
    let answer: Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"));
    answer["jobs"][0].clone()
}

/// A loop device of which block I/O can be traced. `None`, with a note, where that cannot be.
fn traced_disk(place: &Place) -> Option<Loop> {
    let disk = Loop::new(64)?;
    let tried = record(place, &disk, "tried.dst", &["--for", "100ms"]);
    if tried.status == Some(0) {
        return Some(disk);
    }
    // Where the kernel can trace, a refusal is a fault of the program.
    assert!(tried.err.contains("tracefs"), "{tried:#?}");
    support::skipped(&format!("block I/O cannot be traced here: {}", tried.err));
    None
}

/// Runs a recording to its end.
fn record(place: &Place, disk: &Loop, file: &str, options: &[&str]) -> ProgramOutput {
    place.run(&[&["trace", "record", disk.path(), "-o", file], options].concat())
}

/// Starts a recording, and waits until it runs.
fn recording(place: &Place, disk: &Loop, file: &str, options: &[&str]) -> Running {
    let words = ["trace", "record", disk.path(), "-o", file];
    let mut running = Running::start(&mut place.command(&[&words[..], options].concat()));
    let file = place.path(file);
    // The head is written when the recording has begun.
    running.wait_until("records nothing", || length(&file) > 0);
    running
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

/// Ends a recording as Ctrl-C does.
fn end(running: Running) -> ProgramOutput {
    running.signal(Signal::INT);
    running.end().ends_with(0)
}

/// Requests that fio made: no two of them are under way at once, so that the block layer merges none.
struct Load {
    reads: u64,
    writes: u64,
    flushes: u64,
}

/// More requests than a block of a trace holds.
fn load(disk: &Loop) -> Load {
    let run = Command::new("fio")
        .args(["--name=load", "--direct=1", "--rw=randrw", "--bs=4k"])
        .args(["--ioengine=psync", "--number_ios=4500", "--size=60M"])
        .args(["--fsync=16", "--output-format=json"])
        .arg(format!("--filename={}", disk.path()))
        .output();
    let job = job_of(&run.unwrap().stdout);
    let count = |name: &str| number(&job[name]["total_ios"]);
    Load {
        reads: count("read"),
        writes: count("write"),
        flushes: count("sync"),
    }
}

/// The row of a table of names.
fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

#[test]
fn with_root_a_recording_has_each_request_that_fio_made_also_converted() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &["--comm", "--json"]);
    let load = load(&disk);
    let recorded = end(recorder).json();
    assert_eq!(recorded["ended_by"], "signal");
    let file = place.path("t.dst");
    let found = shown(&place, &file);
    assert_eq!(found["ios"], recorded["ios"]);
    for key in ["lost_events", "ambiguous_pairs", "failed", "discards"] {
        assert_eq!(found[key], 0, "{key}");
    }
    assert_eq!(found["cut_off"], false);
    assert_eq!(found["verdict"], "trusted");
    assert_eq!(found["devices"][0]["name"], disk.name());
    assert_eq!(found["devices"][0]["write_cache"], "back");
    let fio = row(&found["processes"], "fio");
    assert_eq!(number(&fio["ios"]), load.reads + load.writes + load.flushes);
    assert_eq!(number(&fio["bytes"]), 4096 * (load.reads + load.writes));
    // The system's tools look at a device that was written.
    assert!(number(&found["reads"]) >= load.reads);
    assert_eq!(found["writes"], load.writes);
    assert_eq!(found["flushes"], load.flushes);
    let bytes = length(&file);
    assert!(bytes <= 12 * number(&found["ios"]) + 4096, "{bytes}");

    for format in ["disksmith", "blktrace", "blkparse"] {
        let to = place.path(format);
        let words = ["trace", "convert", "t.dst", format, "--to", format];
        place.run(&words).ends_with(0);
        let back = shown(&place, &to);
        for key in ["ios", "reads", "writes", "flushes", "write_bytes"] {
            assert_eq!(back[key], found[key], "{format}: {key}");
        }
        assert_eq!(back["verdict"], "trusted", "{format}");
    }
}

#[test]
fn with_root_a_recorder_that_was_held_up_says_that_it_lost_events() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &["--buffer", "16KiB", "--json"]);
    recorder.signal(Signal::STOP);
    load(&disk);
    recorder.signal(Signal::CONT);
    assert!(number(&end(recorder).json()["lost_events"]) > 0);
    let found = shown(&place, &place.path("t.dst"));
    assert!(number(&found["lost_events"]) > 0);
    assert_eq!(found["verdict"], "invalid");
}

#[test]
fn with_root_a_recording_ends_by_its_size() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &["--max-size", "4KiB", "--json"]);
    load(&disk);
    let recorded = recorder.end().ends_with(0).json();
    assert_eq!(recorded["ended_by"], "size");
    assert!(number(&recorded["bytes"]) >= 4096);
    let found = shown(&place, &place.path("t.dst"));
    assert_eq!(found["ios"], recorded["ios"]);
    assert_eq!(found["cut_off"], false);
}

#[test]
fn with_root_of_chosen_processes_alone_the_io_is_recorded() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let read = |count: u64| {
        let dd = "exec dd if=$0 of=/dev/null iflag=direct bs=4k";
        let mut shell = Command::new("sh");
        // It waits for its input to end before it reads the disk.
        shell.args(["-c", &format!("cat; {dd} count={count}"), disk.path()]);
        shell.stdin(Stdio::piped()).stderr(Stdio::null());
        shell.spawn().unwrap()
    };
    let (mut chosen, mut other) = (read(7), read(5));
    let pid = chosen.id().to_string();
    let recorder = recording(&place, &disk, "t.dst", &["--pid", &pid]);
    for child in [&mut other, &mut chosen] {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    assert_eq!(found["ios"], 7);
    assert_eq!(row(&found["processes"], "dd")["bytes"], 7 * 4096);
}

#[test]
fn with_root_recordings_at_once_have_each_its_own_device() {
    let place = Place::new();
    let Some(disks) = traced_disk(&place).zip(Loop::new(64)) else {
        return;
    };
    let first = recording(&place, &disks.0, "0.dst", &["--comm"]);
    let second = recording(&place, &disks.1, "1.dst", &["--comm"]);
    for (disk, count) in [(&disks.0, "count=3"), (&disks.1, "count=4")] {
        let from = format!("if={}", disk.path());
        loops::run(
            "dd",
            &["of=/dev/null", "iflag=direct", "bs=4k", &from, count],
        );
    }
    end(first);
    end(second);
    for (file, reads) in [("0.dst", 3), ("1.dst", 4)] {
        let found = shown(&place, &place.path(file));
        assert_eq!(row(&found["processes"], "dd")["ios"], reads, "{file}");
    }
}

#[test]
fn with_root_a_trace_is_not_written_onto_the_device_that_is_recorded() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let Some(files) = FileSystem::on(disk, "ext4") else {
        return;
    };
    let onto = files.join("t.dst");
    record(&place, &files.device, &onto, &[]).refuses(&["which is recorded"]);
    assert!(!Path::new(&onto).exists());

    // Files of a folder are named by where they lie.
    let data = files.join("ibdata1");
    let mut file = File::create(&data).unwrap();
    file.write_all(&vec![7; 4 << 20]).unwrap();
    file.sync_all().unwrap();
    let folder = files.path().to_str().unwrap();
    let recorder = recording(&place, &files.device, "t.dst", &["--dataset", folder]);
    let from = format!("if={data}");
    loops::run("dd", &["of=/dev/null", "iflag=direct", "bs=64k", &from]);
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    assert_eq!(row(&found["files"], "ibdata1")["bytes"], 4 << 20);
}

#[test]
fn what_is_no_disk_is_refused_and_so_is_a_user_who_may_not_trace() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    let none = ["trace", "record", "file", "-o", "t.dst"];
    place.run(&none).refuses(&["file is no block device"]);
    assert!(!place.path("t.dst").exists());
    let Some(disk) = is_root().then(|| Loop::new(16)).flatten() else {
        return;
    };
    fs::write(place.path("earlier"), "what was there").unwrap();
    record(&place, &disk, "earlier", &[]).refuses(&["earlier", "--force"]);
    // Where it was built, others may not go.
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), mode).unwrap();
    let program = folder.path().join("disksmith");
    support::copy_program(assert_cmd::cargo::cargo_bin!("disksmith"), &program);
    let mut command = Command::new(program);
    command.args(["trace", "record", disk.path(), "-o", "t.dst"]);
    command.uid(65534).gid(65534).current_dir(folder.path());
    output_of(&mut command).refuses(&["tracing needs root"]);
    assert!(!folder.path().join("t.dst").exists());
}
