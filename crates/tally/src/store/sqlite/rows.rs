//! Rows that a batch adds.

use hashbrown::HashMap;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Statement, params};

use super::connection::setting;
use crate::classes::ClassBounds;
use crate::event::OTHER_TAG;
use crate::level::{RollUpLevel, Seconds};
#[cfg(feature = "clickhouse")]
use crate::store::AppliedBatch;
use crate::store::piece::Watermarks;
use crate::store::{Advance, Key, MAX_CACHED_TAGS, sql};
use crate::sums::Sums;

/// Cached numbers of tags, and the maximum number of tags.
pub(in crate::store) struct Ids<'a> {
    pub(super) known: &'a mut HashMap<Box<str>, i64>,
    pub(super) most: u64,
}

/// Adds the tags of some sums to the dictionary. The list has one entry per tag, true if the tag went to `(other)`.
#[cfg(feature = "clickhouse")]
pub(in crate::store) fn add_tags(
    connection: &Connection,
    ids: &mut Ids<'_>,
    sums: &Sums,
) -> rusqlite::Result<(AppliedBatch, Vec<bool>)> {
    let (numbers, others) = numbers(connection, ids, sums)?;
    let mut find = connection.prepare_cached("SELECT id FROM tally_tag WHERE name = ?1")?;
    let other: Option<i64> = find.query_row([OTHER_TAG], |row| row.get(0)).optional()?;
    let applied = AppliedBatch {
        tags: count_tags(connection)?,
        others,
    };
    let beyond = numbers.iter().map(|number| Some(*number) == other);
    Ok((applied, beyond.collect()))
}

/// A setting that is a number.
pub(super) fn number(connection: &Connection, name: &str) -> rusqlite::Result<Seconds> {
    let value = setting(connection, name)?;
    Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0))
}

/// Adds an identity with this running time; false if it exists already.
pub(super) fn add_key(
    connection: &Connection,
    key: &Key,
    added: Seconds,
) -> rusqlite::Result<bool> {
    let inserted = connection
        .prepare_cached("INSERT INTO tally_identity (identity, added) VALUES (?1, ?2)")?
        .execute(params![key.bytes(), added]);
    match inserted {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Adds identities and positions of another store.
pub(super) fn adopt(
    connection: &Connection,
    keys: &[Key],
    positions: &[(String, u64)],
    more: bool,
) -> rusqlite::Result<()> {
    let added = number(connection, sql::RUNNING)?;
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO tally_identity (identity, added) VALUES (?1, ?2)")?;
    for key in keys {
        insert.execute(params![key.bytes(), added])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO tally_position (source, position, moved) VALUES (?1, ?2, 0)
         ON CONFLICT DO UPDATE SET position = max(position, excluded.position)",
    )?;
    for (source, position) in positions {
        insert.execute(params![source, position.cast_signed()])?;
    }
    connection.execute(&sql::adopting(more), [])?;
    Ok(())
}

/// Times up to which the levels are rolled up.
pub(super) fn marks(connection: &Connection) -> rusqlite::Result<Watermarks> {
    let mut marks = Watermarks::default();
    for (mark, level) in marks.iter_mut().zip(RollUpLevel::ALL) {
        *mark = number(connection, &sql::watermark(level))?;
    }
    Ok(marks)
}

/// Position of a source.
pub(super) fn position(connection: &Connection, source: &str) -> rusqlite::Result<Option<u64>> {
    let at: Option<i64> = connection
        .prepare_cached("SELECT position FROM tally_position WHERE source = ?1")?
        .query_row([source], |row| row.get(0))
        .optional()?;
    Ok(at.map(i64::cast_unsigned))
}

/// Moves a source's position; false if it is not where the batch begins.
pub(super) fn step(
    connection: &Connection,
    advance: &Advance,
    now: Seconds,
) -> rusqlite::Result<bool> {
    let at = position(connection, &advance.source)?;
    if at.is_some_and(|at| at != advance.from) {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO tally_position (source, position, moved) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![advance.source, advance.to.cast_signed(), now])?;
    Ok(true)
}

pub(super) fn count_tags(connection: &Connection) -> rusqlite::Result<u64> {
    // Tags are numbered in order and none is removed.
    connection
        .prepare_cached("SELECT COALESCE(MAX(id), 0) FROM tally_tag")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// The numbers of the tags of some sums, new tags included, and how many are beyond the bound.
pub(super) fn numbers(
    connection: &Connection,
    ids: &mut Ids<'_>,
    sums: &Sums,
) -> rusqlite::Result<(Vec<i64>, u64)> {
    if ids.known.len() > MAX_CACHED_TAGS {
        ids.known.clear();
    }
    let mut find = connection.prepare_cached("SELECT id FROM tally_tag WHERE name = ?1")?;
    let mut insert = connection.prepare_cached("INSERT INTO tally_tag (name) VALUES (?1)")?;
    let mut count = count_tags(connection)?;
    let (mut numbers, mut beyond) = (Vec::new(), 0);
    for name in sums.names() {
        if let Some(id) = ids.known.get(name) {
            numbers.push(*id);
            continue;
        }
        let mut id: Option<i64> = find.query_row([name], |row| row.get(0)).optional()?;
        let mut is_other = false;
        if id.is_none() && count < ids.most {
            insert.execute([name])?;
            id = Some(connection.last_insert_rowid());
            count += 1;
        } else if id.is_none() {
            beyond += 1;
            is_other = true;
            id = find.query_row([OTHER_TAG], |row| row.get(0)).optional()?;
        }
        let id = match id {
            Some(id) => id,
            None => {
                insert.execute([OTHER_TAG])?;
                connection.last_insert_rowid()
            }
        };
        if !is_other {
            ids.known.insert(name.into(), id);
        }
        numbers.push(id);
    }
    Ok((numbers, beyond))
}

/// Adds sums to a level's tables.
pub(super) fn add(
    connection: &Connection,
    level: RollUpLevel,
    bounds: &ClassBounds,
    sums: &Sums,
    numbers: &[i64],
) -> rusqlite::Result<()> {
    let mut rows: Vec<_> = sums
        .rows()
        .map(|row| (row.start, numbers[row.tag as usize], row))
        .collect();
    // In the order of the table.
    rows.sort_unstable_by_key(|(start, id, _)| (*start, *id));
    let mut plain = connection.prepare_cached(&upsert(level, &[]))?;
    let mut full = connection.prepare_cached(&upsert(level, &sql::value_columns(bounds)))?;
    for (start, id, row) in rows {
        match row.values {
            None => {
                plain.execute(params![start, id, row.count])?;
            }
            Some(values) => {
                bind(
                    &mut full,
                    &[
                        &start,
                        &id,
                        &row.count,
                        &values.sum,
                        &values.min,
                        &values.max,
                        &values.last,
                    ],
                )?;
                for (class, count) in values.classes.iter().take(bounds.classes()).enumerate() {
                    full.raw_bind_parameter(8 + class, count)?;
                }
                full.raw_execute()?;
            }
        }
    }
    let mut buckets: Vec<_> = sums
        .buckets()
        .map(|row| (row.start, numbers[row.tag as usize], row.bucket, row.count))
        .collect();
    buckets.sort_unstable_by_key(|(start, id, bucket, _)| (*start, *id, *bucket));
    let mut insert = connection.prepare_cached(&format!(
        "INSERT INTO {} (start, tag, bucket, events) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET events = events + excluded.events",
        sql::bucket_table(level)
    ))?;
    for (start, id, bucket, count) in buckets {
        insert.execute(params![start, id, bucket, count])?;
    }
    Ok(())
}

fn bind(statement: &mut Statement<'_>, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
    for (place, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, value)?;
    }
    Ok(())
}

/// Statement that adds a row with these columns of values.
fn upsert(level: RollUpLevel, values: &[String]) -> String {
    let columns: String = values.iter().map(|column| format!(", {column}")).collect();
    let places: String = (0..values.len())
        .map(|place| format!(", ?{}", place + 4))
        .collect();
    let changes: String = values
        .iter()
        .map(|column| match &**column {
            // SQLite's min and max of NULL and a number are NULL.
            "smallest" => {
                ", smallest = min(coalesce(smallest, excluded.smallest), excluded.smallest)"
                    .to_owned()
            }
            "largest" => {
                ", largest = max(coalesce(largest, excluded.largest), excluded.largest)".to_owned()
            }
            "latest" if level == RollUpLevel::Minute => {
                ", latest = coalesce(excluded.latest, latest)".to_owned()
            }
            // A value that arrives after its period was rolled up is late, not the latest.
            "latest" => ", latest = coalesce(latest, excluded.latest)".to_owned(),
            sum => format!(", {sum} = coalesce({sum}, 0) + excluded.{sum}"),
        })
        .collect();
    format!(
        "INSERT INTO {} (start, tag, events{columns}) VALUES (?1, ?2, ?3{places})
         ON CONFLICT DO UPDATE SET events = events + excluded.events{changes}",
        sql::table(level)
    )
}
