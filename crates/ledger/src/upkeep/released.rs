//! Tests with a ledger of each schema, as released versions wrote it, in `fixtures/`. A new schema adds its own, which
//! `cargo test -p ledger -- --ignored the_ledger_of_this_schema_is_written_anew` writes.

use jiff::Timestamp;
use record::Verdict::Trusted;
use serde::{Deserialize, Serialize};

use super::*;
use crate::owner::tests::owner;
use crate::recording::simulated::Host;
use crate::schema::MIGRATIONS;
use crate::testing::{Scratch, database_run, finding, imported_run, small_run};
use crate::{LongWork, Owner, OwnerLiveness};

/// Schemas with a ledger in `fixtures/`.
const SCHEMAS: [usize; 4] = [1, 2, 3, MIGRATIONS.len()];

fn fixture(schema: usize) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fixtures");
    folder.join(format!("schema-{schema}.db"))
}

/// A copy of the ledger of a schema.
fn copy(schema: usize) -> Scratch {
    let scratch = Scratch::new();
    let path = fixture(schema);
    let copied = fs::copy(&path, scratch.ledger());
    copied.unwrap_or_else(|error| panic!("{}: {error}; see released.rs", path.display()));
    scratch
}

/// Common beginning of the ids of all versions: ids of the first had four random letters.
fn first_of_id(id: &str) -> String {
    id.chars().take(20).collect()
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TestWork {
    depth: f64,
}

impl LongWork for TestWork {
    const KIND: &'static str = "digging";
    const FORM: u32 = 1;
}

#[test]
fn ledgers_of_every_schema_are_examined_and_copied_as_they_are() {
    for schema in SCHEMAS {
        let scratch = copy(schema);
        let before = fs::read(scratch.ledger()).unwrap();
        let backup = scratch.path().join("copy.db");
        Ledger::back_up(scratch.ledger(), &backup).unwrap();
        for path in [scratch.ledger(), backup] {
            let found = Ledger::examine(path).unwrap();
            assert_eq!(found.schema as usize, schema);
            assert_eq!(found.damage, [""; 0], "{schema}");
            assert_eq!(found.runs, if schema == 1 { 3 } else { 4 });
            assert_eq!(found.marks, u64::from(schema >= 3));
        }
        assert_eq!(fs::read(scratch.ledger()).unwrap(), before, "{schema}");
    }
}

#[test]
fn ledgers_of_every_schema_are_read_written_and_sound_after_it() {
    for schema in SCHEMAS {
        let scratch = copy(schema);
        let mut ledger = Ledger::open(scratch.ledger()).unwrap();
        let read = ledger.load(&first_of_id(small_run(1).id.as_str())).unwrap();
        assert_eq!(read.started, small_run(1).started);
        let run = ledger.load(&first_of_id(small_run(5).id.as_str())).unwrap();
        assert_eq!(run.phases.len(), 7, "{schema}");
        for phase in &run.phases {
            let ops = [&phase.read, &phase.write].into_iter().flatten();
            assert!(ops.map(|flow| flow.latency.count()).sum::<u64>() > 0);
            assert!(!phase.windows.is_empty());
        }
        let conclusion = ledger.conclusion(run.id.as_str()).unwrap();
        assert_eq!(conclusion.findings[0].code, finding().code);
        if schema >= 2 {
            let imported = imported_run(7);
            let kept = ledger.load_kept(&first_of_id(imported.id.as_str()));
            assert!(kept.is_ok(), "{schema}: {:?}", kept.err());
            let dug = ledger.work::<TestWork>("garden").unwrap().unwrap();
            assert_eq!(dug.document, TestWork { depth: 2.5 });
        }
        if schema >= 3 {
            let played = ledger
                .replay("db-1", Timestamp::MIN, Timestamp::MAX)
                .unwrap();
            assert_eq!(played.filter(Result::is_ok).count(), 40, "{schema}");
            assert_eq!(
                ledger.marks(Timestamp::MIN, Timestamp::MAX).unwrap()[0].text,
                "deploy 1.2"
            );
        }
        fill_later(&mut ledger);
        ledger.compact().unwrap();
        drop(ledger);
        let found = Ledger::examine(scratch.ledger()).unwrap();
        assert_eq!(found.schema as usize, MIGRATIONS.len());
        assert_eq!(found.damage, [""; 0], "{schema}");
    }
}

/// Adds and removes rows of every kind.
fn fill_later(ledger: &mut Ledger) {
    ledger.save(&small_run(99), Trusted, &[finding()]).unwrap();
    ledger
        .save_imported(&imported_run(98), Trusted, &[])
        .unwrap();
    ledger
        .remove(&first_of_id(small_run(0).id.as_str()))
        .unwrap();
    let mark = ledger.mark(Timestamp::now(), "db-1", "now").unwrap();
    ledger.remove_mark(mark.number).unwrap();
    record(ledger, Timestamp::now());
}

/// Records a few samples.
fn record(ledger: &mut Ledger, began: Timestamp) {
    let source = record::sample::SampleSource::default();
    let dead = |_: &Owner| OwnerLiveness::Dead;
    let mut recording = ledger.begin_recording(&owner(7), &source, dead).unwrap();
    let mut host = Host::new(2, 1, began);
    let samples: Vec<_> = (0..40).map(|_| host.next()).collect();
    ledger.record(&mut recording, &samples, &[]).unwrap();
}

#[test]
#[ignore = "writes the fixture of the newest schema"]
fn the_ledger_of_this_schema_is_written_anew() {
    let mut ledger = Ledger::open(fixture(MIGRATIONS.len())).unwrap();
    for minute in 0..2 {
        ledger
            .save(&small_run(minute), Trusted, &[finding()])
            .unwrap();
    }
    ledger
        .save(&database_run(5, 0.01), Trusted, &[finding()])
        .unwrap();
    ledger
        .save_imported(&imported_run(7), Trusted, &[])
        .unwrap();
    let alive = |_: &Owner| OwnerLiveness::Alive;
    let claim = ledger.begin_work("garden", &owner(7), &TestWork { depth: 1.5 }, alive);
    ledger
        .finish_work(claim.unwrap(), &TestWork { depth: 2.5 })
        .unwrap();
    let began: Timestamp = "2026-11-21T20:45:12Z".parse().unwrap();
    record(&mut ledger, began);
    ledger.mark(began, "db-1", "deploy 1.2").unwrap();
}
