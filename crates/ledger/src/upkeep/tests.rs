use std::os::unix::fs::PermissionsExt as _;

use record::Verdict::Trusted;

use super::*;
use crate::testing::{Scratch, small_run};

/// A ledger with this number of runs, and its folder.
fn ledger_with_runs(runs: i64) -> (Scratch, Ledger) {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    for minute in 0..runs {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    (scratch, ledger)
}

#[test]
fn a_sound_ledger_is_counted_and_not_changed() {
    let (scratch, mut ledger) = ledger_with_runs(3);
    ledger
        .mark("2026-11-21T20:45:12Z".parse().unwrap(), "db-1", "deploy")
        .unwrap();
    drop(ledger);
    let bytes = fs::read(scratch.ledger()).unwrap();
    let found = Ledger::examine(scratch.ledger()).unwrap();
    assert_eq!((found.runs, found.marks, found.recordings), (3, 1, 0));
    assert_eq!(found.damage, [""; 0]);
    assert_eq!(found.size.0, bytes.len() as u64);
    assert_eq!(fs::read(scratch.ledger()).unwrap(), bytes);
    assert_eq!(scratch.names(), ["ledger.db"]);
}

#[test]
fn a_document_that_cannot_be_read_is_named_and_the_others_are_not() {
    let (scratch, ledger) = ledger_with_runs(3);
    let sql = "UPDATE documents SET body = x'00' WHERE run = 2";
    ledger.connection.execute(sql, []).unwrap();
    drop(ledger);
    let found = Ledger::examine(scratch.ledger()).unwrap();
    assert_eq!(found.damage.len(), 1, "{found:?}");
    assert!(found.damage[0].contains("cannot be read"), "{found:?}");
}

#[test]
fn a_row_that_belongs_to_nothing_is_named() {
    let (scratch, ledger) = ledger_with_runs(1);
    let sql = "PRAGMA foreign_keys = off; DELETE FROM runs";
    ledger.connection.execute_batch(sql).unwrap();
    drop(ledger);
    let found = Ledger::examine(scratch.ledger()).unwrap();
    let named = |words: &str| found.damage.iter().any(|line| line.contains(words));
    assert!(
        named("a row of documents belongs to nothing in runs"),
        "{found:?}"
    );
}

#[test]
fn compacting_gives_back_the_room_of_what_was_removed_and_keeps_the_rest() {
    let (scratch, mut ledger) = ledger_with_runs(200);
    let ids: Vec<_> = ledger.list(&Filter::default()).unwrap();
    for run in &ids[..190] {
        ledger.remove(run.id.as_str()).unwrap();
    }
    drop(ledger);
    let free = Ledger::examine(scratch.ledger()).unwrap().free;
    assert!(free.0 > 0);
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    let done = ledger.compact().unwrap();
    assert!(done.before.0 - done.after.0 >= free.0, "{done:?} {free:?}");
    drop(ledger);
    let found = Ledger::examine(scratch.ledger()).unwrap();
    assert_eq!(
        (found.runs, found.free, found.size),
        (10, Bytes(0), done.after)
    );
    assert_eq!(found.damage, [""; 0]);
}

/// Another process keeps writing during the backup.
#[test]
fn a_backup_has_all_that_was_kept_though_the_ledger_is_in_use() {
    let (scratch, mut ledger) = ledger_with_runs(5);
    let copy = scratch.path().join("copy.db");
    let size = Ledger::back_up(scratch.ledger(), &copy).unwrap();
    ledger.save(&small_run(9), Trusted, &[]).unwrap();
    assert_eq!(copy.metadata().unwrap().len(), size.0);
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let back = Ledger::open(&copy).unwrap();
    assert_eq!(back.list(&Filter::default()).unwrap().len(), 5);
    assert_eq!(back.load("last").unwrap(), small_run(4));
}

#[test]
fn a_backup_replaces_nothing_and_leaves_nothing_where_it_fails() {
    let (scratch, ledger) = ledger_with_runs(1);
    let copy = scratch.path().join("copy.db");
    fs::write(&copy, "mine").unwrap();
    let error = Ledger::back_up(scratch.ledger(), &copy).unwrap_err();
    assert!(matches!(error, Error::BackupExists { .. }), "{error}");
    assert_eq!(fs::read(&copy).unwrap(), b"mine");
    let nowhere = scratch.path().join("none/copy.db");
    let error = Ledger::back_up(scratch.ledger(), &nowhere).unwrap_err();
    assert!(matches!(error, Error::Backup { .. }), "{error}");
    let sql = "UPDATE documents SET body = x'00'";
    ledger.connection.execute(sql, []).unwrap();
    let error = Ledger::back_up(scratch.ledger(), &scratch.path().join("new")).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    drop(ledger);
    assert_eq!(scratch.names(), ["copy.db", "ledger.db"]);
}

#[test]
fn a_missing_ledger_is_reported_so() {
    let scratch = Scratch::new();
    for error in [
        Ledger::examine(scratch.ledger()).unwrap_err(),
        Ledger::back_up(scratch.ledger(), &scratch.path().join("copy")).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
    assert_eq!(scratch.names(), [""; 0]);
}
