use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::*;
use crate::Filter;
use crate::testing::{Scratch, small_run};
use record::Verdict::Trusted;

/// A ledger with two runs, closed; and its bytes.
fn closed_ledger() -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    for minute in 0..2 {
        ledger.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    drop(ledger);
    let bytes = fs::read(scratch.ledger()).unwrap();
    (scratch, bytes)
}

/// Replaces the ledger by `bytes`, opens it, and asserts that it is refused and that neither the file nor its folder
/// changed.
fn refused(scratch: &Scratch, bytes: &[u8]) -> Error {
    let path = scratch.ledger();
    fs::write(&path, bytes).unwrap();
    let before = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(before)
        .unwrap();
    let error = Ledger::open(&path).map(|_| ()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), bytes, "{error}");
    assert_eq!(
        path.metadata().unwrap().modified().unwrap(),
        before,
        "{error}"
    );
    assert_eq!(scratch.names(), ["ledger.db"], "{error}");
    let text = error.to_string();
    assert!(
        text.contains("ledger.db") && text.ends_with(char::is_alphanumeric),
        "{text}"
    );
    error
}

#[test]
fn a_closed_ledger_is_one_file_in_wal_mode() {
    let (scratch, bytes) = closed_ledger();
    assert_eq!(scratch.names(), ["ledger.db"]);
    assert_eq!(bytes[18..20], [2, 2]);
    assert_eq!(&bytes[68..72], b"dsmt");
}

#[test]
fn a_file_of_another_format_is_refused_and_not_touched() {
    let (scratch, good) = closed_ledger();
    let mut torn = good.clone();
    torn[..512].fill(0);
    for bytes in [b"hello".to_vec(), vec![0; 8192], b"x".repeat(100_000), torn] {
        let error = refused(&scratch, &bytes);
        assert!(matches!(error, Error::NotALedger { .. }), "{error}");
    }
}

#[test]
fn a_truncated_ledger_is_refused_and_not_touched() {
    let (scratch, good) = closed_ledger();
    for length in [
        good.len() - 1,
        good.len() - 4096,
        good.len() / 2,
        4096,
        4095,
        600,
        100,
        20,
    ] {
        let error = refused(&scratch, &good[..length]);
        assert!(
            matches!(error, Error::Damaged { .. } | Error::NotALedger { .. }),
            "{length}: {error}"
        );
    }
}

#[test]
fn a_damaged_schema_or_list_is_refused_and_not_touched() {
    let (scratch, good) = closed_ledger();
    // The first page after its header holds the schema; the second is the root of `runs`.
    for range in [100..1000, 4000..4096, 4096..4200, 4096 + 3900..8192] {
        let mut damaged = good.clone();
        damaged[range.clone()].fill(0xa5);
        let error = refused(&scratch, &damaged);
        assert!(matches!(error, Error::Damaged { .. }), "{range:?}: {error}");
    }
}

#[test]
fn another_programs_file_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    for (id, sql) in [
        (0, "CREATE TABLE t (a)"),
        (0, "PRAGMA user_version = 1"),
        (0x0f05_5112, "PRAGMA application_id = 0x0f055112"),
    ] {
        let other = scratch.path().join("other");
        Connection::open(&other)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let bytes = fs::read(&other).unwrap();
        fs::remove_file(&other).unwrap();
        match refused(&scratch, &bytes) {
            Error::Foreign { application_id, .. } => assert_eq!(application_id, id),
            error => panic!("{sql}: {error}"),
        }
    }
}

#[test]
fn a_newer_ledger_is_refused_and_not_touched() {
    let (scratch, _) = closed_ledger();
    let mut newer = MIGRATIONS.to_vec();
    newer.push("CREATE TABLE places (word TEXT)");
    drop(Ledger::open_with(&scratch.ledger(), &newer).unwrap());
    let bytes = fs::read(scratch.ledger()).unwrap();
    match refused(&scratch, &bytes) {
        Error::Newer { found, known, .. } => {
            let steps = MIGRATIONS.len() as u32;
            assert_eq!((found, known), (steps + 1, steps));
        }
        error => panic!("{error}"),
    }
}

/// The newer version is at work, and its number is only in the WAL yet.
#[test]
fn a_newer_ledger_is_refused_while_its_number_is_in_the_wal() {
    let (scratch, before) = closed_ledger();
    let newer = Connection::open(scratch.ledger()).unwrap();
    let version = MIGRATIONS.len() as u32 + 1;
    newer.pragma_update(None, "user_version", version).unwrap();
    // A copy of the files, which no process has open, as after a kill.
    let other = Scratch::new();
    for suffix in ["", "-wal"] {
        fs::copy(
            scratch.path().join(format!("ledger.db{suffix}")),
            other.path().join(format!("ledger.db{suffix}")),
        )
        .unwrap();
    }
    for place in [&scratch, &other] {
        let error = Ledger::open(place.ledger()).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Newer { .. }), "{error}");
        assert_eq!(fs::read(place.ledger()).unwrap(), before);
    }
    let left = Connection::open(other.ledger()).unwrap();
    assert_eq!(crate::schema::Header::read(&left).unwrap().version, version);
}

#[test]
fn an_older_ledger_is_brought_up_to_date_with_its_runs() {
    let (scratch, _) = closed_ledger();
    let mut newer = MIGRATIONS.to_vec();
    newer.push("ALTER TABLE runs ADD COLUMN label TEXT");
    let ledger = Ledger::open_with(&scratch.ledger(), &newer).unwrap();
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 2);
    assert_eq!(ledger.load("last").unwrap(), small_run(1));
    // The number is in the file itself while the ledger is still open.
    assert_eq!(
        usize::from(fs::read(scratch.ledger()).unwrap()[63]),
        newer.len()
    );
}

#[test]
fn a_ledger_of_the_first_schema_keeps_its_runs_and_holds_work_after() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct TestWork(u32);
    impl crate::LongWork for TestWork {
        const KIND: &'static str = "digging";
        const FORM: u32 = 1;
    }
    let scratch = Scratch::new();
    let mut old = Ledger::open_with(&scratch.ledger(), &MIGRATIONS[..1]).unwrap();
    for minute in 0..3 {
        old.save(&small_run(minute), Trusted, &[]).unwrap();
    }
    drop(old);
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 3);
    assert_eq!(ledger.load("last").unwrap(), small_run(2));
    let owner = crate::owner::tests::owner(7);
    ledger
        .begin_work("garden", &owner, &TestWork(1), |_| {
            crate::OwnerLiveness::Dead
        })
        .unwrap();
    drop(ledger);
    let ledger = Ledger::open(scratch.ledger()).unwrap();
    let work = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(work.document, TestWork(1));
}

#[test]
fn missing_folders_are_made_and_an_empty_file_becomes_a_ledger() {
    let scratch = Scratch::new();
    let odd = std::ffi::OsStr::from_bytes(b"a b/%41?x#\xff/ledger.db");
    let path = scratch.path().join(odd);
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.save(&small_run(0), Trusted, &[]).unwrap();
    drop(ledger);
    assert!(path.metadata().unwrap().len() > 0);
    assert_eq!(
        Ledger::open(&path).unwrap().load("last").unwrap(),
        small_run(0)
    );

    fs::write(scratch.ledger(), "").unwrap();
    assert!(Ledger::open(scratch.ledger()).unwrap().is_writable());
}

#[test]
fn a_symbolic_link_leads_to_the_ledger() {
    let (scratch, _) = closed_ledger();
    let link = scratch.path().join("link");
    symlink("ledger.db", &link).unwrap();
    let ledger = Ledger::open(&link).unwrap();
    assert_eq!(ledger.list(&Filter::default()).unwrap().len(), 2);
    assert_eq!(ledger.path().file_name().unwrap(), "ledger.db");
}

#[test]
fn a_folder_or_a_device_is_not_a_ledger() {
    let scratch = Scratch::new();
    for path in [scratch.path(), Path::new("/dev/null")] {
        let error = Ledger::open(path).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    }
    let below_a_file = Path::new("/dev/null/ledger.db");
    let error = Ledger::open(below_a_file).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[test]
fn a_name_that_sqlite_gives_a_meaning_is_a_file_like_any_other() {
    let scratch = Scratch::new();
    for name in [":memory:", "file:x?mode=memory"] {
        let path = scratch.path().join(name);
        drop(Ledger::open(&path).unwrap());
        assert!(path.metadata().unwrap().len() > 0, "{name}");
    }
}

/// Reads the ledger as lists and searches do; `Some` if one of them finds it damaged.
fn damage_to_readers(path: &Path) -> Option<Error> {
    let read = |ledger: &Ledger| -> Result<()> {
        for run in ledger.list(&Filter::default())? {
            for outcome in [
                ledger.load_kept(run.id.as_str()).map(drop),
                ledger.conclusion(run.id.as_str()).map(drop),
            ] {
                match outcome {
                    // Concerns one run.
                    Err(Error::UnreadableRun { .. }) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        ledger.marks(jiff::Timestamp::MIN, jiff::Timestamp::MAX)?;
        ledger.recordings()?;
        ledger.list_work(None)?;
        Ok(())
    };
    Ledger::open(path).and_then(|ledger| read(&ledger)).err()
}

/// A writer checks at least what a reader checks: no table of a ledger that cannot be read grows.
#[test]
fn a_ledger_that_is_too_damaged_to_read_is_not_written_either() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::open(scratch.ledger()).unwrap();
    for minute in 0..40 {
        let findings = vec![crate::testing::finding(); 20];
        ledger.save(&small_run(minute), Trusted, &findings).unwrap();
        let at = jiff::Timestamp::now();
        ledger
            .mark(at, "db-1", &format!("deploy {minute}"))
            .unwrap();
    }
    drop(ledger);
    let good = fs::read(scratch.ledger()).unwrap();
    let mut random = crate::testing::Random::new(17);
    let (mut damaged, mut refused) = (0, 0);
    for round in 0..100 {
        let mut bytes = good.clone();
        // The head of a page, where its cells are found, or anywhere.
        let page = random.bits() as usize % (good.len() / 4096);
        let within = match round % 2 {
            0 => 0,
            _ => random.bits() as usize % 4096,
        };
        let from = (page * 4096 + within).max(100);
        let to = (from + 1 + random.bits() as usize % 64).min(bytes.len());
        bytes[from..to]
            .iter_mut()
            .for_each(|byte| *byte = random.bits() as u8);
        fs::write(scratch.ledger(), &bytes).unwrap();
        let Some(error) = damage_to_readers(&scratch.ledger()) else {
            continue;
        };
        damaged += 1;
        let before = fs::read(scratch.ledger()).unwrap();
        let at = jiff::Timestamp::now();
        let marked =
            Ledger::open(scratch.ledger()).and_then(|mut ledger| ledger.mark(at, "db-1", "after"));
        let saved = Ledger::open(scratch.ledger())
            .and_then(|mut ledger| ledger.save(&small_run(99), Trusted, &[]));
        assert!(
            marked.is_err() && saved.is_err(),
            "round {round}, bytes {from} to {to}: written, though {error}"
        );
        assert!(fs::read(scratch.ledger()).unwrap() == before);
        refused += 1;
    }
    assert!(damaged > 10 && damaged == refused, "{damaged}, {refused}");
}
