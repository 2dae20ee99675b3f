//! Ctrl-C, its kin and kill -9: what was measured is kept, and nothing is left on the disk.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::loops::FileSystem;
use crate::support::{Place, Running, SHORT, TIMEOUT, output_of};

/// A run that only a signal ends.
const ENDLESS: [&str; 10] = [
    "bench",
    "data",
    "--size",
    "8M",
    "--phase",
    "page-read,scan",
    "--seconds",
    "10m",
    "--precision",
    "0",
];

/// A test file that takes long to lay out.
const LARGE: [&str; 6] = ["bench", "data", "--size", "3G", "--phase", "seek"];

#[test]
fn ctrl_c_prints_and_keeps_what_was_measured_and_marks_it() {
    let place = Place::new();
    let mut run = Running::start(&mut place.command(&ENDLESS));
    run.wait_for_reads();
    run.signal(Signal::INT);
    let said = run.end().ends_with(3);
    said.fits(100);
    said.prints(&[
        "page-read",
        "The run was interrupted: it is partial.",
        "Not run, because of a signal: scan.",
    ]);
    said.warns(&["interrupted", "no test file is left"]);
    place.assert_nothing_left();

    let listed = place.run("runs").ends_with(0);
    listed.prints(&["(partial)"]);
    let shown = place.run("show last").ends_with(0);
    assert_eq!(shown.out, said.out);
}

#[test]
fn every_signal_that_asks_for_an_end_gets_one_and_a_whole_document() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = Place::new();
        let arguments = [&ENDLESS[..], &["--json"]].concat();
        let mut run = Running::start(&mut place.command(&arguments));
        run.wait_for_reads();
        run.signal(signal);
        let document = run.end().ends_with(3).json();
        assert_eq!(document["interrupted"], true);
        assert_eq!(document["phases"][0]["stopped"], "signal");
        assert_eq!(document["phases"].as_array().unwrap().len(), 1);
        assert_eq!(document["run"], place.runs()[0]);
        place.assert_nothing_left();
    }
}

/// As a virtual machine that is paused.
#[test]
fn a_stop_of_the_program_is_a_gap_of_the_measurement_and_no_stall_of_the_disk() {
    let stopped = || {
        let place = Place::new();
        let words = "bench data --size 8M --phase page-read --json";
        let length = "--seconds 8s --precision 0";
        let mut run = Running::start(&mut place.command(&format!("{words} {length}")));
        run.wait_for_reads();
        run.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(2500));
        run.signal(Signal::CONT);
        run.end().ends_with(0).json()
    };
    let text = |document: &serde_json::Value, code: &str| {
        let findings = document["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["code"] == code)?;
        Some(found["text"].as_str().unwrap().to_owned())
    };
    // A busy host has stalls of its own now and then: one of some runs has none.
    let without_stall = (0..20).any(|_| {
        let document = stopped();
        let gap = text(&document, "gap").unwrap_or_else(|| panic!("no gap: {document:#}"));
        assert!(gap.contains("did not run for"), "{gap}");
        assert_ne!(document["verdict"], "trusted");
        text(&document, "stall").is_none()
    });
    assert!(
        without_stall,
        "the stop was a stall of the disk in each run"
    );
}

#[test]
fn ctrl_c_while_the_test_file_is_laid_out_removes_it_and_keeps_no_run() {
    let place = Place::new();
    let mut run = Running::start(&mut place.command(&LARGE));
    run.wait_for_test_file();
    run.signal(Signal::INT);
    let said = run.end().ends_with(3);
    assert_eq!(said.out, "");
    said.warns(&["interrupted while the test file was laid out; it is removed"]);
    assert_eq!(place.runs(), [""; 0]);
    place.assert_nothing_left();
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_nothing_either() {
    let place = Place::new();
    let mut run = Running::start(&mut place.command(&LARGE));
    run.wait_for_test_file();
    run.signal(Signal::INT);
    run.signal(Signal::INT);
    run.end().ends_with(3);
    assert_eq!(place.runs(), [""; 0]);
    place.assert_nothing_left();
}

#[test]
fn kill_9_at_any_moment_leaves_no_file_and_a_ledger_that_opens() {
    let place = Place::new();
    killed(20, &place, &place.data());
    let kept = place.runs().len();
    place.bench(&SHORT).ends_with(0);
    assert_eq!(place.runs().len(), kept + 1);
}

#[test]
#[ignore = "long proof: make prove"]
fn kill_9_at_500_moments_leaves_no_file_and_a_ledger_that_opens() {
    let place = Place::new();
    killed(500, &place, &place.data());
    place.bench(&SHORT).ends_with(0);
}

#[test]
fn root_kill_9_at_any_moment_gives_the_space_back() {
    let Some(disk) = FileSystem::new("ext4", 256) else {
        return;
    };
    let place = Place::new();
    let before = free(disk.path());
    killed(20, &place, disk.path());
    // The kernel takes a ring, and the file that it holds, down behind the process's back.
    let began = Instant::now();
    while free(disk.path()) < before {
        let missing = before - free(disk.path());
        assert!(
            began.elapsed() < TIMEOUT,
            "{missing} bytes are not free again"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `bench` on `folder` and kills it so many times, at moments spread over the whole of a run.
fn killed(times: u32, place: &Place, folder: &Path) {
    let folder_name = folder.to_str().unwrap();
    let options = "--size 32M --phase page-write,log-append";
    let arguments = format!("bench {folder_name} --seconds 150ms {options}");
    let began = Instant::now();
    output_of(&mut place.command(&arguments)).ends_with(0);
    let whole = began.elapsed();
    for moment in 0..times {
        let run = Running::start(&mut place.command(&arguments));
        std::thread::sleep(whole * moment / times);
        run.signal(Signal::KILL);
        run.end();
        let left = crate::support::names_in(folder);
        assert!(
            left.iter().all(|name| name == "lost+found"),
            "{left:?} after a kill at {moment}/{times}"
        );
        place.run("runs").ends_with(0);
    }
}

/// Bytes of a file system that are free.
fn free(folder: &Path) -> u64 {
    let space = rustix::fs::statvfs(folder).unwrap();
    space.f_bfree * space.f_frsize
}
