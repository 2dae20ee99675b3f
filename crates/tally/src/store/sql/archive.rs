//! Reading a store.

use super::{Sql, bucket_table, moment, rolled, table, value_columns};
use crate::classes::MOST_CLASSES;
use crate::level::{Level, Seconds};
use crate::store::{Archive, Entry, Result, Settings, StoredBucket, StoredRow};
use crate::sums::Values;

/// Starts of periods in one statement, and tags.
const AT_ONCE: usize = 500;

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

    /// Rows of a table for some tags, in pieces that a statement may have.
    ///
    /// The tables are in the order of time, for the writers. One look-up for each period and tag is cheaper than the rows
    /// of all tags, unless there are few tags.
    fn select(
        &mut self,
        level: Level,
        (table, columns): (String, String),
        tags: &[i64],
        (from, to): (Seconds, Seconds),
    ) -> Result<Vec<Vec<Option<f64>>>> {
        let (mut found, mut from) = (Vec::new(), from);
        // Each piece begins where there is a period: of two events with a century between them, two are looked up.
        while let Some(first) = self.first_start(&table, from, to)? {
            let starts: Vec<Seconds> = std::iter::successors(Some(first), |start| {
                Some(self.settings.zone.next(level, *start))
            })
            .take_while(|start| *start < to)
            .take(AT_ONCE)
            .collect();
            for tags in tags.chunks(AT_ONCE) {
                found.append(&mut self.sql.numbers(&format!(
                    "SELECT tag, start, {columns} FROM {table} WHERE start IN ({}) AND tag IN ({})",
                    list(&starts),
                    list(tags)
                ))?);
            }
            from = starts.last().map_or(to, |last| last + 1);
        }
        Ok(found)
    }

    /// The first start of a period in a table that is in a range.
    fn first_start(&mut self, table: &str, from: Seconds, to: Seconds) -> Result<Option<Seconds>> {
        moment(
            &mut self.sql,
            &format!("SELECT MIN(start) FROM {table} WHERE start >= {from} AND start < {to}"),
        )
    }
}

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

/// A number of a row; of NULL, zero.
fn at(row: &[Option<f64>], place: usize) -> f64 {
    row.get(place).copied().flatten().unwrap_or(0.0)
}

fn values(row: &[Option<f64>], classes: usize) -> Option<Values> {
    let sum = row.get(3).copied().flatten()?;
    let mut values = Values {
        sum,
        min: at(row, 4),
        max: at(row, 5),
        last: row.get(6).copied().flatten(),
        classes: [0.0; MOST_CLASSES],
    };
    for (class, place) in values.classes.iter_mut().take(classes).enumerate() {
        *place = at(row, 7 + class);
    }
    Some(values)
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

    fn watermark(&mut self, level: Level) -> Result<Seconds> {
        rolled(&mut self.sql, level, "")
    }

    fn span(&mut self, level: Level) -> Result<Option<(Seconds, Seconds)>> {
        let table = table(level);
        // Two statements, each of which looks at one end of the key.
        let first = moment(&mut self.sql, &format!("SELECT MIN(start) FROM {table}"))?;
        let last = moment(&mut self.sql, &format!("SELECT MAX(start) FROM {table}"))?;
        Ok(first.zip(last))
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
            value_columns(&self.settings.bounds).join(", ")
        );
        let classes = self.settings.bounds.classes();
        let rows = self.select(level, (table(level), columns), tags, (from, to))?;
        Ok(rows
            .iter()
            .map(|row| StoredRow {
                tag: at(row, 0) as i64,
                start: at(row, 1) as Seconds,
                count: at(row, 2),
                values: values(row, classes),
            })
            .collect())
    }

    fn buckets(
        &mut self,
        level: Level,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredBucket>> {
        let columns = "bucket, events".to_owned();
        let rows = self.select(level, (bucket_table(level), columns), tags, (from, to))?;
        Ok(rows
            .iter()
            .map(|row| StoredBucket {
                tag: at(row, 0) as i64,
                start: at(row, 1) as Seconds,
                bucket: at(row, 2) as i16,
                count: at(row, 3),
            })
            .collect())
    }

    fn top(
        &mut self,
        level: Level,
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
