//! Reading a store.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};

use super::{PATIENCE, failed, schema, watermark};
use crate::classes::MOST_CLASSES;
use crate::level::{Level, Seconds};
use crate::store::{Archive, Entry, Result, Settings, StoreError, StoredBucket, StoredRow, sql};
use crate::sums::Values;

/// Starts of periods in one statement, and tags.
const AT_ONCE: usize = 500;

/// A file of SQLite that is read.
#[derive(Debug)]
pub struct SqliteArchive {
    connection: Connection,
    address: String,
    settings: Settings,
}

impl SqliteArchive {
    /// Opens the file.
    ///
    /// # Errors
    /// Where there is none, it cannot be read, or is no store.
    pub fn open(path: &Path) -> Result<SqliteArchive> {
        let address = format!("sqlite:{}", path.display());
        if !path.exists() {
            return Err(StoreError::refused(format!(
                "there is no store {address}; 'disksmith tally --from …' makes one"
            )));
        }
        // A reader of a WAL file also writes: to the file of shared memory beside it.
        let open = |flags| {
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE)
            .or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|error| failed(&address, error))?;
        connection
            .pragma_update(None, "query_only", true)
            .map_err(|error| failed(&address, error))?;
        let settings = schema::settings(&connection, &address)?;
        Ok(SqliteArchive {
            connection,
            address,
            settings,
        })
    }

    fn query<T>(
        &self,
        statement: &str,
        parameters: impl rusqlite::Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run = || {
            let mut statement = self.connection.prepare_cached(statement)?;
            let rows = statement.query_map(parameters, row)?;
            rows.collect()
        };
        let rows: rusqlite::Result<Vec<T>> = run();
        rows.map_err(|error| failed(&self.address, error))
    }

    /// Rows of a table for some tags, in pieces that a statement may have.
    fn select<T>(
        &self,
        level: Level,
        (table, columns): (String, String),
        tags: &[i64],
        (from, to): (Seconds, Seconds),
        mut row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        // The tables are in the order of time, for the writers. One look-up for each period and tag is cheaper than
        // the rows of all tags, unless there are few tags.
        for starts in starts(&self.settings, level, from, to).chunks(AT_ONCE) {
            for tags in tags.chunks(AT_ONCE) {
                let statement = format!(
                    "SELECT tag, start, {columns} FROM {table} WHERE start IN ({}) AND tag IN ({})",
                    list(starts),
                    list(tags)
                );
                let mut run = || {
                    let mut statement = self.connection.prepare(&statement)?;
                    let rows = statement.query_map([], &mut row)?;
                    rows.collect()
                };
                let rows: rusqlite::Result<Vec<T>> = run();
                found.append(&mut rows.map_err(|error| failed(&self.address, error))?);
            }
        }
        Ok(found)
    }
}

/// Starts of a level's periods in a range.
fn starts(settings: &Settings, level: Level, from: Seconds, to: Seconds) -> Vec<Seconds> {
    let zone = &settings.zone;
    let first = zone.start(level, from);
    let first = if first < from {
        zone.next(level, from)
    } else {
        first
    };
    std::iter::successors(Some(first), |start| Some(zone.next(level, *start)))
        .take_while(|start| *start < to)
        .collect()
}

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

impl Archive for SqliteArchive {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn snapshot(&mut self) -> Result<()> {
        let end = match self.connection.is_autocommit() {
            true => "",
            false => "COMMIT;",
        };
        self.connection
            .execute_batch(&format!("{end} BEGIN"))
            .map_err(|error| failed(&self.address, error))
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        self.query("SELECT id, name FROM tally_tag ORDER BY name", [], |row| {
            Ok(Entry {
                id: row.get(0)?,
                name: row.get(1)?,
            })
        })
    }

    fn watermark(&mut self, level: Level) -> Result<Seconds> {
        watermark(&self.connection, level).map_err(|error| failed(&self.address, error))
    }

    fn span(&mut self, level: Level) -> Result<Option<(Seconds, Seconds)>> {
        let table = sql::table(level);
        // Two searches of the key; with both in one SELECT, SQLite reads it all.
        let statement =
            format!("SELECT (SELECT MIN(start) FROM {table}), (SELECT MAX(start) FROM {table})");
        let rows = self.query(&statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows
            .first()
            .and_then(|(first, last): &(Option<_>, Option<_>)| (*first).zip(*last)))
    }

    fn rows(
        &mut self,
        level: Level,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredRow>> {
        let columns = format!(
            "events, {}",
            sql::value_columns(&self.settings.bounds).join(", ")
        );
        let classes = self.settings.bounds.classes();
        self.select(
            level,
            (sql::table(level), columns),
            tags,
            (from, to),
            |row| {
                let total: Option<f64> = row.get(3)?;
                let values = match total {
                    None => None,
                    Some(sum) => {
                        let mut values = Values {
                            sum,
                            min: row.get(4)?,
                            max: row.get(5)?,
                            last: row.get(6)?,
                            classes: [0.0; MOST_CLASSES],
                        };
                        for (class, place) in values.classes.iter_mut().take(classes).enumerate() {
                            *place = row.get::<_, Option<f64>>(7 + class)?.unwrap_or(0.0);
                        }
                        Some(values)
                    }
                };
                Ok(StoredRow {
                    tag: row.get(0)?,
                    start: row.get(1)?,
                    count: row.get(2)?,
                    values,
                })
            },
        )
    }

    fn buckets(
        &mut self,
        level: Level,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredBucket>> {
        let columns = "bucket, events".to_owned();
        self.select(
            level,
            (sql::bucket_table(level), columns),
            tags,
            (from, to),
            |row| {
                Ok(StoredBucket {
                    tag: row.get(0)?,
                    start: row.get(1)?,
                    bucket: row.get(2)?,
                    count: row.get(3)?,
                })
            },
        )
    }

    fn top(
        &mut self,
        level: Level,
        from: Seconds,
        to: Seconds,
        most: usize,
    ) -> Result<Vec<(i64, f64)>> {
        let statement = format!(
            "SELECT tag, SUM(events) AS n FROM {} WHERE start >= ?1 AND start < ?2 GROUP BY tag
             ORDER BY n DESC, tag LIMIT ?3",
            sql::table(level)
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.query(&statement, [from, to, most], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }
}
