//! Statements on a connection to SQLite.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::connection::failed;
use crate::store::sql::{RolledPeriod, Sql};
use crate::store::{Entry, Result};

/// A connection with the address that its errors name.
pub(super) struct Statements<C, A> {
    pub(super) connection: C,
    pub(super) address: A,
}

impl<C: std::borrow::Borrow<Connection>, A: AsRef<str>> Statements<C, A> {
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        work(self.connection.borrow()).map_err(|error| failed(self.address.as_ref(), error))
    }
}

impl<C: std::borrow::Borrow<Connection>, A: AsRef<str>> Sql for Statements<C, A> {
    fn run(&mut self, statement: &str) -> Result<u64> {
        self.with(|connection| connection.execute(statement, []))
            .map(|rows| rows as u64)
    }

    fn numbers(&mut self, statement: &str) -> Result<Vec<Vec<Option<f64>>>> {
        self.with(|connection| {
            let mut statement = connection.prepare(statement)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| {
                (0..columns).map(|column| row.get(column)).collect()
            })?;
            rows.collect()
        })
    }

    fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>> {
        self.with(|connection| {
            let mut statement = connection.prepare(statement)?;
            let columns = statement.column_count();
            let text = |value: ValueRef<'_>| match value {
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            let rows = statement.query_map([], |row| {
                (0..columns)
                    .map(|column| row.get_ref(column).map(text))
                    .collect()
            })?;
            rows.collect()
        })
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        self.with(|connection| {
            let mut statement =
                connection.prepare("SELECT id, name FROM tally_tag ORDER BY name")?;
            let rows = statement.query_map([], |row| {
                Ok(Entry {
                    id: row.get(0)?,
                    name: row.get(1)?,
                })
            })?;
            rows.collect()
        })
    }

    fn begin(&mut self) -> Result<()> {
        self.run("BEGIN IMMEDIATE").map(drop)
    }

    fn rollback(&mut self) {
        // If this fails, SQLite has already rolled back.
        let _ = self.run("ROLLBACK");
    }

    fn begin_snapshot(&mut self) -> Result<()> {
        self.run("BEGIN").map(drop)
    }

    fn size(&mut self) -> Result<u64> {
        self.with(|connection| {
            let of =
                |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok(((of("page_count")? - of("freelist_count")?) * of("page_size")?).cast_unsigned())
        })
    }

    fn for_update(&self) -> &'static str {
        // The transaction holds the only write lock.
        ""
    }

    fn latest(&self, roll: &RolledPeriod) -> String {
        let RolledPeriod {
            table,
            finer,
            start,
            next,
        } = roll;
        // With MAX(start), SQLite takes the other columns from the row that has it.
        format!(
            "UPDATE {table} SET latest = gauge.latest FROM
             (SELECT tag, latest, MAX(start) FROM {finer}
              WHERE start >= {start} AND start < {next} AND latest IS NOT NULL GROUP BY tag) AS gauge
             WHERE {table}.start = {start} AND {table}.tag = gauge.tag"
        )
    }
}
