//! Ctrl-C, its kin and kill -9: what was measured is kept, and nothing is left on the disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Place, Running, SHORT, has_program, is_root, said, skipped};

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
    for words in [
        "page-read",
        "The run was interrupted: it is partial.",
        "Not run, because of a signal: scan.",
    ] {
        assert!(said.prose().contains(words), "no '{words}' in {said:#?}");
    }
    assert!(
        said.err.contains("interrupted") && said.err.contains("no test file is left"),
        "{said:#?}"
    );
    place.assert_nothing_left();

    let listed = place.run(&["runs"]).ends_with(0);
    assert!(listed.out.contains("(partial)"), "{listed:#?}");
    let shown = place.run(&["show", "last"]).ends_with(0);
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

#[test]
fn ctrl_c_while_the_test_file_is_laid_out_removes_it_and_keeps_no_run() {
    let place = Place::new();
    let mut run = Running::start(&mut place.command(&LARGE));
    run.wait_for_test_file();
    run.signal(Signal::INT);
    let said = run.end().ends_with(3);
    assert_eq!(said.out, "");
    assert!(
        said.err
            .contains("interrupted while the test file was laid out; it is removed"),
        "{said:#?}"
    );
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
    if !is_root() || !has_program("mkfs.ext4") {
        return;
    }
    let place = Place::new();
    let Some(disk) = Mounted::new(&place) else {
        return;
    };
    let before = disk.free();
    killed(20, &place, &disk.folder);
    // The kernel takes a ring, and the file that it holds, down behind the process's back.
    let began = Instant::now();
    while disk.free() < before {
        let missing = before - disk.free();
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{missing} bytes are not free again"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `bench` on `folder` and kills it so many times, at moments spread over the whole of a run.
fn killed(times: u32, place: &Place, folder: &Path) {
    let folder_name = folder.to_str().unwrap();
    let options = ["--size", "32M", "--phase", "page-write,log-append"];
    let arguments = [&["bench", folder_name, "--seconds", "150ms"], &options[..]].concat();
    let began = Instant::now();
    said(&mut place.command(&arguments)).ends_with(0);
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
        place.run(&["runs"]).ends_with(0);
    }
}

/// An ext4 of a test's own, on a file in its place.
struct Mounted {
    folder: PathBuf,
}

impl Mounted {
    /// `None`, with a note, where it cannot be mounted.
    fn new(place: &Place) -> Option<Mounted> {
        let (image, folder) = (place.path("image"), place.path("mounted"));
        std::fs::create_dir(&folder).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(256 << 20).unwrap();
        said(Command::new("mkfs.ext4").arg("-q").arg(&image)).ends_with(0);
        let mut mount = Command::new("mount");
        let mounted = said(mount.args(["-o", "loop"]).arg(&image).arg(&folder));
        if mounted.status != Some(0) {
            skipped(mounted.err.trim());
            return None;
        }
        Some(Mounted { folder })
    }

    /// Free bytes.
    fn free(&self) -> u64 {
        let space = rustix::fs::statvfs(&self.folder).unwrap();
        space.f_bfree * space.f_frsize
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // At once for everybody, and in truth when the last file in it is closed.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}
