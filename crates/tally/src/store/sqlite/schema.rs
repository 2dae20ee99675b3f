//! Tables of a store in SQLite.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::connection::{BUSY_TIMEOUT, failed, setting};
use crate::level::RollUpLevel;
use crate::store::{Result, Settings, StoreError, sql};

/// Opens a file to write, creates the tables if there are none, and reads the settings with which it was created.
pub(super) fn open(path: &Path, address: &str, new: &Settings) -> Result<(Connection, Settings)> {
    let cannot = |error: std::io::Error| {
        StoreError::refused(format!("{address} cannot be written: {error}"))
    };
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(cannot)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    drop(file.map_err(cannot)?);
    let failed = |error| failed(address, error);
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    prepare(&mut connection, address, new).map(|settings| (connection, settings))
}

fn prepare(connection: &mut Connection, address: &str, new: &Settings) -> Result<Settings> {
    let failed = |error| failed(address, error);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Commits are durable (synchronous=FULL), since what is committed is acknowledged.
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;",
        )
        .map_err(failed)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let is_new = !has_tables(&transaction).map_err(failed)?;
    if is_new {
        let tables: i64 = transaction
            .query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(failed)?;
        if tables > 0 {
            return Err(StoreError::refused(format!(
                "{address} is another program's database"
            )));
        }
        transaction.execute_batch(&tables_of(new)).map_err(failed)?;
        for (name, value) in sql::new_settings(new) {
            let insert = "INSERT INTO tally_setting (name, value) VALUES (?1, ?2)";
            transaction.execute(insert, [name, value]).map_err(failed)?;
        }
    }
    // A table that was added later, without a new schema number.
    transaction
        .execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {}",
            sql::moving::MOVING_TABLE
        ))
        .map_err(failed)?;
    transaction.commit().map_err(failed)?;
    settings(connection, address)
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE name = 'tally_setting'")?
        .exists([])
}

/// Settings with which a store was made.
pub(super) fn settings(connection: &Connection, address: &str) -> Result<Settings> {
    let failed = |error| failed(address, error);
    if !has_tables(connection).map_err(failed)? {
        return Err(StoreError::refused(format!(
            "{address} is no store of tally"
        )));
    }
    Settings::read(address, |name| setting(connection, name).map_err(failed))
}

fn tables_of(new: &Settings) -> String {
    let mut text = String::from(
        "CREATE TABLE tally_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
         CREATE TABLE tally_tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
         CREATE TABLE tally_identity (identity BLOB PRIMARY KEY, added INTEGER NOT NULL) WITHOUT ROWID;
         CREATE INDEX tally_identity_added ON tally_identity (added);
         CREATE TABLE tally_position (source TEXT PRIMARY KEY, position INTEGER NOT NULL, moved INTEGER NOT NULL)
             WITHOUT ROWID;",
    );
    let values: String = sql::value_columns(&new.bounds)
        .iter()
        .map(|column| format!(", {column} REAL"))
        .collect();
    for level in RollUpLevel::ALL {
        let (table, buckets) = (sql::table(level), sql::bucket_table(level));
        text.push_str(&format!(
            "CREATE TABLE {table} (start INTEGER NOT NULL, tag INTEGER NOT NULL, events REAL NOT NULL{values},
                 PRIMARY KEY (start, tag)) WITHOUT ROWID;
             CREATE TABLE {buckets} (start INTEGER NOT NULL, tag INTEGER NOT NULL, bucket INTEGER NOT NULL,
                 events REAL NOT NULL, PRIMARY KEY (start, tag, bucket)) WITHOUT ROWID;"
        ));
    }
    text
}
