//! Takes rows out of a database, to move them to another store.

use super::rows::{buckets, list, rows, starts};
use super::upkeep::transact;
use super::{Sql, bucket_table, literal, rolled, setting, table};
use crate::identity::unique_name;
use crate::level::RollUpLevel;
use crate::store::piece::{MovedRows, Pending, Piece, Watermarks};
use crate::store::{Result, Settings, StoreError, StoredRow};

/// Maximum number of rows in a piece: with a long histogram each, they fit a statement of MySQL.
const ROWS: usize = 200;
/// Setting with the number of the last piece.
const MOVED_PIECE_SETTING: &str = "moved";
/// Setting with the name by which other stores know the pieces.
const MOVER_NAME_SETTING: &str = "mover";

/// Columns of the table of pieces that were taken out.
pub(in crate::store) const MOVING_TABLE: &str = "tally_moving (number BIGINT NOT NULL PRIMARY KEY, target BLOB NOT NULL, body LONGBLOB NOT NULL)";

/// Watermarks of a database; `lock` is the locking suffix of the SELECT.
pub(in crate::store) fn marks(sql: &mut dyn Sql, lock: &str) -> Result<Watermarks> {
    let mut marks = Watermarks::default();
    for (mark, level) in marks.iter_mut().zip(RollUpLevel::ALL) {
        *mark = rolled(sql, level, lock)?;
    }
    Ok(marks)
}

/// Name of the position under which another store records the pieces of the store `name`.
pub(in crate::store) fn position_of(name: &str) -> String {
    format!("move:{name}")
}

fn mover(sql: &mut dyn Sql) -> Result<Option<String>> {
    let found = sql.texts(&format!(
        "SELECT value FROM tally_setting WHERE name = '{MOVER_NAME_SETTING}'"
    ))?;
    Ok(found.into_iter().flatten().next())
}

/// Name under which other stores record the pieces: it exists as soon as there is a piece.
pub(in crate::store) fn name(sql: &mut dyn Sql) -> Result<String> {
    let name = mover(sql)?;
    name.ok_or_else(|| StoreError::refused("the store has no name for its pieces"))
}

/// The piece that was taken out.
pub(in crate::store) fn pending(sql: &mut dyn Sql) -> Result<Option<Pending>> {
    let found = sql.texts(
        "SELECT number, CAST(target AS CHAR), CAST(body AS CHAR) FROM tally_moving ORDER BY number LIMIT 1",
    )?;
    let Some([number, target, body]) = found.first().map(Vec::as_slice) else {
        return Ok(None);
    };
    let read = || {
        Some(Pending {
            number: number.parse().ok()?,
            target: target.clone(),
            piece: Piece::of(body)?,
        })
    };
    match read() {
        Some(pending) => Ok(Some(pending)),
        None => Err(StoreError::refused(format!(
            "piece {number} of tally_moving cannot be read; use the version of disksmith that wrote it"
        ))),
    }
}

/// Removes a piece.
pub(in crate::store) fn remove(sql: &mut dyn Sql, number: u64) -> Result<()> {
    sql.run(&format!("DELETE FROM tally_moving WHERE number = {number}"))
        .map(drop)
}

/// Takes a piece of a slice out, unless a piece is pending; false if nothing is left of the slice.
pub(in crate::store) fn take_out(
    sql: &mut dyn Sql,
    settings: &Settings,
    slice: &MovedRows,
    target: &str,
) -> Result<bool> {
    transact(sql, |sql| {
        // Flushes wait for the locked watermarks, so that none changes the rows meanwhile.
        let lock = sql.for_update();
        let marks = marks(sql, lock)?;
        if !sql.texts("SELECT number FROM tally_moving")?.is_empty() {
            return Ok(true);
        }
        let level = slice.level;
        let Some((condition, rows)) = first_rows(sql, settings, slice, &marks)? else {
            return Ok(false);
        };
        let buckets = buckets(sql, level, &condition)?;
        let names = names(sql, &rows)?;
        let name = |tag: i64| names.get(&tag).cloned().unwrap_or_default();
        let piece = Piece::new(level, marks, rows, &buckets, name);
        for table in [table(level), bucket_table(level)] {
            sql.run(&format!("DELETE FROM {table} WHERE {condition}"))?;
        }
        let number = setting(sql, MOVED_PIECE_SETTING, "")? + 1;
        let set = |sql: &mut dyn Sql, name: &str, value: &str| {
            sql.run(&format!(
                "REPLACE INTO tally_setting (name, value) VALUES ('{name}', '{value}')"
            ))
        };
        set(sql, MOVED_PIECE_SETTING, &number.to_string())?;
        if mover(sql)?.is_none() {
            set(sql, MOVER_NAME_SETTING, &unique_name())?;
        }
        let (target, body) = (literal(target.as_bytes()), literal(piece.text().as_bytes()));
        sql.run(&format!(
            "INSERT INTO tally_moving (number, target, body) VALUES ({number}, {target}, {body})"
        ))?;
        Ok(true)
    })
}

/// The first rows of a slice in closed periods, and a condition that matches exactly these rows.
fn first_rows(
    sql: &mut dyn Sql,
    settings: &Settings,
    slice: &MovedRows,
    marks: &Watermarks,
) -> Result<Option<(String, Vec<StoredRow>)>> {
    let (level, zone) = (slice.level, &settings.zone);
    let closed = match level {
        RollUpLevel::Minute => marks[RollUpLevel::Hour as usize],
        level => marks[level as usize],
    };
    // Whole periods.
    let mut from = zone.start(level, slice.range.start);
    if from < slice.range.start {
        from = zone.next(level, from);
    }
    let to = zone.start(level, slice.range.end).min(closed);
    let (most, tags) = match &slice.tags {
        None => (ROWS, String::new()),
        Some(tags) => {
            let tags: &[i64] = tags;
            let most = (ROWS / tags.len().max(1)).max(1);
            (most, format!(" AND tag IN ({})", list(tags)))
        }
    };
    loop {
        let starts = starts(sql, (&table(level), level), zone, from..to, most)?;
        let Some(last) = starts.last() else {
            return Ok(None);
        };
        let condition = format!("start IN ({}){tags}", list(&starts));
        let first = format!("{condition} ORDER BY start, tag LIMIT {ROWS}");
        let rows = rows(sql, level, &settings.bounds, &first)?;
        if let Some(StoredRow { start, tag, .. }) = rows.last() {
            let condition =
                format!("{condition} AND (start < {start} OR start = {start} AND tag <= {tag})");
            return Ok(Some((condition, rows)));
        }
        from = last + 1;
    }
}

/// Names of the tags of some rows.
fn names(sql: &mut dyn Sql, rows: &[StoredRow]) -> Result<std::collections::HashMap<i64, String>> {
    let mut tags: Vec<i64> = rows.iter().map(|row| row.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    let found = sql.texts(&format!(
        "SELECT id, CAST(name AS CHAR) FROM tally_tag WHERE id IN ({})",
        list(&tags)
    ))?;
    let pairs = found.into_iter().filter_map(|row| {
        let [id, name]: [String; 2] = row.try_into().ok()?;
        Some((id.parse().ok()?, name))
    });
    Ok(pairs.collect())
}
