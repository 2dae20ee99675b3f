//! Reads a store.

use super::rows::{self, at, list, starts};
use super::{Sql, bucket_table, moment, rolled, table};
use crate::level::{RollUpLevel, Seconds};
use crate::store::{Archive, Entry, Result, Settings, StoredBucket, StoredRow};

/// Maximum number of period starts, and of tags, in one statement.
const ROWS_PER_STATEMENT: usize = 500;

/// A database that is read.
pub(in crate::store) struct SqlArchive<C> {
    sql: C,
    settings: Settings,
    reading: bool,
}

impl<C: Sql> SqlArchive<C> {
    /// A store of these settings.
    pub(in crate::store) fn new(sql: C, settings: Settings) -> SqlArchive<C> {
        SqlArchive {
            sql,
            settings,
            reading: false,
        }
    }

    /// Reads a table for some tags, in statements of bounded length.
    ///
    /// The tables are ordered by time, for the writers. One look-up for each period and tag is cheaper than reading the
    /// rows of all tags, unless there are few tags.
    fn read<T>(
        &mut self,
        (table, level): (&str, RollUpLevel),
        tags: &[i64],
        (mut from, to): (Seconds, Seconds),
        read: impl Fn(&mut C, &str) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let zone = &self.settings.zone;
        loop {
            // Each statement begins at an existing period: two events a century apart need two statements.
            let starts = starts(
                &mut self.sql,
                (table, level),
                zone,
                from..to,
                ROWS_PER_STATEMENT,
            )?;
            let Some(last) = starts.last() else {
                return Ok(found);
            };
            from = last + 1;
            for tags in tags.chunks(ROWS_PER_STATEMENT) {
                let (starts, tags) = (list(&starts), list(tags));
                let condition = format!("start IN ({starts}) AND tag IN ({tags})");
                found.append(&mut read(&mut self.sql, &condition)?);
            }
        }
    }
}

impl<C: Sql + Send> Archive for SqlArchive<C> {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn snapshot(&mut self) -> Result<()> {
        self.release();
        self.sql.begin_snapshot()?;
        self.reading = true;
        Ok(())
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.reading) {
            self.sql.rollback();
        }
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        self.sql.entries()
    }

    fn watermark(&mut self, level: RollUpLevel) -> Result<Seconds> {
        rolled(&mut self.sql, level, "")
    }

    fn span(&mut self, level: RollUpLevel) -> Result<Option<(Seconds, Seconds)>> {
        let table = table(level);
        // Two statements, each of which examines one end of the key.
        let first = moment(&mut self.sql, &format!("SELECT MIN(start) FROM {table}"))?;
        let last = moment(&mut self.sql, &format!("SELECT MAX(start) FROM {table}"))?;
        Ok(first.zip(last))
    }

    fn rows(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredRow>> {
        let bounds = self.settings.bounds.clone();
        self.read(
            (&table(level), level),
            tags,
            (from, to),
            |sql, condition| rows::rows(sql, level, &bounds, condition),
        )
    }

    fn buckets(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredBucket>> {
        let table = bucket_table(level);
        self.read((&table, level), tags, (from, to), |sql, condition| {
            rows::buckets(sql, level, condition)
        })
    }

    fn top(
        &mut self,
        level: RollUpLevel,
        from: Seconds,
        to: Seconds,
        most: usize,
    ) -> Result<Vec<(i64, f64)>> {
        let rows = self.sql.numbers(&format!(
            "SELECT tag, SUM(events) AS n FROM {} WHERE start >= {from} AND start < {to} GROUP BY tag
             ORDER BY n DESC, tag LIMIT {most}",
            table(level)
        ))?;
        Ok(rows
            .iter()
            .map(|row| (at(row, 0) as i64, at(row, 1)))
            .collect())
    }
}
