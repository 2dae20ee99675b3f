//! Reading ClickHouse: rows that are not merged yet are summed by the query.

use std::collections::HashMap;

use super::ClickhouseAddress;
use crate::classes::MAX_CLASSES;
use crate::level::{RollUpLevel, Seconds};
use crate::store::{Archive, Entry, Result, Settings, StoredBucket, StoredRow, sql};
use crate::sums::Values;

/// Tags of one query.
const TAGS_PER_QUERY: usize = 500;

/// Settings with which a store was made; `None` where there is none.
pub(super) fn settings(server: &ClickhouseAddress) -> Result<Option<Settings>> {
    let tables = server.rows(
        "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'tally_setting'",
    )?;
    if tables
        .first()
        .and_then(|row| row.first())
        .is_none_or(|count| count == "0")
    {
        return Ok(None);
    }
    let rows = server.rows("SELECT name, value FROM tally_setting FINAL")?;
    let found: HashMap<String, String> = rows
        .into_iter()
        .filter_map(|row| row.try_into().ok())
        .map(|[name, value]: [String; 2]| (name, value))
        .collect();
    match found.is_empty() {
        true => Ok(None),
        false => Settings::read(&server.to_string(), |name| Ok(found.get(name).cloned())).map(Some),
    }
}

/// A database that is read.
pub(super) struct Reading {
    server: ClickhouseAddress,
    settings: Settings,
    /// Tags by their numbers, which hold until the dictionary is read again.
    names: Vec<String>,
}

impl Reading {
    pub(super) fn new(server: ClickhouseAddress, settings: Settings) -> Reading {
        Reading {
            server,
            settings,
            names: Vec::new(),
        }
    }

    /// Rows of a level's table for some tags; the first two columns are the tag's number and the start.
    fn select(
        &self,
        table: &str,
        (columns, group): (&str, &str),
        tags: &[i64],
        (from, to): (Seconds, Seconds),
    ) -> Result<Vec<(i64, Vec<Option<f64>>)>> {
        let mut found = Vec::new();
        for tags in tags.chunks(TAGS_PER_QUERY) {
            let names: HashMap<&str, i64> = tags
                .iter()
                .filter_map(|tag| Some((&**self.names.get(*tag as usize)?, *tag)))
                .collect();
            let list: Vec<String> = names.keys().map(|name| quoted(name)).collect();
            let rows = self.server.rows(&format!(
                "SELECT tag, start, {columns} FROM {table} WHERE tag IN ({}) AND start >= {from} AND start < {to}
                 GROUP BY tag, start{group}",
                list.join(",")
            ))?;
            for row in rows {
                let Some(tag) = row.first().and_then(|name| names.get(&**name)) else {
                    continue;
                };
                found.push((
                    *tag,
                    row.iter().skip(1).map(|text| text.parse().ok()).collect(),
                ));
            }
        }
        Ok(found)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn at(row: &[Option<f64>], place: usize) -> Option<f64> {
    row.get(place).copied().flatten()
}

impl Archive for Reading {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn snapshot(&mut self) -> Result<()> {
        Ok(())
    }

    fn release(&mut self) {}

    fn entries(&mut self) -> Result<Vec<Entry>> {
        // Months have all tags, and the fewest rows.
        let rows = self
            .server
            .rows("SELECT DISTINCT tag FROM tally_month ORDER BY tag")?;
        self.names = rows
            .into_iter()
            .filter_map(|row| row.into_iter().next())
            .collect();
        let names = self.names.iter().enumerate();
        Ok(names
            .map(|(id, name)| Entry {
                id: id as i64,
                name: name.clone(),
            })
            .collect())
    }

    fn watermark(&mut self, _level: RollUpLevel) -> Result<Seconds> {
        // Each level is written at once.
        Ok(Seconds::MAX)
    }

    fn span(&mut self, level: RollUpLevel) -> Result<Option<(Seconds, Seconds)>> {
        let rows = self.server.rows(&format!(
            "SELECT min(start), max(start) FROM {} HAVING count() > 0",
            sql::table(level)
        ))?;
        let number = |place: usize| rows.first()?.get(place)?.parse().ok();
        Ok(number(0).zip(number(1)))
    }

    fn rows(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredRow>> {
        let classes = sql::classes(&self.settings.bounds);
        let sums: String = classes
            .iter()
            .map(|class| format!(", sum({class})"))
            .collect();
        let columns =
            format!("sum(events), sum(total), min(smallest), max(largest), anyLast(latest){sums}");
        let rows = self.select(&sql::table(level), (&columns, ""), tags, (from, to))?;
        let stored = |(tag, row): (i64, Vec<Option<f64>>)| {
            let values = at(&row, 2).map(|sum| {
                let mut values = Values {
                    sum,
                    min: at(&row, 3).unwrap_or(0.0),
                    max: at(&row, 4).unwrap_or(0.0),
                    last: at(&row, 5),
                    classes: [0.0; MAX_CLASSES],
                };
                for (class, place) in values.classes.iter_mut().take(classes.len()).enumerate() {
                    *place = at(&row, 6 + class).unwrap_or(0.0);
                }
                values
            });
            StoredRow {
                tag,
                start: at(&row, 0).unwrap_or(0.0) as Seconds,
                count: at(&row, 1).unwrap_or(0.0),
                values,
            }
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    fn buckets(
        &mut self,
        level: RollUpLevel,
        tags: &[i64],
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<StoredBucket>> {
        let columns = ("bucket, sum(events)", ", bucket");
        let rows = self.select(&sql::bucket_table(level), columns, tags, (from, to))?;
        let stored = |(tag, row): (i64, Vec<Option<f64>>)| StoredBucket {
            tag,
            start: at(&row, 0).unwrap_or(0.0) as Seconds,
            bucket: at(&row, 1).unwrap_or(0.0) as i16,
            count: at(&row, 2).unwrap_or(0.0),
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    fn top(
        &mut self,
        level: RollUpLevel,
        from: Seconds,
        to: Seconds,
        most: usize,
    ) -> Result<Vec<(i64, f64)>> {
        let rows = self.server.rows(&format!(
            "SELECT tag, sum(events) AS n FROM {} WHERE start >= {from} AND start < {to} GROUP BY tag
             ORDER BY n DESC, tag LIMIT {most}",
            sql::table(level)
        ))?;
        let numbers: HashMap<&str, i64> = self
            .names
            .iter()
            .zip(0_i64..)
            .map(|(name, tag)| (&**name, tag))
            .collect();
        let found = rows
            .iter()
            .filter_map(|row| Some((*numbers.get(&**row.first()?)?, row.get(1)?.parse().ok()?)));
        Ok(found.collect())
    }
}
