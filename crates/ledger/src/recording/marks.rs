//! Marks: named moments that a user set, such as a deployment.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use rusqlite::params;

use crate::columns::{sortable, word_at};
use crate::place::side_file;
use crate::{Error, Ledger, Result};

/// A moment with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the mark in the ledger.
    pub number: i64,
    /// Time of the mark.
    pub at: Timestamp,
    /// The host on which it was set.
    pub host: String,
    /// Name of the moment.
    pub text: String,
}

impl Ledger {
    /// Marks a moment.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn mark(&mut self, at: Timestamp, host: &str, text: &str) -> Result<Mark> {
        let number = self.changed(|change| {
            change.execute(
                "INSERT INTO marks (at, host, text) VALUES (?1, ?2, ?3)",
                params![sortable(at), host, text],
            )?;
            Ok(change.last_insert_rowid())
        })?;
        Ok(Mark {
            number,
            at,
            host: host.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The marks from one moment to another, both included, in order.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn marks(&self, from: Timestamp, to: Timestamp) -> Result<Vec<Mark>> {
        let read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT number, at, host, text FROM marks WHERE at BETWEEN ?1 AND ?2
                 ORDER BY at, number",
            )?;
            let rows = statement.query_map(params![sortable(from), sortable(to)], |row| {
                Ok(Mark {
                    number: row.get(0)?,
                    at: word_at(row, 1)?,
                    host: row.get(2)?,
                    text: row.get(3)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<Mark>>>()
        };
        read().map_err(|error| self.explain(error))
    }

    /// Removes a mark.
    ///
    /// # Errors
    /// When the ledger cannot be written, or there is no such mark.
    pub fn remove_mark(&mut self, number: i64) -> Result<()> {
        match self.remove_numbered("marks", number)? {
            true => Ok(()),
            false => Err(Error::NoSuchMark {
                path: self.path.clone(),
                number,
            }),
        }
    }

    /// Removes the row with a number from `table`; false if there is none. The row is read first, so that a missing row
    /// is reported as missing in an absent or read-only ledger too.
    pub(super) fn remove_numbered(&mut self, table: &str, number: i64) -> Result<bool> {
        let of_number = format!("FROM {table} WHERE number = ?1");
        let is_there: bool = self
            .connection
            .query_row(
                &format!("SELECT EXISTS (SELECT 1 {of_number})"),
                [number],
                |row| row.get(0),
            )
            .map_err(|error| self.explain(error))?;
        Ok(is_there
            && self.changed(|change| change.execute(&format!("DELETE {of_number}"), [number]))? > 0)
    }
}

/// Length and last change of a file; `None` for one that does not exist.
type FileStamp = Option<(u64, SystemTime)>;

/// Polls for marks in a ledger that other processes write. The ledger is opened only if its file has changed, for
/// reading only, and closed again.
#[derive(Debug)]
pub struct MarkReader {
    path: PathBuf,
    /// State of the ledger's file, and of the side file with changes that are not yet in it.
    seen: Option<[FileStamp; 2]>,
}

impl MarkReader {
    /// A reader of the ledger at `path`, which need not exist.
    pub fn new(path: PathBuf) -> MarkReader {
        MarkReader { path, seen: None }
    }

    /// Marks from a moment on, in order; `None` if the ledger has not changed since the last poll.
    ///
    /// # Errors
    /// When the ledger cannot be read. The next poll tries again; if the file itself is the reason, only after it has
    /// changed.
    pub fn poll(&mut self, from: Timestamp) -> Result<Option<Vec<Mark>>> {
        // SQLite puts its files next to the one that a symbolic link leads to, which may change too.
        let real = self.path.canonicalize();
        let real = real.as_deref().unwrap_or(&self.path);
        // Taken before the ledger is read, so that a change during the read is seen by the next poll.
        let now = [stamp(real), stamp(&side_file(real, "-wal"))];
        if self.seen == Some(now) {
            return Ok(None);
        }
        let read = Ledger::open_to_read(&self.path).and_then(|ledger| match ledger {
            Some(ledger) => ledger.marks(from, Timestamp::MAX),
            None => Ok(Vec::new()),
        });
        let is_settled = read.as_ref().err().is_none_or(is_permanent);
        self.seen = is_settled.then_some(now);
        read.map(Some)
    }
}

/// True if an error recurs for as long as the file is unchanged.
fn is_permanent(error: &Error) -> bool {
    matches!(
        error,
        Error::NotALedger { .. }
            | Error::Foreign { .. }
            | Error::Newer { .. }
            | Error::Older { .. }
            | Error::Damaged { .. }
    )
}

fn stamp(path: &Path) -> FileStamp {
    let facts = path.metadata().ok()?;
    Some((facts.len(), facts.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_where_the_ledger_has_changed_and_none_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut reader = MarkReader::new(path.clone());
        let from = Timestamp::from_second(100).unwrap();
        let is_empty = || folder.path().read_dir().unwrap().next().is_none();
        assert_eq!(reader.poll(from).unwrap(), Some(Vec::new()));
        assert_eq!(reader.poll(from).unwrap(), None);
        assert!(is_empty());
        let mut ledger = Ledger::open(&path).unwrap();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        ledger.mark(at(99), "db-1", "too old").unwrap();
        let first = ledger.mark(at(100), "db-1", "deploy").unwrap();
        // The writer still has the ledger open: its changes are still in the WAL.
        assert_eq!(reader.poll(from).unwrap(), Some(vec![first.clone()]));
        assert_eq!(reader.poll(from).unwrap(), None);
        let second = ledger.mark(at(500), "db-2", "restart").unwrap();
        assert_eq!(
            reader.poll(from).unwrap(),
            Some(vec![first.clone(), second])
        );
        ledger.remove_mark(first.number).unwrap();
        drop(ledger);
        assert_eq!(reader.poll(from).unwrap().map(|marks| marks.len()), Some(1));
        assert_eq!(reader.poll(from).unwrap(), None);
    }

    #[test]
    fn a_mark_of_who_has_the_ledger_open_is_seen_through_a_symbolic_link() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let link = folder.path().join("ledger.db");
        std::os::unix::fs::symlink(data.join("real.db"), &link).unwrap();
        let mut reader = MarkReader::new(link);
        assert_eq!(reader.poll(Timestamp::MIN).unwrap(), Some(Vec::new()));
        let mut recorder = Ledger::open(data.join("real.db")).unwrap();
        let at = Timestamp::from_second(100).unwrap();
        recorder.mark(at, "db-1", "first").unwrap();
        let mut seen = || {
            let marks = reader.poll(Timestamp::MIN).unwrap();
            marks.map(|marks| marks.len())
        };
        assert_eq!((seen(), seen()), (Some(1), None));
        let mut other = Ledger::open(data.join("real.db")).unwrap();
        other.mark(at, "db-1", "second").unwrap();
        drop(other);
        assert_eq!((seen(), seen()), (Some(2), None));
    }

    #[test]
    fn the_last_reader_leaves_no_file_alongside_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let copy = folder.path().join("copy.db");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger
            .mark(Timestamp::UNIX_EPOCH, "db-1", "deploy")
            .unwrap();
        // As after a killed writer: its changes are in the WAL.
        for suffix in ["", "-wal"] {
            std::fs::copy(side_file(&path, suffix), side_file(&copy, suffix)).unwrap();
        }
        let mut reader = MarkReader::new(copy.clone());
        let marks = reader.poll(Timestamp::MIN).unwrap();
        assert_eq!(marks.map(|marks| marks.len()), Some(1));
        for suffix in ["-wal", "-shm"] {
            assert!(!side_file(&copy, suffix).exists(), "{suffix}");
        }
        // The writer that still runs is not disturbed.
        MarkReader::new(path.clone()).poll(Timestamp::MIN).unwrap();
        assert!(side_file(&path, "-wal").exists());
        ledger.mark(Timestamp::UNIX_EPOCH, "db-1", "again").unwrap();
        drop(ledger);
        let marks = reader.poll(Timestamp::MIN).unwrap();
        assert_eq!(marks.map(|marks| marks.len()), Some(1));
    }

    #[test]
    fn a_file_that_is_no_ledger_is_an_error_until_it_changes_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        std::fs::write(&path, "not a ledger").unwrap();
        let mut reader = MarkReader::new(path.clone());
        assert!(reader.poll(Timestamp::MIN).is_err());
        assert_eq!(reader.poll(Timestamp::MIN).unwrap(), None);
        assert_eq!(std::fs::read(&path).unwrap(), b"not a ledger");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        std::fs::write(&path, "not a ledger either").unwrap();
        assert!(reader.poll(Timestamp::MIN).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(reader.poll(Timestamp::MIN).unwrap(), Some(Vec::new()));
    }
}
