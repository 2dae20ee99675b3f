//! Tests on file systems that are full or read-only, and with ledgers that disappear, in a mount namespace of their
//! own: all mounts end with the process. They need root.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use record::Verdict::Trusted;

use crate::testing::{Scratch, small_run};
use crate::{Error, Filter, Ledger};

const TASK: &str = "LEDGER_TEST_MOUNT";
const PLACE: &str = "LEDGER_TEST_MOUNT_PLACE";

/// Runs one of the checks below on a file system of this kind.
fn on(kind: &str) {
    let can_mount = Command::new("unshare")
        .args(["--mount", "true"])
        .stderr(Stdio::null())
        .status();
    if !can_mount.is_ok_and(|status| status.success()) {
        skip::skipped("only root can mount file systems of its own");
        return;
    }
    let scratch = Scratch::new();
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "room::task_in_a_mount_namespace", "--nocapture"])
        .env(TASK, kind)
        .env(PLACE, scratch.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{kind}");
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// Does nothing unless it was started by another test.
#[test]
fn task_in_a_mount_namespace() {
    let (Ok(kind), Some(place)) = (std::env::var(TASK), std::env::var_os(PLACE)) else {
        return;
    };
    let place = PathBuf::from(place);
    let folder = place.join("mounted");
    fs::create_dir(&folder).unwrap();
    let at = folder.to_str().unwrap();
    if kind == "ext4" {
        let image = place.join("image");
        File::create(&image).unwrap().set_len(8 << 20).unwrap();
        // Without blocks reserved for root, since root fills it here.
        run("mkfs.ext4", &["-q", "-m", "0", image.to_str().unwrap()]);
        // Tests that attach loop devices do so one at a time.
        let attaching = File::open("/dev/loop-control").unwrap();
        attaching.lock().unwrap();
        run("mount", &["-o", "loop", image.to_str().unwrap(), at]);
        drop(attaching);
    } else {
        run("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs", at]);
    }
    let ledgers = [closed(&folder), killed(&folder)];
    if kind == "read-only" {
        run("mount", &["-o", "remount,ro", at]);
        is_read(&ledgers[0], 2, |error| {
            matches!(error, Error::ReadOnly { .. })
        });
        let error = Ledger::open(&ledgers[1]).map(|_| ()).unwrap_err();
        assert!(error.is_of_place(), "{error}");
        let error = Ledger::open(folder.join("new/ledger.db"))
            .map(|_| ())
            .unwrap_err();
        assert!(error.is_of_place(), "{error}");
        return;
    }
    fill(&folder);
    for (path, runs) in ledgers.iter().zip([2, 3]) {
        is_read(path, runs, |error| matches!(error, Error::Full { .. }));
    }
    let error = Ledger::open(folder.join("new/ledger.db"))
        .map(|_| ())
        .unwrap_err();
    assert!(error.is_of_place(), "{error}");
    // Once there is space again, nothing is lost and everything can be written.
    fs::remove_file(folder.join("filler")).unwrap();
    for (path, runs) in ledgers.iter().zip([2, 3]) {
        let mut ledger = Ledger::open(path).unwrap();
        assert!(ledger.is_writable());
        ledger.save(&small_run(9), Trusted, &[]).unwrap();
        assert_eq!(ledger.list(&Filter::default()).unwrap().len(), runs + 1);
    }
}

/// A ledger of two runs.
fn closed(folder: &Path) -> PathBuf {
    let path = folder.join("closed.db");
    let mut ledger = Ledger::open(&path).unwrap();
    for minute in 0..2 {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    path
}

/// A ledger of three runs as a kill leaves it: the third is in the log next to it.
fn killed(folder: &Path) -> PathBuf {
    let source = folder.join("source.db");
    let mut ledger = Ledger::open(&source).unwrap();
    for minute in 0..3 {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    let path = folder.join("killed.db");
    for suffix in ["", "-wal"] {
        let name = |base: &str| folder.join(format!("{base}.db{suffix}"));
        fs::copy(name("source"), name("killed")).unwrap();
    }
    path
}

/// Fills the file system to the last byte.
fn fill(folder: &Path) {
    let mut filler = File::create(folder.join("filler")).unwrap();
    for size in [64 << 10, 4096, 512, 1] {
        while filler.write_all(&vec![1; size]).is_ok() {}
    }
    let _ = filler.sync_all();
}

/// The ledger can be read, cannot be written, and is not changed.
fn is_read(path: &Path, runs: usize, refusal: impl Fn(&Error) -> bool) {
    // SQLite may create a WAL and leave it empty.
    let read = |suffix: &str| fs::read(format!("{}{suffix}", path.display())).unwrap_or_default();
    let files = || ["", "-wal"].map(read);
    let before = files();
    for _ in 0..2 {
        let mut ledger = Ledger::open(path).unwrap();
        assert!(!ledger.is_writable());
        assert_eq!(ledger.list(&Filter::default()).unwrap().len(), runs);
        assert_eq!(ledger.load("last").unwrap(), small_run(runs as i64 - 1));
        let error = ledger.save(&small_run(9), Trusted, &[]).unwrap_err();
        assert!(refusal(&error) && error.is_of_place(), "{error}");
    }
    assert!(files() == before, "{} was changed", path.display());
}

#[test]
fn with_root_a_ledger_on_a_full_tmpfs_is_read_and_written_again_when_there_is_room() {
    on("tmpfs");
}

#[test]
fn with_root_a_ledger_on_a_full_ext4_is_read_and_written_again_when_there_is_room() {
    on("ext4");
}

#[test]
fn with_root_a_ledger_on_a_read_only_file_system_is_read() {
    on("read-only");
}

#[test]
fn a_ledger_that_is_removed_or_replaced_meanwhile_takes_nothing_more_and_a_new_one_does() {
    let changes: [fn(&Path); 3] = [
        |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
        |path| fs::remove_file(path).unwrap(),
        |path| {
            let other = path.with_file_name("other.db");
            drop(Ledger::open(&other).unwrap());
            fs::rename(other, path).unwrap();
        },
    ];
    for change in changes {
        let scratch = Scratch::new();
        let path = scratch.path().join("folder/ledger.db");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.save(&small_run(0), Trusted, &[]).unwrap();
        change(&path);
        let error = ledger.save(&small_run(1), Trusted, &[]).unwrap_err();
        assert!(
            matches!(error, Error::Gone { .. }) && error.is_of_place(),
            "{error}"
        );
        let error = ledger
            .mark(jiff::Timestamp::now(), "db-1", "deploy")
            .unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{error}");
        drop(ledger);
        let mut anew = Ledger::open(&path).unwrap();
        anew.save(&small_run(1), Trusted, &[]).unwrap();
        assert_eq!(anew.load("last").unwrap(), small_run(1));
    }
}
