//! Tests with several processes: concurrent, killed, and without permission.
//!
//! A test starts this test binary again; an environment variable selects what it does there.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use record::Verdict::Trusted;

use crate::owner::tests::owner;
use crate::recording::simulated::Host;
use crate::testing::{Random, Scratch, finding, small_run};
use crate::{Error, Filter, Ledger, LongWork, Owner, OwnerLiveness, Retention};

const TASK: &str = "LEDGER_TEST_TASK";
const PLACE: &str = "LEDGER_TEST_PLACE";
/// A user without rights: `nobody` on every Linux.
const NOBODY_UID: u32 = 65534;

/// The test binary, told to do only `task` on the ledger at `path`.
fn other_process(binary: &Path, task: &str, path: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .args(["--exact", "processes::task_of_another_process"])
        .env(TASK, task)
        .env(PLACE, path)
        .stdout(Stdio::null());
    command
}

fn start(task: &str, path: &Path) -> Child {
    let binary = std::env::current_exe().unwrap();
    other_process(&binary, task, path).spawn().unwrap()
}

/// Enough findings to fill several pages: a kill should find most of the time spent on writing.
fn many_findings() -> Vec<record::Finding> {
    vec![finding(); 150]
}

/// Does nothing unless it was started by another test.
#[test]
fn task_of_another_process() {
    let (Ok(task), Some(path)) = (std::env::var(TASK), std::env::var_os(PLACE)) else {
        return;
    };
    let path = Path::new(&path);
    match task.split_once(' ') {
        Some(("save", first)) => {
            let first: i64 = first.parse().unwrap();
            let mut ledger = Ledger::open(path).unwrap();
            for minute in first..first + 50 {
                ledger
                    .save(&small_run(minute), Trusted, &[finding()])
                    .unwrap();
            }
        }
        Some(("save-until-killed", first)) => {
            let first: i64 = first.parse().unwrap();
            let mut ledger = Ledger::open(path).unwrap();
            for minute in first.. {
                ledger
                    .save(&small_run(minute), Trusted, &many_findings())
                    .unwrap();
                // Reopened now and then, so that kills also hit opening and closing.
                if minute % 4 == 0 {
                    drop(ledger);
                    ledger = Ledger::open(path).unwrap();
                }
            }
        }
        _ if task == "read" => {
            let mut ledger = Ledger::open(path).unwrap();
            assert!(!ledger.is_writable());
            assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 2);
            assert_eq!(ledger.load("last").unwrap(), small_run(1));
            let error = ledger.save(&small_run(9), Trusted, &[]).unwrap_err();
            assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
            let error = ledger.remove("last").unwrap_err();
            assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
        }
        _ if task == "read-secret" => {
            let error = Ledger::open(path).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Unreachable { .. }), "{error}");
            assert!(error.to_string().contains("Permission denied"), "{error}");
        }
        _ if task == "read-older" => {
            let error = Ledger::open(path).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Older { .. }), "{error}");
            assert!(
                error.to_string().contains("Open it once as a user"),
                "{error}"
            );
        }
        _ if task == "record-until-killed" => {
            let acknowledged = File::create(path.with_file_name("acknowledged")).unwrap();
            let (me, liveness) = (owner(std::process::id()), |_: &Owner| OwnerLiveness::Dead);
            let mut ledger = Ledger::open(path).unwrap();
            let source = record::sample::SampleSource::default();
            let mut recording = ledger.begin_recording(&me, &source, liveness).unwrap();
            // Far enough from what was recorded before that the times never overlap.
            let mut host = Host::new(4, 1, Timestamp::now());
            for batch in 1_u64.. {
                // Batches of 40, so that blocks are made and old ones thinned out all the time.
                let samples: Vec<_> = (0..40).map(|_| host.next()).collect();
                ledger.record(&mut recording, &samples, &[]).unwrap();
                acknowledged
                    .write_all_at(&(40 * batch).to_le_bytes(), 0)
                    .unwrap();
                if batch % 20 == 0 {
                    let later = Timestamp::now() + jiff::SignedDuration::from_hours(24 * 30);
                    ledger.thin_out(&Retention::default(), later).unwrap();
                }
            }
        }
        _ if task == "keep-until-killed" => {
            let acknowledged = File::create(path.with_file_name("acknowledged")).unwrap();
            let (me, liveness) = (owner(std::process::id()), |_: &Owner| OwnerLiveness::Dead);
            let mut ledger = Ledger::open(path).unwrap();
            let (claim, first) = match ledger.claim_work::<Steps>("x", &me, liveness) {
                Ok((claim, work)) => (claim, work.document.number),
                Err(_) => (ledger.begin_work("x", &me, &steps(0), liveness).unwrap(), 0),
            };
            for number in first.. {
                ledger.keep_work(&claim, &steps(number)).unwrap();
                acknowledged.write_all_at(&number.to_le_bytes(), 0).unwrap();
                // Reopened now and then, so that kills also hit opening and closing.
                if number % 8 == 0 {
                    drop(ledger);
                    ledger = Ledger::open(path).unwrap();
                }
            }
        }
        _ if task == "read-unsettled" => {
            let error = Ledger::open(path).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Unsettled { .. }), "{error}");
        }
        _ => panic!("an unknown task: {task}"),
    }
}

#[test]
fn six_processes_and_four_threads_create_one_ledger_and_save_500_runs_at_once() {
    let scratch = Scratch::new();
    let path = scratch.path().join("new/ledger.db");
    let children: Vec<Child> = (0..6)
        .map(|number| start(&format!("save {}", number * 50), &path))
        .collect();
    // Threads too, since SQLite's locks belong to the process and not to the thread.
    std::thread::scope(|scope| {
        for number in 6..10 {
            let path = &path;
            scope.spawn(move || {
                for minute in number * 50..(number + 1) * 50 {
                    let mut ledger = Ledger::open(path).unwrap();
                    ledger.save(&small_run(minute), Trusted, &[]).unwrap();
                }
            });
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let ledger = Ledger::open(&path).unwrap();
    let runs = ledger.list(&Filter::default()).unwrap();
    assert_eq!(runs.len(), 500);
    for (run, minute) in runs.iter().zip((0..500).rev()) {
        assert_eq!(ledger.load(run.id.as_str()).unwrap(), small_run(minute));
    }
    integrity(&ledger);
}

fn integrity(ledger: &Ledger) {
    let report: String = ledger
        .connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(report, "ok");
}

#[test]
fn a_kill_in_mid_write_leaves_only_complete_runs() {
    let scratch = Scratch::new();
    let path = scratch.ledger();
    let mut first = 0;
    for round in 0..16 {
        let mut child = start(&format!("save-until-killed {first}"), &path);
        // Into a different moment each time; the first rounds often meet the creation.
        sleep(Duration::from_millis(20 + 23 * round));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = Ledger::open(&path).unwrap();
        let runs = ledger.list(&Filter::default()).unwrap();
        first = runs.len() as i64;
        for (run, minute) in runs.iter().zip((0..first).rev()).take(60) {
            let whole = ledger.load(run.id.as_str()).unwrap();
            assert_eq!(whole, small_run(minute));
            let conclusion = ledger.conclusion(run.id.as_str()).unwrap();
            assert_eq!(conclusion.findings, many_findings());
        }
        // A list shows only runs with a conclusion, so it would hide one that is half there.
        for table in ["runs", "documents", "conclusions"] {
            let count = format!("SELECT count(*) FROM {table}");
            let count = ledger.connection.query_row(&count, [], |row| row.get(0));
            assert_eq!(count, Ok(first), "{table}");
        }
        integrity(&ledger);
    }
    assert!(first > 0, "no run was saved before its process was killed");
}

/// The last number that a process acknowledged.
fn acknowledged(scratch: &Scratch) -> Option<u64> {
    let bytes = fs::read(scratch.path().join("acknowledged")).ok()?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

/// Each acknowledged sample is in the ledger exactly once, no matter if a kill interrupts a batch, a block that
/// replaces batches, or minutes that replace a block.
#[test]
fn a_killed_recorder_loses_nothing_that_was_acknowledged() {
    let scratch = Scratch::new();
    let path = scratch.ledger();
    let mut before = 0;
    for round in 0..6_u64 {
        let _ = fs::remove_file(scratch.path().join("acknowledged"));
        let mut child = start("record-until-killed", &path);
        sleep(Duration::from_millis(150 + 170 * round));
        // The last kill comes when something has been recorded, however long that takes on a busy host.
        while round == 5 && acknowledged(&scratch).is_none() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            sleep(Duration::from_millis(1));
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = acknowledged(&scratch).unwrap_or_default();
        let ledger = Ledger::open(&path).unwrap();
        let replay = ledger
            .replay("db-1", Timestamp::MIN, Timestamp::MAX)
            .unwrap();
        let there: u64 = replay
            .map(|played| played.unwrap().recorded.samples())
            .sum();
        // A batch may be written and not acknowledged yet.
        let new = there - before;
        assert!(
            new == acknowledged || new == acknowledged + 40,
            "{new} of {acknowledged}"
        );
        before = there;
        integrity(&ledger);
    }
    assert!(
        before > 0,
        "nothing was recorded before its process was killed"
    );
}

/// Work whose document fills several pages and repeats its number in every part.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Steps {
    number: u64,
    noise: Vec<u64>,
}

impl LongWork for Steps {
    const KIND: &'static str = "steps";
    const FORM: u32 = 1;
}

fn steps(number: u64) -> Steps {
    let mut random = Random::new(number);
    Steps {
        number,
        noise: (0..2000).map(|_| random.bits()).collect(),
    }
}

#[test]
fn a_kill_while_work_is_kept_leaves_the_state_before_or_after() {
    let scratch = Scratch::new();
    let path = scratch.ledger();
    let (mut kept, mut kills) = (0, 0);
    for round in 0..24 {
        let _ = fs::remove_file(scratch.path().join("acknowledged"));
        let mut child = start("keep-until-killed", &path);
        // Every other kill comes when a further state has been kept, however long that takes on a busy host.
        while round % 2 == 1 && acknowledged(&scratch).is_none_or(|answered| answered <= kept) {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(20 + 17 * round));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = Ledger::open(&path).unwrap();
        integrity(&ledger);
        let number = match ledger.work::<Steps>("x").unwrap() {
            Some(work) => {
                let number = work.document.number;
                assert_eq!(work.document, steps(number));
                number
            }
            // Not even begun.
            None => continue,
        };
        assert!(number >= kept, "{number} after {kept}");
        if let Some(answered) = acknowledged(&scratch) {
            assert!(
                number == answered || number == answered + 1,
                "{number}, told {answered}"
            );
            kills += 1;
        }
        kept = number;
    }
    assert!(kills > 0 && kept > 0, "no kill met the work");
}

#[test]
fn an_older_ledger_that_may_not_be_written_says_who_can_bring_it_up_to_date() {
    let (scratch, binary) = for_everybody();
    let folder = scratch.path().join("older");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("ledger.db");
    let mut ledger = Ledger::open_with(&path, &crate::schema::MIGRATIONS[..1]).unwrap();
    ledger.save(&small_run(0), Trusted, &[]).unwrap();
    drop(ledger);
    let bytes = fs::read(&path).unwrap();
    for (path, mode) in [(&folder, 0o555), (&path, 0o444)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    without_rights(&binary, "read-older", &path);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // So that the folder can be removed.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_reader_does_not_wait_for_a_writer() {
    let scratch = Scratch::new();
    let mut writer = Ledger::open(scratch.ledger()).unwrap();
    writer.save(&small_run(0), Trusted, &[]).unwrap();
    writer.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let reader = Ledger::open(scratch.ledger()).unwrap();
    assert_eq!(reader.list(&Filter::default()).unwrap().len(), 1);
    assert!(began.elapsed() < crate::BUSY_TIMEOUT / 2);
}

#[test]
fn a_writer_that_waits_too_long_says_so() {
    let scratch = Scratch::new();
    let holder = Ledger::open(scratch.ledger()).unwrap();
    let mut waiter = Ledger::open(scratch.ledger()).unwrap();
    holder.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    waiter.connection.busy_timeout(Duration::ZERO).unwrap();
    let error = waiter.save(&small_run(0), Trusted, &[]).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    holder.connection.execute_batch("COMMIT").unwrap();
    waiter.save(&small_run(0), Trusted, &[]).unwrap();
}

/// A folder with a ledger of two runs and a copy of this binary that everybody may use.
fn for_everybody() -> (Scratch, std::path::PathBuf) {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.path().join("d/ledger.db")).unwrap();
    for minute in 0..2 {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    let binary = scratch.path().join("binary");
    // By another process: a file that this one writes is held open by what other tests fork (execve(2), ETXTBSY).
    let mut install = std::process::Command::new("install");
    install.arg(std::env::current_exe().unwrap()).arg(&binary);
    assert!(install.status().unwrap().success());
    for (path, mode) in [
        ("", 0o755),
        ("d", 0o555),
        ("d/ledger.db", 0o444),
        ("binary", 0o755),
    ] {
        fs::set_permissions(scratch.path().join(path), Permissions::from_mode(mode)).unwrap();
    }
    (scratch, binary)
}

/// Runs `task` as a user without rights: for root permissions are not checked, so it becomes `nobody`.
fn without_rights(binary: &Path, task: &str, path: &Path) {
    let mut command = other_process(binary, task, path);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY_UID).gid(NOBODY_UID);
    }
    // A process that another test is just starting may still hold the copy open for writing.
    let status = loop {
        match command.status() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                sleep(Duration::from_millis(10));
            }
            other => break other.unwrap(),
        }
    };
    assert!(status.success(), "{task}");
}

#[test]
fn a_ledger_that_may_not_be_written_can_still_be_read() {
    let (scratch, binary) = for_everybody();
    let folder = scratch.path().join("d");
    let path = folder.join("ledger.db");
    let names = || fs::read_dir(&folder).unwrap().count();
    without_rights(&binary, "read", &path);
    assert_eq!(names(), 1);
    // The file may not be written, but the folder may.
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    without_rights(&binary, "read", &path);
    assert_eq!(names(), 1);
    // The file may be written, but the folder may not.
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    without_rights(&binary, "read", &path);
    assert_eq!(names(), 1);
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    without_rights(&binary, "read-secret", &path);
    // So that the folder can be removed.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_killed_write_cannot_be_recovered_without_rights() {
    let (scratch, binary) = for_everybody();
    let path = scratch.path().join("d/ledger.db");
    // As after a kill: the newest run is in the WAL, and no process has the ledger open.
    let copy = scratch.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.save(&small_run(5), Trusted, &[]).unwrap();
    for name in ["ledger.db", "ledger.db-wal"] {
        fs::copy(path.with_file_name(name), copy.join(name)).unwrap();
    }
    drop(ledger);
    fs::set_permissions(&copy, Permissions::from_mode(0o555)).unwrap();
    without_rights(&binary, "read-unsettled", &copy.join("ledger.db"));
    // A process that may write it finds all three.
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    let ledger = Ledger::open(copy.join("ledger.db")).unwrap();
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 3);
}
