//! Rows of a level's tables.

use std::ops::Range;

use super::{Sql, bucket_table, moment, table, value_columns};
use crate::classes::{ClassBounds, MAX_CLASSES};
use crate::level::{RollUpLevel, Seconds, Zone};
use crate::store::{Result, StoredBucket, StoredRow};
use crate::sums::Values;

/// Rows that match a condition.
pub(super) fn rows(
    sql: &mut dyn Sql,
    level: RollUpLevel,
    bounds: &ClassBounds,
    condition: &str,
) -> Result<Vec<StoredRow>> {
    let rows = sql.numbers(&format!(
        "SELECT tag, start, events, {} FROM {} WHERE {condition}",
        value_columns(bounds).join(", "),
        table(level)
    ))?;
    let stored = rows.iter().map(|row| StoredRow {
        tag: at(row, 0) as i64,
        start: at(row, 1) as Seconds,
        count: at(row, 2),
        values: values(row, bounds.classes()),
    });
    Ok(stored.collect())
}

/// Counts of buckets that match a condition.
pub(super) fn buckets(
    sql: &mut dyn Sql,
    level: RollUpLevel,
    condition: &str,
) -> Result<Vec<StoredBucket>> {
    let rows = sql.numbers(&format!(
        "SELECT tag, start, bucket, events FROM {} WHERE {condition}",
        bucket_table(level)
    ))?;
    let stored = rows.iter().map(|row| StoredBucket {
        tag: at(row, 0) as i64,
        start: at(row, 1) as Seconds,
        bucket: at(row, 2) as i16,
        count: at(row, 3),
    });
    Ok(stored.collect())
}

/// Starts of up to `most` successive periods in a range, from the first one that the table has.
pub(super) fn starts(
    sql: &mut dyn Sql,
    (table, level): (&str, RollUpLevel),
    zone: &Zone,
    range: Range<Seconds>,
    most: usize,
) -> Result<Vec<Seconds>> {
    let Range {
        start: from,
        end: to,
    } = range;
    let first = moment(
        sql,
        &format!("SELECT MIN(start) FROM {table} WHERE start >= {from} AND start < {to}"),
    )?;
    let all = std::iter::successors(first, |start| Some(zone.next(level, *start)));
    Ok(all.take_while(|start| *start < to).take(most).collect())
}

/// Numbers as a list for SQL's `IN`.
pub(super) fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

/// A number of a row; zero for NULL.
pub(super) fn at(row: &[Option<f64>], place: usize) -> f64 {
    row.get(place).copied().flatten().unwrap_or(0.0)
}

fn values(row: &[Option<f64>], classes: usize) -> Option<Values> {
    let sum = row.get(3).copied().flatten()?;
    let mut values = Values {
        sum,
        min: at(row, 4),
        max: at(row, 5),
        last: row.get(6).copied().flatten(),
        classes: [0.0; MAX_CLASSES],
    };
    for (class, place) in values.classes.iter_mut().take(classes).enumerate() {
        *place = at(row, 7 + class);
    }
    Some(values)
}
