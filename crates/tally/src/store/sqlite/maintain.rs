//! Rolling up what is over, and removing what is older than the limits.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{SqliteStore, failed, watermark};
use crate::level::{HOUR, Level, Seconds};
use crate::store::{GRACE, KEYS_KEPT, Limits, Result, Settings, sql};

/// Rows that are removed in one transaction.
const REMOVED: usize = 20_000;

pub(super) fn maintain(
    store: &mut SqliteStore,
    limits: &Limits,
    now: Seconds,
    prune: bool,
) -> Result<bool> {
    let address = store.address.clone();
    let settings = store.settings.clone();
    let failed = |error| failed(&address, error);
    for level in [Level::Hour, Level::Day, Level::Month] {
        let rolled = store
            .transact(|connection, _| roll(connection, level, &settings, now).map_err(failed))?;
        if rolled {
            return Ok(true);
        }
    }
    if prune {
        let before = now - KEYS_KEPT.as_secs().cast_signed();
        let removed =
            store.transact(|connection, _| prune_keys(connection, before).map_err(failed))?;
        if removed == REMOVED {
            return Ok(true);
        }
    }
    store.transact(|connection, _| remove(connection, limits, now).map_err(failed))
}

fn prune_keys(connection: &Connection, before: Seconds) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM tally_identity WHERE identity IN
             (SELECT identity FROM tally_identity WHERE added < ?1 ORDER BY added LIMIT ?2)",
        )?
        .execute(params![before, REMOVED as i64])
}

/// The earliest start in a level's table from a moment on.
fn earliest(
    connection: &Connection,
    level: Level,
    from: Seconds,
) -> rusqlite::Result<Option<Seconds>> {
    connection
        .prepare_cached(&format!(
            "SELECT MIN(start) FROM {} WHERE start >= ?1",
            sql::table(level)
        ))?
        .query_row([from], |row| row.get(0))
}

/// Rolls up the earliest period of a level that is over; false if there is none.
fn roll(
    connection: &Connection,
    level: Level,
    settings: &Settings,
    now: Seconds,
) -> rusqlite::Result<bool> {
    let Some(finer) = level.finer() else {
        return Ok(false);
    };
    let Some(first) = earliest(connection, finer, watermark(connection, level)?)? else {
        return Ok(false);
    };
    let (start, next) = (
        settings.zone.start(level, first),
        settings.zone.next(level, first),
    );
    if next + GRACE > now {
        return Ok(false);
    }
    // What it is made of must be whole: nothing below waits to be rolled up into it.
    let mut below = finer;
    while let Some(finest) = below.finer() {
        let waiting = earliest(connection, finest, watermark(connection, below)?)?;
        if waiting.is_some_and(|start| start < next) {
            return Ok(false);
        }
        below = finest;
    }
    let columns = sql::value_columns(&settings.bounds).join(", ");
    let (table, finer_table) = (sql::table(level), sql::table(finer));
    connection.execute(
        &format!(
            "INSERT INTO {table} (start, tag, events, {columns}) SELECT ?1, tag, {} FROM {finer_table}
             WHERE start >= ?1 AND start < ?2 GROUP BY tag",
            sql::sums(&settings.bounds, "NULL"),
        ),
        [start, next],
    )?;
    // With MAX(start), SQLite takes the other columns from the row that has it.
    connection.execute(
        &format!(
            "UPDATE {table} SET latest = gauge.latest FROM
             (SELECT tag, latest, MAX(start) FROM {finer_table}
              WHERE start >= ?1 AND start < ?2 AND latest IS NOT NULL GROUP BY tag) AS gauge
             WHERE {table}.start = ?1 AND {table}.tag = gauge.tag"
        ),
        [start, next],
    )?;
    connection.execute(
        &format!(
            "INSERT INTO {} (start, tag, bucket, events) SELECT ?1, tag, bucket, SUM(events) FROM {}
             WHERE start >= ?1 AND start < ?2 GROUP BY tag, bucket",
            sql::bucket_table(level),
            sql::bucket_table(finer)
        ),
        [start, next],
    )?;
    connection.execute(
        "INSERT OR REPLACE INTO tally_setting (name, value) VALUES (?1, ?2)",
        params![sql::watermark(level), next.to_string()],
    )?;
    Ok(true)
}

/// Removes the oldest rows beyond the limits; true if more may be left.
fn remove(connection: &Connection, limits: &Limits, now: Seconds) -> rusqlite::Result<bool> {
    for level in [Level::Minute, Level::Hour] {
        let Some(newest) = newest(connection, level)? else {
            continue;
        };
        // Age counts from what is newest in the store, so that a clock that is ahead for a while removes nothing.
        let kept = limits.kept(level).unwrap_or(Seconds::MAX / 2);
        if remove_before(connection, level, now.min(newest + HOUR) - kept)? {
            return Ok(true);
        }
    }
    if used(connection)? <= limits.size.0 {
        return Ok(false);
    }
    for level in [Level::Minute, Level::Hour] {
        if remove_before(connection, level, Seconds::MAX)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn newest(connection: &Connection, level: Level) -> rusqlite::Result<Option<Seconds>> {
    connection
        .prepare_cached(&format!("SELECT MAX(start) FROM {}", sql::table(level)))?
        .query_row([], |row| row.get(0))
}

/// Bytes of the file that are in use.
fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let of = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(((of("page_count")? - of("freelist_count")?) * of("page_size")?).cast_unsigned())
}

/// Removes the oldest periods of a level that begin before a moment and are rolled up; false if there are none.
fn remove_before(connection: &Connection, level: Level, before: Seconds) -> rusqlite::Result<bool> {
    let Some(coarser) = level.coarser() else {
        return Ok(false);
    };
    let before = before.min(watermark(connection, coarser)?);
    let (table, buckets) = (sql::table(level), sql::bucket_table(level));
    let mut removed = 0;
    while removed < REMOVED {
        let oldest: Option<Seconds> = connection
            .prepare_cached(&format!("SELECT MIN(start) FROM {table} WHERE start < ?1"))?
            .query_row([before], |row| row.get(0))
            .optional()?
            .flatten();
        let Some(oldest) = oldest else { break };
        for table in [&table, &buckets] {
            removed += connection
                .prepare_cached(&format!("DELETE FROM {table} WHERE start = ?1"))?
                .execute([oldest])?;
        }
    }
    Ok(removed > 0)
}
