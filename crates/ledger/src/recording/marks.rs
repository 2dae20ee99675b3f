//! Marks: moments that somebody gave a name, such as a deployment.

use jiff::Timestamp;
use rusqlite::params;

use crate::runs::{sortable, word_at};
use crate::{Error, Ledger, Result};

/// A moment with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number in the ledger.
    pub number: i64,
    /// When.
    pub at: Timestamp,
    /// The host on which it was set.
    pub host: String,
    /// What happened.
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
        let removed =
            self.changed(|change| change.execute("DELETE FROM marks WHERE number = ?1", [number]))?;
        match removed {
            0 => Err(Error::NoSuchMark {
                path: self.path.clone(),
                number,
            }),
            _ => Ok(()),
        }
    }
}
