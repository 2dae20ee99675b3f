//! The store in an SQLite file.

mod connection;
mod rows;
mod schema;
mod statements;

use std::path::Path;
use std::time::Duration;

use hashbrown::HashMap;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

#[cfg(feature = "clickhouse")]
pub(super) use rows::add_tags;

use super::piece::{Movable, MovedRows, Pending};
use super::sql::{self, SqlArchive, moving};
use super::{
    Advance, AppliedBatch, Archive, Batch, Key, Result, Settings, Store, StoreError, StoreLimits,
    late_events,
};
use crate::level::Seconds;

use connection::{BUSY_TIMEOUT, failed};
use rows::Ids;
use statements::Statements;

/// An SQLite file that is written.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    address: String,
    settings: Settings,
    most_tags: u64,
    ids: HashMap<Box<str>, i64>,
    running: sql::RunningTime,
}

impl SqliteStore {
    /// Opens the file, and makes it where there is none.
    ///
    /// # Errors
    /// Where it cannot be written, is no store, or is a newer version's.
    pub fn open(path: &Path, new: &Settings, most_tags: u64) -> Result<SqliteStore> {
        let address = format!("sqlite:{}", path.display());
        let (connection, settings) = schema::open(path, &address, new)?;
        Ok(SqliteStore {
            connection,
            address,
            settings,
            most_tags,
            ids: HashMap::new(),
            running: sql::RunningTime::default(),
        })
    }
}

impl Store for SqliteStore {
    fn address(&self) -> &str {
        &self.address
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn known(&mut self, keys: &[Key]) -> Result<Vec<bool>> {
        let found = |connection: &Connection| -> rusqlite::Result<Vec<bool>> {
            let mut statement =
                connection.prepare_cached("SELECT 1 FROM tally_identity WHERE identity = ?1")?;
            keys.iter()
                .map(|key| statement.exists([key.bytes()]))
                .collect()
        };
        found(&self.connection).map_err(|error| failed(&self.address, error))
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>> {
        rows::position(&self.connection, source).map_err(|error| failed(&self.address, error))
    }

    fn is_fresh(&mut self) -> Result<bool> {
        let found = self
            .connection
            .query_row(sql::IS_FRESH, [], |row| row.get(0));
        found.map_err(|error| failed(&self.address, error))
    }

    fn identities(&mut self, after: &[u8], most: usize) -> Result<Vec<Key>> {
        let found = |connection: &Connection| -> rusqlite::Result<Vec<Key>> {
            let mut statement = connection.prepare_cached(
                "SELECT identity FROM tally_identity WHERE identity > ?1 ORDER BY identity LIMIT ?2",
            )?;
            let keys = statement.query_map((after, most as i64), |row| row.get(0).map(Key::of))?;
            keys.collect()
        };
        found(&self.connection).map_err(|error| failed(&self.address, error))
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>> {
        let found = |connection: &Connection| -> rusqlite::Result<Vec<(String, u64)>> {
            let mut statement =
                connection.prepare_cached("SELECT source, position FROM tally_position")?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
            })?;
            rows.collect()
        };
        found(&self.connection).map_err(|error| failed(&self.address, error))
    }

    fn adopt(&mut self, keys: &[Key], positions: &[(String, u64)], more: bool) -> Result<()> {
        let address = self.address.clone();
        self.transact(|connection, _| {
            rows::adopt(connection, keys, positions, more).map_err(|error| failed(&address, error))
        })
    }

    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        let applied = self.write(batch, now);
        if applied.is_err() {
            // Numbers of tags that were not committed.
            self.ids.clear();
        }
        applied
    }

    fn maintain(&mut self, limits: &StoreLimits, now: Seconds, ran: Duration) -> Result<bool> {
        let mut sql = Statements {
            connection: &self.connection,
            address: &self.address,
        };
        let clock = (&mut self.running, ran);
        sql::maintain(&mut sql, &self.settings, limits, now, clock)
    }
}

impl Movable for SqliteStore {
    fn name(&mut self) -> Result<String> {
        moving::name(&mut self.statements())
    }

    fn roll_over(&mut self, now: Seconds) -> Result<()> {
        sql::roll_over(&mut self.statements(), &self.settings, now)
    }

    fn pending(&mut self) -> Result<Option<Pending>> {
        moving::pending(&mut self.statements())
    }

    fn take_out(&mut self, slice: &MovedRows, target: &str) -> Result<bool> {
        moving::take_out(&mut self.statements(), &self.settings, slice, target)
    }

    fn put(&mut self, name: &str, pending: &Pending, now: Seconds) -> Result<()> {
        let marks = &pending.piece.marks;
        sql::roll_to(&mut self.statements(), &self.settings, marks)?;
        let put = self.write_piece(name, pending, now);
        if put.is_err() {
            // Numbers of tags that were not committed.
            self.ids.clear();
        }
        put
    }

    fn remove(&mut self, number: u64) -> Result<()> {
        moving::remove(&mut self.statements(), number)
    }
}

impl SqliteStore {
    fn statements(&self) -> Statements<&Connection, &str> {
        Statements {
            connection: &self.connection,
            address: &self.address,
        }
    }

    /// Runs a closure on the connection.
    #[cfg(feature = "clickhouse")]
    pub(in crate::store) fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        work(&self.connection).map_err(|error| failed(&self.address, error))
    }

    /// Runs a closure in a transaction that takes the write lock at its beginning.
    fn transact<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut Ids<'_>) -> Result<T>,
    ) -> Result<T> {
        let failed = |error| failed(&self.address, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let mut ids = Ids {
            known: &mut self.ids,
            most: self.most_tags,
        };
        let result = work(&transaction, &mut ids)?;
        transaction.commit().map_err(failed)?;
        Ok(result)
    }
}

impl SqliteStore {
    fn write(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        let settings = self.settings.clone();
        self.once(batch, now, |connection, ids| {
            let marks = rows::marks(connection)?;
            let mut others = 0;
            let marks = |level| marks[level as usize];
            for (level, sums) in late_events::levels(&batch.sums, &settings.zone, marks) {
                let (numbers, beyond) = rows::numbers(connection, ids, &sums)?;
                others = others.max(beyond);
                rows::add(connection, level, &settings.bounds, &sums, &numbers)?;
            }
            Ok(AppliedBatch {
                tags: rows::count_tags(connection)?,
                others,
            })
        })
    }

    /// Adds the identities of a batch, and calls `add` in the same transaction, unless the batch was added before.
    pub(in crate::store) fn once(
        &mut self,
        batch: &Batch,
        now: Seconds,
        add: impl FnOnce(&Connection, &mut Ids<'_>) -> rusqlite::Result<AppliedBatch>,
    ) -> Result<AppliedBatch> {
        let address = self.address.clone();
        let failed = |error| failed(&address, error);
        self.transact(|connection, ids| {
            let added = rows::number(connection, sql::RUNNING).map_err(failed)?;
            if !rows::add_key(connection, &batch.key, added).map_err(failed)? {
                // An earlier attempt was committed, and its answer lost.
                return Ok(AppliedBatch {
                    tags: rows::count_tags(connection).map_err(failed)?,
                    others: 0,
                });
            }
            for key in &batch.keys {
                if !rows::add_key(connection, key, added).map_err(failed)? {
                    return Err(StoreError::Conflict);
                }
            }
            for advance in &batch.advances {
                if !rows::step(connection, advance, now).map_err(failed)? {
                    return Err(StoreError::Conflict);
                }
            }
            add(connection, ids).map_err(failed)
        })
    }

    /// Adds a piece from the store of this name, unless it was added before.
    fn write_piece(&mut self, name: &str, pending: &Pending, now: Seconds) -> Result<()> {
        let settings = self.settings.clone();
        let address = self.address.clone();
        self.transact(|connection, ids| {
            let mut write = || {
                let source = sql::moving::position_of(name);
                let (from, to) = (
                    rows::position(connection, &source)?.unwrap_or(0),
                    pending.number,
                );
                if from >= to || !rows::step(connection, &Advance { source, from, to }, now)? {
                    return Ok(());
                }
                let marks = rows::marks(connection)?;
                for (level, sums) in pending.piece.levels(&settings, &marks) {
                    let (numbers, _) = rows::numbers(connection, ids, &sums)?;
                    rows::add(connection, level, &settings.bounds, &sums, &numbers)?;
                }
                Ok(())
            };
            write().map_err(|error| failed(&address, error))
        })
    }
}

/// Opens a file to read.
///
/// # Errors
/// Where there is none, it cannot be read, or is no store.
pub(super) fn open_archive(path: &Path) -> Result<Box<dyn Archive>> {
    let address = format!("sqlite:{}", path.display());
    if !path.exists() {
        return Err(StoreError::refused(format!(
            "there is no store {address}; 'disksmith tally --from …' makes one"
        )));
    }
    let open = |flags| {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // A reader in WAL mode also writes, to the shared-memory file (-shm) beside the database.
    let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE)
        .or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))
        .map_err(|error| failed(&address, error))?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| failed(&address, error))?;
    let settings = schema::settings(&connection, &address)?;
    Ok(Box::new(SqlArchive::new(
        Statements {
            connection,
            address,
        },
        settings,
    )))
}
