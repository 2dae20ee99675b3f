//! Rolls up finished periods, and removes rows beyond the limits.

use std::time::Duration;

use super::{
    RUNNING, RolledPeriod, Sql, bucket_table, classes, moment, rolled, setting, table,
    value_columns, watermark,
};
use crate::level::{HOUR, RollUpLevel, Seconds};
use crate::store::piece::Watermarks;
use crate::store::{KEYS_KEPT, ROLL_UP_DELAY, Result, Settings, StoreLimits};

/// Rows that are removed in one transaction.
const ROWS_PER_REMOVAL: u64 = 20_000;

/// Running time of a store, as this process last knew it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct RunningTime(Option<Seconds>);

impl RunningTime {
    /// Adds the time that this process ran. Processes that run at the same time add it once: the store keeps the
    /// largest sum.
    fn add(&mut self, sql: &mut dyn Sql, ran: Duration) -> Result<Seconds> {
        let lock = sql.for_update();
        let stored = setting(sql, RUNNING, lock)?;
        let ran = ran.as_secs().cast_signed();
        let time = self.0.map_or(stored, |time| stored.max(time + ran));
        if time > stored {
            sql.run(&format!(
                "REPLACE INTO tally_setting (name, value) VALUES ('{RUNNING}', '{time}')"
            ))?;
        }
        self.0 = Some(time);
        Ok(time)
    }
}

/// Does a bounded part of the upkeep; true if more is left.
pub(in crate::store) fn maintain(
    sql: &mut dyn Sql,
    settings: &Settings,
    limits: &StoreLimits,
    now: Seconds,
    (running, ran): (&mut RunningTime, Duration),
) -> Result<bool> {
    let kept = KEYS_KEPT.as_secs().cast_signed();
    let age = |sql: &mut dyn Sql| {
        let running = running.add(sql, ran)?;
        prune_keys(sql, running - kept)
    };
    if transact(sql, age)? {
        return Ok(true);
    }
    let rolled = [RollUpLevel::Hour, RollUpLevel::Day, RollUpLevel::Month].into_iter();
    for level in rolled.filter(|level| !limits.off.contains(level)) {
        if transact(sql, |sql| roll(sql, level, settings, now))? {
            return Ok(true);
        }
    }
    transact(sql, |sql| remove(sql, limits, now))
}

/// Runs a closure in a transaction.
pub(super) fn transact<T>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T>,
) -> Result<T> {
    sql.begin()?;
    let result = work(sql);
    match result {
        Ok(_) => sql.run("COMMIT")?,
        // The first error is the one to report.
        Err(_) => {
            sql.rollback();
            0
        }
    };
    result
}

fn prune_keys(sql: &mut dyn Sql, before: Seconds) -> Result<bool> {
    let at = moment(
        sql,
        &format!(
            "SELECT added FROM tally_identity WHERE added < {before} ORDER BY added LIMIT 1 OFFSET {ROWS_PER_REMOVAL}"
        ),
    )?;
    let last = at.unwrap_or(before - 1);
    sql.run(&format!("DELETE FROM tally_identity WHERE added <= {last}"))?;
    Ok(at.is_some())
}

/// The earliest start in a level's table from a moment on.
fn earliest(sql: &mut dyn Sql, level: RollUpLevel, from: Seconds) -> Result<Option<Seconds>> {
    moment(
        sql,
        &format!(
            "SELECT MIN(start) FROM {} WHERE start >= {from}",
            table(level)
        ),
    )
}

/// Rolls up the earliest period of a level that is over; false if there is none.
fn roll(sql: &mut dyn Sql, level: RollUpLevel, settings: &Settings, now: Seconds) -> Result<bool> {
    let Some(finer) = level.finer() else {
        return Ok(false);
    };
    let lock = sql.for_update();
    let from = rolled(sql, level, lock)?;
    let Some(first) = earliest(sql, finer, from)? else {
        return Ok(false);
    };
    let (start, next) = (
        settings.zone.start(level, first),
        settings.zone.next(level, first),
    );
    if next + ROLL_UP_DELAY > now {
        return Ok(false);
    }
    // The finer levels must be complete: none of them has a period left to roll up into it.
    let mut below = finer;
    while let Some(finest) = below.finer() {
        let from = rolled(sql, below, "")?;
        if earliest(sql, finest, from)?.is_some_and(|start| start < next) {
            return Ok(false);
        }
        below = finest;
    }
    let columns = value_columns(&settings.bounds).join(", ");
    let sums: String = classes(&settings.bounds)
        .iter()
        .map(|class| format!(", SUM({class})"))
        .collect();
    let roll = RolledPeriod {
        table: table(level),
        finer: table(finer),
        start,
        next,
    };
    let range = format!("WHERE start >= {start} AND start < {next}");
    sql.run(&format!(
        "INSERT INTO {} (start, tag, events, {columns})
         SELECT {start}, tag, SUM(events), SUM(total), MIN(smallest), MAX(largest), NULL{sums} FROM {} {range} GROUP BY tag",
        roll.table, roll.finer
    ))?;
    sql.run(&sql.latest(&roll))?;
    sql.run(&format!(
        "INSERT INTO {} (start, tag, bucket, events)
         SELECT {start}, tag, bucket, SUM(events) FROM {} {range} GROUP BY tag, bucket",
        bucket_table(level),
        bucket_table(finer)
    ))?;
    sql.run(&format!(
        "REPLACE INTO tally_setting (name, value) VALUES ('{}', '{next}')",
        watermark(level)
    ))?;
    Ok(true)
}

/// Rolls up all finished periods.
pub(in crate::store) fn roll_over(
    sql: &mut dyn Sql,
    settings: &Settings,
    now: Seconds,
) -> Result<()> {
    for level in [RollUpLevel::Hour, RollUpLevel::Day, RollUpLevel::Month] {
        while transact(sql, |sql| roll(sql, level, settings, now))? {}
    }
    Ok(())
}

/// Rolls up all levels at least to another store's watermarks: those periods are finished.
pub(in crate::store) fn roll_to(
    sql: &mut dyn Sql,
    settings: &Settings,
    marks: &Watermarks,
) -> Result<()> {
    for level in [RollUpLevel::Hour, RollUpLevel::Day, RollUpLevel::Month] {
        // A coarser level is made of this one.
        let to = RollUpLevel::ALL
            .into_iter()
            .filter(|coarser| *coarser >= level)
            .map(|coarser| marks[coarser as usize])
            .max()
            .unwrap_or(0);
        let step = |sql: &mut dyn Sql| {
            if roll(sql, level, settings, to + ROLL_UP_DELAY)? {
                return Ok(false);
            }
            // Nothing before this time is left to be rolled up.
            if rolled(sql, level, "")? < to {
                sql.run(&format!(
                    "REPLACE INTO tally_setting (name, value) VALUES ('{}', '{to}')",
                    watermark(level)
                ))?;
            }
            Ok(true)
        };
        while !transact(sql, step)? {}
    }
    Ok(())
}

/// Removes the oldest rows beyond the limits; true if more may be left.
fn remove(sql: &mut dyn Sql, limits: &StoreLimits, now: Seconds) -> Result<bool> {
    for level in [RollUpLevel::Minute, RollUpLevel::Hour] {
        let Some(newest) = moment(sql, &format!("SELECT MAX(start) FROM {}", table(level)))? else {
            continue;
        };
        // Age counts from the newest row in the store, so that a clock that is ahead for a while removes nothing.
        let kept = limits.retention(level).unwrap_or(Seconds::MAX / 2);
        if remove_before(sql, limits, level, now.min(newest + HOUR) - kept)? {
            return Ok(true);
        }
    }
    if sql.size()? <= limits.size.0 {
        return Ok(false);
    }
    for level in [RollUpLevel::Minute, RollUpLevel::Hour] {
        if remove_before(sql, limits, level, Seconds::MAX)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the oldest periods of a level that begin before a time, and, unless the coarser level is off, are rolled up;
/// false if there are none.
fn remove_before(
    sql: &mut dyn Sql,
    limits: &StoreLimits,
    level: RollUpLevel,
    before: Seconds,
) -> Result<bool> {
    let Some(coarser) = level.coarser() else {
        return Ok(false);
    };
    let before = match limits.off.contains(&coarser) {
        true => before,
        false => before.min(rolled(sql, coarser, "")?),
    };
    let mut removed = 0;
    while removed < ROWS_PER_REMOVAL {
        let oldest = moment(
            sql,
            &format!(
                "SELECT MIN(start) FROM {} WHERE start < {before}",
                table(level)
            ),
        )?;
        let Some(oldest) = oldest else { break };
        for table in [table(level), bucket_table(level)] {
            removed += sql.run(&format!("DELETE FROM {table} WHERE start = {oldest}"))?;
        }
    }
    Ok(removed > 0)
}
