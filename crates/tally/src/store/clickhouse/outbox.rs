//! The outbox: inserts that ClickHouse has not confirmed, in an SQLite store with the identities of their events.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::{OptionalExtension as _, params};

use crate::event::OTHER_TAG;
use crate::identity::unique_name;
use crate::level::{RollUpLevel, Seconds};
use crate::store::sqlite::{SqliteStore, add_tags};
use crate::store::{AppliedBatch, Batch, Result, Settings, Store as _, sql};
use crate::sums::{Sums, Values};

/// SQLite store with the inserts that ClickHouse has not confirmed.
pub(super) struct Outbox {
    pub(super) store: SqliteStore,
    /// Name of the outbox, by which its inserts differ from those of others.
    pub(super) name: String,
}

/// An insert: rows for one table.
pub(super) struct Insert {
    pub(super) number: i64,
    pub(super) table: String,
    pub(super) rows: Vec<u8>,
}

impl Outbox {
    /// Opens the file, and makes it where there is none.
    pub(super) fn open(path: &Path, new: &Settings, most_tags: u64) -> Result<Outbox> {
        let store = SqliteStore::open(path, new, most_tags)?;
        let name = store.with(|connection| {
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS tally_outbox
                     (number INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, body BLOB NOT NULL)",
            )?;
            connection.execute(
                "INSERT OR IGNORE INTO tally_setting (name, value) VALUES ('outbox', ?1)",
                [unique_name()],
            )?;
            connection.query_row(
                "SELECT value FROM tally_setting WHERE name = 'outbox'",
                [],
                |row| row.get(0),
            )
        })?;
        Ok(Outbox { store, name })
    }

    /// Adds the rows of a batch with its identities, in one transaction.
    pub(super) fn add(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        let settings = self.store.settings().clone();
        self.store.once(batch, now, |connection, ids| {
            // The outbox has the dictionary too, so that it is bounded.
            let (applied, others) = add_tags(connection, ids, &batch.sums)?;
            let mut insert = connection
                .prepare_cached("INSERT INTO tally_outbox (target, body) VALUES (?1, ?2)")?;
            for level in RollUpLevel::ALL {
                let coarse;
                let sums = match level {
                    RollUpLevel::Minute => &batch.sums,
                    _ => {
                        coarse = batch.sums.coarser(level, &settings.zone, 0..Seconds::MAX);
                        &coarse
                    }
                };
                let (rows, buckets) = text(sums, settings.bounds.classes(), &others);
                for (table, rows) in [
                    (sql::table(level), rows),
                    (sql::bucket_table(level), buckets),
                ] {
                    if !rows.is_empty() {
                        insert.execute(params![table, rows.as_bytes()])?;
                    }
                }
            }
            Ok(applied)
        })
    }

    /// The oldest insert that waits.
    pub(super) fn first(&mut self) -> Result<Option<Insert>> {
        self.store.with(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, target, body FROM tally_outbox ORDER BY number LIMIT 1",
                )?
                .query_row([], |row| {
                    Ok(Insert {
                        number: row.get(0)?,
                        table: row.get(1)?,
                        rows: row.get(2)?,
                    })
                })
                .optional()
        })
    }

    /// Removes an insert that was confirmed.
    pub(super) fn remove(&mut self, number: i64) -> Result<()> {
        self.store.with(|connection| {
            connection
                .prepare_cached("DELETE FROM tally_outbox WHERE number = ?1")?
                .execute([number])
                .map(drop)
        })
    }

    /// Number of inserts that wait.
    pub(super) fn waiting(&mut self) -> Result<u64> {
        self.store.with(|connection| {
            connection.query_row("SELECT COUNT(*) FROM tally_outbox", [], |row| {
                row.get::<_, i64>(0).map(i64::cast_unsigned)
            })
        })
    }
}

/// The rows of sums and of buckets, as ClickHouse reads them. `others` are the tags that go to `(other)`.
fn text(sums: &Sums, classes: usize, others: &[bool]) -> (String, String) {
    let names: Vec<String> = sums
        .names()
        .enumerate()
        .map(|(tag, name)| match others.get(tag) {
            Some(true) => OTHER_TAG.to_owned(),
            _ => name.replace('\\', "\\\\"),
        })
        .collect();
    let (mut rows, mut buckets) = (String::new(), String::new());
    for row in sums.rows() {
        let _ = write!(
            rows,
            "{}\t{}\t{:e}",
            row.start, names[row.tag as usize], row.count
        );
        let values = row.values.unwrap_or(&Values::EMPTY);
        let has = row.values.is_some();
        for value in [
            Some(values.sum).filter(|_| has),
            Some(values.min).filter(|_| has),
            Some(values.max).filter(|_| has),
            values.last,
        ] {
            let _ = match value {
                Some(value) => write!(rows, "\t{value:e}"),
                None => write!(rows, "\t\\N"),
            };
        }
        for class in values.classes.iter().take(classes) {
            let _ = write!(rows, "\t{class:e}");
        }
        rows.push('\n');
    }
    for row in sums.buckets() {
        let name = &names[row.tag as usize];
        let _ = writeln!(
            buckets,
            "{}\t{name}\t{}\t{:e}",
            row.start, row.bucket, row.count
        );
    }
    (rows, buckets)
}
