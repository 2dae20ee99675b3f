//! The store in a file of SQLite.

mod archive;
mod maintain;
mod schema;
mod write;

use std::path::Path;
use std::time::Duration;

use hashbrown::HashMap;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior};

use super::{Applied, Batch, Key, Limits, Result, Settings, Store, StoreError};
use crate::level::{Level, Seconds};

pub use archive::SqliteArchive;

/// Time for which a lock of another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tags whose numbers are remembered.
const REMEMBERED: usize = 500_000;

/// A file of SQLite that is written.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    address: String,
    settings: Settings,
    most_tags: u64,
    ids: HashMap<Box<str>, i64>,
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
        let found = |connection: &Connection| {
            connection
                .prepare_cached("SELECT position FROM tally_position WHERE source = ?1")?
                .query_row([source], |row| row.get::<_, i64>(0))
                .optional()
        };
        let found = found(&self.connection).map_err(|error| failed(&self.address, error))?;
        Ok(found.map(i64::cast_unsigned))
    }

    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<Applied> {
        let applied = self.write(batch, now);
        if applied.is_err() {
            // Numbers of tags that were not committed.
            self.ids.clear();
        }
        applied
    }

    fn maintain(&mut self, limits: &Limits, now: Seconds, prune: bool) -> Result<bool> {
        maintain::maintain(self, limits, now, prune)
    }
}

impl SqliteStore {
    /// Runs something in a transaction that has the right to write from its beginning on.
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

/// Numbers of tags that are known, and the bound on tags.
struct Ids<'a> {
    known: &'a mut HashMap<Box<str>, i64>,
    most: u64,
}

/// A setting of the store.
fn setting(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM tally_setting WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Moment up to which a level is rolled up.
fn watermark(connection: &Connection, level: Level) -> rusqlite::Result<Seconds> {
    let text = setting(connection, &super::sql::watermark(level))?;
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// SQLite's error, by what helps.
fn failed(address: &str, error: rusqlite::Error) -> StoreError {
    let refused = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::CannotOpen)
    );
    let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    let text = match full {
        true => format!("{address}: the disk is full"),
        false => format!("{address}: {error}"),
    };
    match refused {
        true => StoreError::refused(text),
        false => StoreError::Unavailable(anyhow::Error::msg(text)),
    }
}
