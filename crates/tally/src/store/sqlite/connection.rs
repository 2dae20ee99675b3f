//! Connections to an SQLite file.

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _};

use crate::store::StoreError;

/// Timeout of a wait for another process's lock.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A setting of the store.
pub(super) fn setting(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM tally_setting WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Converts an error of SQLite by its remedy: a retry, or none.
pub(super) fn failed(address: &str, error: rusqlite::Error) -> StoreError {
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
