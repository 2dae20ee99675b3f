//! `trace record` against Debian's blktrace, on a load that both record.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::loops::{self, Loop};
use super::support::requests::{
    BLOCK, Request, Requests, assert_same, between, count, of_blkparse,
};
use super::support::{Place, Running, has_program, number, output_of};
use super::{end, load, recording, shown, traced_disk};

/// First bytes of reads before and behind the load, beyond the bytes that it uses.
const MARKS: [u64; 2] = [62 << 20, 63 << 20];

/// Starts blktrace, with a debugfs that only it sees.
fn blktrace(place: &Place, disk: &Loop) -> Running {
    let script = "mount -t debugfs none /sys/kernel/debug && exec blktrace -d \"$0\" -D \"$1\" -o blk -b 4 -n 2048";
    let mut command = Command::new("unshare");
    command
        .args(["-m", "--propagation", "private", "sh", "-c", script])
        .arg(disk.path())
        .arg(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::start(&mut command)
}

fn read_block(disk: &Loop, offset: u64) {
    let from = format!("if={}", disk.path());
    let skip = format!("skip={}", offset / BLOCK);
    let words = ["of=/dev/null", "bs=4k", "count=1", "iflag=direct", &skip];
    loops::run("dd", &[&[from.as_str()], &words[..]].concat());
}

/// True if the kernel is locked down, in any way: it opens no file of debugfs then that a user could write or map, and
/// blktrace's are such. That of tracefs are open until it is locked down for confidentiality (kernel_lockdown(7)).
fn is_locked_down() -> bool {
    let script = "mount -t securityfs none /mnt && cat /mnt/lockdown";
    let mut command = Command::new("unshare");
    let words = ["-m", "--propagation", "private", "sh", "-c", script];
    let text = output_of(command.args(words)).out;
    text.contains("[integrity]") || text.contains("[confidentiality]")
}

/// The requests of the only device between the marks.
fn of_the_device(all: Vec<(String, Request)>) -> Requests {
    let mut devices = between(all, MARKS).into_values();
    let device = devices.next().unwrap();
    assert_eq!(devices.next(), None);
    device
}

/// The requests of a recording's file, by `trace convert`.
fn requests(place: &Place, file: &Path) -> Vec<(String, Request)> {
    let file = file.to_str().unwrap();
    let text = format!("{file}.txt");
    let words = ["trace", "convert", file, &text, "--to", "blkparse"];
    place.run(&words).ends_with(0);
    of_blkparse(&fs::read_to_string(text).unwrap())
}

/// Waits until blktrace records, of which it says nothing: one of its small buffers is full. False where it ended instead.
fn records(place: &Place, disk: &Loop, blktrace: &mut Running) -> bool {
    let has_data = || {
        let mut files = (0..).map(|cpu| place.path(&format!("blk.blktrace.{cpu}")));
        let mut there = files.by_ref().take_while(|file| file.exists());
        there.any(|file| super::length(&file) > 0)
    };
    let began = std::time::Instant::now();
    while !has_data() {
        if blktrace.has_ended() {
            return false;
        }
        assert!(
            began.elapsed() < super::support::TIMEOUT,
            "blktrace records nothing"
        );
        read_block(disk, 0);
    }
    true
}

#[test]
fn with_root_blktrace_records_the_same_requests_unless_the_kernel_is_locked_down() {
    let place = Place::new();
    let programs = ["blktrace", "blkparse", "fio"];
    let Some(disk) = traced_disk(&place).filter(|_| programs.iter().all(|name| has_program(name)))
    else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &["--json"]);
    let mut blktrace = blktrace(&place, &disk);
    if !records(&place, &disk, &mut blktrace) {
        let refused = blktrace.end();
        // Elsewhere it works, and both are to be compared.
        assert!(is_locked_down(), "{refused:#?}");
        assert!(refused.err.contains("not permitted"), "{refused:#?}");
        // This program needs no debugfs, and records.
        load(&disk);
        assert!(number(&end(recorder).json()["ios"]) > 0);
        return;
    }
    read_block(&disk, MARKS[0]);
    load(&disk);
    read_block(&disk, MARKS[1]);
    blktrace.signal(rustix::process::Signal::INT);
    blktrace.end();
    end(recorder);

    let recorded = of_the_device(requests(&place, &place.path("t.dst")));
    assert!(count(&recorded, &["flush"]) > 0);
    let mut blkparse = Command::new("blkparse");
    let text = output_of(blkparse.args(["-q", "-i"]).arg(place.path("blk"))).ends_with(0);
    let by_blkparse = of_blkparse(&text.out);
    let all = by_blkparse.len() as u64;
    assert_same(
        "recorded and by blktrace",
        &recorded,
        &of_the_device(by_blkparse),
    );
    let file = place.path("blk.blktrace.0");
    let read = of_the_device(requests(&place, &file));
    assert_same("recorded and blktrace's files read here", &recorded, &read);
    let found = shown(&place, &file);
    assert_eq!(number(&found["ios"]), all);
    assert_eq!(found["verdict"], "trusted");
}
