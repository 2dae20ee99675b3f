//! Conversion of values to and from the ledger's columns: times, words, JSON and ids.

use jiff::Timestamp;
use record::RunId;
use rusqlite::Row;
use serde::de::DeserializeOwned;

/// A time as text that sorts in the order of time.
pub(crate) fn sortable(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A value as JSON text for a column.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Reads a column that holds JSON.
pub(crate) fn json_at<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| misread(column, error))
}

/// Reads a column that holds a word, such as a verdict or a time.
pub(crate) fn word_at<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(text.into()).map_err(|error| misread(column, error))
}

/// The id of a column's text; every text is a valid id.
pub(crate) fn run_id(text: &str) -> RunId {
    let Ok(id) = text.parse();
    id
}

fn misread(column: usize, error: serde_json::Error) -> rusqlite::Error {
    let text = rusqlite::types::Type::Text;
    rusqlite::Error::FromSqlConversionFailure(column, text, Box::new(error))
}
