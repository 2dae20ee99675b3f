//! Adding a batch: sorted upserts of many rows each, in one transaction.

use std::fmt::Write as _;

use mysql::prelude::Queryable as _;

use super::{MysqlStore, ROWS_PER_STATEMENT};
use crate::event::OTHER_TAG;
use crate::level::{RollUpLevel, Seconds};
use crate::store::piece::Pending;
use crate::store::sql::{
    Sql as _, adopting, bucket_table, literal, moving, running, table, value_columns,
};
use crate::store::{
    Advance, AppliedBatch, Batch, Key, MAX_CACHED_TAGS, Result, Store as _, StoreError, late_events,
};
use crate::sums::{Row, Sums};

/// Appends a number as a literal: an integer if it is whole, else a double.
fn push(text: &mut String, value: f64) {
    let _ = match value.fract() == 0.0 && value.abs() < 1e15 {
        true => write!(text, "{}", value as i64),
        false => write!(text, "{value:e}"),
    };
}

impl MysqlStore {
    pub(super) fn write(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        // Before the transaction, so that processes that add the same tags do not wait for each other's sums.
        let (numbers, others) = self.numbers(&batch.sums)?;
        self.connection.begin()?;
        let written = self.write_all(batch, &numbers, now);
        match written {
            Ok(()) => {
                self.connection.run("COMMIT")?;
            }
            // The first error is the one to report.
            Err(_) => self.connection.rollback(),
        }
        written.map(|()| AppliedBatch {
            tags: self.tags,
            others,
        })
    }

    fn write_all(&mut self, batch: &Batch, numbers: &[i64], now: Seconds) -> Result<()> {
        let added = running(&mut self.connection)?;
        if !self.add_keys(std::slice::from_ref(&batch.key), added)? {
            // An earlier attempt was committed, and its answer lost.
            return Ok(());
        }
        if !self.add_keys(&batch.keys, added)? {
            return Err(StoreError::Conflict);
        }
        for advance in &batch.advances {
            self.step(advance, now)?;
        }
        // Locked, so that no watermark moves before the sums are written.
        let marks = moving::marks(&mut self.connection, " LOCK IN SHARE MODE")?;
        let zone = self.settings.zone.clone();
        let names: hashbrown::HashMap<&str, i64> = match marks.iter().any(|mark| *mark > 0) {
            true => batch.sums.names().zip(numbers.iter().copied()).collect(),
            false => hashbrown::HashMap::new(),
        };
        for (level, sums) in late_events::levels(&batch.sums, &zone, |level| marks[level as usize])
        {
            match level {
                RollUpLevel::Minute => self.add(level, &sums, numbers)?,
                _ => {
                    let numbers: Vec<i64> = sums
                        .names()
                        .map(|name| names.get(name).copied().unwrap_or(0))
                        .collect();
                    self.add(level, &sums, &numbers)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a piece from the store of this name, unless it was added before.
    pub(super) fn write_piece(
        &mut self,
        name: &str,
        pending: &Pending,
        now: Seconds,
    ) -> Result<()> {
        let settings = self.settings.clone();
        self.connection.begin()?;
        let mut write = || {
            let source = moving::position_of(name);
            let from = self.position(&source)?.unwrap_or(0);
            let to = pending.number;
            if from >= to {
                return Ok(());
            }
            self.step(&Advance { source, from, to }, now)?;
            let marks = moving::marks(&mut self.connection, " LOCK IN SHARE MODE")?;
            for (level, sums) in pending.piece.levels(&settings, &marks) {
                let (numbers, _) = self.numbers(&sums)?;
                self.add(level, &sums, &numbers)?;
            }
            Ok(())
        };
        let written = write();
        match written {
            Ok(()) => drop(self.connection.run("COMMIT")?),
            Err(_) => {
                self.connection.rollback();
                // Numbers of tags that were not committed.
                self.ids.clear();
            }
        }
        written
    }

    /// Adds identities with this running time; false if one exists already.
    fn add_keys(&mut self, keys: &[Key], added: Seconds) -> Result<bool> {
        let mut keys: Vec<&Key> = keys.iter().collect();
        let mut all = true;
        keys.sort();
        for keys in keys.chunks(ROWS_PER_STATEMENT) {
            let rows: Vec<String> = keys
                .iter()
                .map(|key| format!("({},{added})", literal(key.bytes())))
                .collect();
            let new = self.connection.run(&format!(
                "INSERT IGNORE INTO tally_identity (identity, added) VALUES {}",
                rows.join(",")
            ))?;
            all &= new == keys.len() as u64;
        }
        Ok(all)
    }

    /// Adds identities and positions of another store.
    pub(super) fn adopt_all(
        &mut self,
        keys: &[Key],
        positions: &[(String, u64)],
        more: bool,
    ) -> Result<()> {
        let added = running(&mut self.connection)?;
        // Identities that exist already are no error here.
        self.add_keys(keys, added)?;
        for (source, position) in positions {
            let source = literal(source.as_bytes());
            self.connection.run(&format!(
                "INSERT INTO tally_position (source, position, moved) VALUES ({source}, {position}, 0)
                 ON DUPLICATE KEY UPDATE position = GREATEST(position, VALUES(position))"
            ))?;
        }
        self.connection.run(&adopting(more)).map(drop)
    }

    /// Moves a source's position.
    fn step(&mut self, advance: &Advance, now: Seconds) -> Result<()> {
        let Advance { source, from, to } = advance;
        let source = literal(source.as_bytes());
        // A single statement changes the row or creates it: that of another process waits for it, and fails.
        let moved = self.connection.run(&format!(
            "UPDATE tally_position SET position = {to}, moved = {now} WHERE source = {source} AND position = {from}"
        ))?;
        if moved > 0 || from == to {
            return Ok(());
        }
        let made = self.connection.run(&format!(
            "INSERT IGNORE INTO tally_position (source, position, moved) VALUES ({source}, {to}, {now})"
        ))?;
        match made {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    /// The numbers of the tags of some sums, new tags included, and how many are beyond the bound.
    fn numbers(&mut self, sums: &Sums) -> Result<(Vec<i64>, u64)> {
        if self.ids.len() > MAX_CACHED_TAGS {
            self.ids.clear();
        }
        let unknown = |ids: &hashbrown::HashMap<Box<str>, i64>| {
            let mut names: Vec<String> = sums
                .names()
                .filter(|name| !ids.contains_key(*name))
                .map(str::to_owned)
                .collect();
            // In sorted order, so that processes that add the same tags do not deadlock.
            names.sort_unstable();
            names
        };
        self.find(&unknown(&self.ids))?;
        let new = unknown(&self.ids);
        if !new.is_empty() {
            let count: Option<u64> = self
                .connection
                .with(|connection| connection.query_first("SELECT COUNT(*) FROM tally_tag"))?;
            self.tags = count.unwrap_or(0);
            let room =
                usize::try_from(self.most_tags.saturating_sub(self.tags)).unwrap_or(usize::MAX);
            let mut new = new;
            if new.len() > room {
                new.truncate(room);
                new.push(OTHER_TAG.to_owned());
            }
            for names in new.chunks(ROWS_PER_STATEMENT) {
                let rows: Vec<String> = names
                    .iter()
                    .map(|name| format!("({})", literal(name.as_bytes())))
                    .collect();
                self.connection.run(&format!(
                    "INSERT IGNORE INTO tally_tag (name) VALUES {}",
                    rows.join(",")
                ))?;
            }
            self.tags += new.len() as u64;
            self.find(&new)?;
        }
        let other = self.ids.get(OTHER_TAG).copied().unwrap_or(0);
        let mut beyond = 0;
        let numbers = sums.names().map(|name| {
            self.ids.get(name).copied().unwrap_or_else(|| {
                beyond += 1;
                other
            })
        });
        Ok((numbers.collect(), beyond))
    }

    /// Remembers the numbers of tags that are in the dictionary.
    fn find(&mut self, names: &[String]) -> Result<()> {
        for names in names.chunks(ROWS_PER_STATEMENT) {
            let list: Vec<String> = names.iter().map(|name| literal(name.as_bytes())).collect();
            let statement = format!(
                "SELECT id, name FROM tally_tag WHERE name IN ({})",
                list.join(",")
            );
            let found: Vec<(i64, Vec<u8>)> = self
                .connection
                .with(|connection| connection.query(statement))?;
            for (id, name) in found {
                self.ids.insert(String::from_utf8_lossy(&name).into(), id);
            }
        }
        Ok(())
    }

    /// Adds sums to a level's tables.
    fn add(&mut self, level: RollUpLevel, sums: &Sums, numbers: &[i64]) -> Result<()> {
        let mut rows: Vec<(Seconds, i64, Row<'_>)> = sums
            .rows()
            .map(|row| (row.start, numbers[row.tag as usize], row))
            .collect();
        // In primary-key order, so that neighbours are written together and processes do not deadlock.
        rows.sort_unstable_by_key(|(start, id, _)| (*start, *id));
        let classes = self.settings.bounds.classes();
        let columns = value_columns(&self.settings.bounds);
        let (plain, full): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|(_, _, row)| row.values.is_none());
        for rows in plain.chunks(ROWS_PER_STATEMENT) {
            let mut text = format!("INSERT INTO {} (start, tag, events) VALUES ", table(level));
            for (place, (start, id, row)) in rows.iter().enumerate() {
                let _ = write!(text, "{}({start},{id},", if place > 0 { "," } else { "" });
                push(&mut text, row.count);
                text.push(')');
            }
            text.push_str(" ON DUPLICATE KEY UPDATE events = events + VALUES(events)");
            self.connection.run(&text)?;
        }
        for rows in full.chunks(ROWS_PER_STATEMENT) {
            let mut text = format!(
                "INSERT INTO {} (start, tag, events, {}) VALUES ",
                table(level),
                columns.join(", ")
            );
            for (place, (start, id, row)) in rows.iter().enumerate() {
                let Some(values) = row.values else { continue };
                let _ = write!(text, "{}({start},{id},", if place > 0 { "," } else { "" });
                push(&mut text, row.count);
                for value in [
                    Some(values.sum),
                    Some(values.min),
                    Some(values.max),
                    values.last,
                ] {
                    text.push(',');
                    match value {
                        Some(value) => push(&mut text, value),
                        None => text.push_str("NULL"),
                    }
                }
                for class in values.classes.iter().take(classes) {
                    text.push(',');
                    push(&mut text, *class);
                }
                text.push(')');
            }
            text.push_str(&changes(level, &columns));
            self.connection.run(&text)?;
        }
        self.add_buckets(level, sums, numbers)
    }

    fn add_buckets(&mut self, level: RollUpLevel, sums: &Sums, numbers: &[i64]) -> Result<()> {
        let mut buckets: Vec<_> = sums
            .buckets()
            .map(|row| (row.start, numbers[row.tag as usize], row.bucket, row.count))
            .collect();
        buckets.sort_unstable_by_key(|(start, id, bucket, _)| (*start, *id, *bucket));
        for buckets in buckets.chunks(ROWS_PER_STATEMENT) {
            let mut text = format!(
                "INSERT INTO {} (start, tag, bucket, events) VALUES ",
                bucket_table(level)
            );
            for (place, (start, id, bucket, count)) in buckets.iter().enumerate() {
                let _ = write!(
                    text,
                    "{}({start},{id},{bucket},",
                    if place > 0 { "," } else { "" }
                );
                push(&mut text, *count);
                text.push(')');
            }
            text.push_str(" ON DUPLICATE KEY UPDATE events = events + VALUES(events)");
            self.connection.run(&text)?;
        }
        Ok(())
    }
}

/// Assignments for a row that exists already. MySQL and MariaDB both take `VALUES()`.
fn changes(level: RollUpLevel, columns: &[String]) -> String {
    let changes: String = columns
        .iter()
        .map(|column| match &**column {
            "smallest" => {
                ", smallest = LEAST(COALESCE(smallest, VALUES(smallest)), VALUES(smallest))"
                    .to_owned()
            }
            "largest" => {
                ", largest = GREATEST(COALESCE(largest, VALUES(largest)), VALUES(largest))"
                    .to_owned()
            }
            "latest" if level == RollUpLevel::Minute => {
                ", latest = COALESCE(VALUES(latest), latest)".to_owned()
            }
            // A value that arrives after its period was rolled up is late, not the latest.
            "latest" => ", latest = COALESCE(latest, VALUES(latest))".to_owned(),
            sum => format!(", {sum} = COALESCE({sum}, 0) + VALUES({sum})"),
        })
        .collect();
    format!(" ON DUPLICATE KEY UPDATE events = events + VALUES(events){changes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_exact() {
        for (value, text) in [
            (3.0, "3"),
            (-2.5, "-2.5e0"),
            (0.1, "1e-1"),
            (1e300, "1e300"),
        ] {
            let mut found = String::new();
            push(&mut found, value);
            assert_eq!(found, text);
            assert_eq!(found.parse::<f64>().unwrap(), value);
        }
    }
}
