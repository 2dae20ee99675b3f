//! Parts that all SQL stores share: names of tables and columns, upkeep and reading, in statements that both
//! SQLite and MySQL take. Their differences are in [`Sql`].

mod archive;
pub(super) mod moving;
mod rows;
mod upkeep;

use ui::format::hex;

use super::{Entry, Result, Settings};
use crate::classes::{ClassBounds, MAX_CLASSES};
use crate::level::{RollUpLevel, Seconds};

pub(super) use archive::SqlArchive;
pub(super) use upkeep::{RunningTime, maintain, roll_over, roll_to};

/// A connection to a database.
pub(super) trait Sql {
    /// Runs a statement, and returns the number of rows that it changed.
    fn run(&mut self, statement: &str) -> Result<u64>;

    /// Rows of numbers.
    fn numbers(&mut self, statement: &str) -> Result<Vec<Vec<Option<f64>>>>;

    /// Rows of texts.
    fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>>;

    /// The dictionary.
    fn entries(&mut self) -> Result<Vec<Entry>>;

    /// Begins a transaction that writes.
    fn begin(&mut self) -> Result<()>;

    /// Rolls the transaction back, and drops the connection if that fails.
    fn rollback(&mut self);

    /// Begins a transaction that reads one moment's state.
    fn begin_snapshot(&mut self) -> Result<()>;

    /// Bytes that the tables take.
    fn size(&mut self) -> Result<u64>;

    /// Suffix of a SELECT whose rows must not change until the transaction ends.
    fn for_update(&self) -> &'static str;

    /// Statement that gives rolled-up rows the last value of their gauges.
    fn latest(&self, roll: &RolledPeriod) -> String;
}

/// A period that is rolled up.
pub(super) struct RolledPeriod {
    pub(super) table: String,
    pub(super) finer: String,
    pub(super) start: Seconds,
    pub(super) next: Seconds,
}

/// Bytes as a literal.
pub(super) fn literal(bytes: &[u8]) -> String {
    format!("x'{}'", hex(bytes))
}

/// The first number of a statement's first row.
fn number(sql: &mut dyn Sql, statement: &str) -> Result<Option<f64>> {
    let rows = sql.numbers(statement)?;
    Ok(rows.first().and_then(|row| row.first().copied().flatten()))
}

/// The first number of a statement's first row, as a time.
fn moment(sql: &mut dyn Sql, statement: &str) -> Result<Option<Seconds>> {
    // Exact: moments are far below 2^53.
    Ok(number(sql, statement)?.map(|number| number as Seconds))
}

/// Time up to which a level is rolled up.
pub(super) fn rolled(sql: &mut dyn Sql, level: RollUpLevel, lock: &str) -> Result<Seconds> {
    setting(sql, &watermark(level), lock)
}

/// Time in seconds for which any process wrote to the store. Identities age by it, since setting a clock does not
/// change it.
#[cfg(feature = "mysql")]
pub(super) fn running(sql: &mut dyn Sql) -> Result<Seconds> {
    setting(sql, RUNNING, "")
}

/// A setting that is a number.
fn setting(sql: &mut dyn Sql, name: &str, lock: &str) -> Result<Seconds> {
    let found = moment(
        sql,
        &format!("SELECT value + 0 FROM tally_setting WHERE name = '{name}'{lock}"),
    )?;
    Ok(found.unwrap_or(0))
}

/// Table of a level's sums.
pub(super) fn table(level: RollUpLevel) -> String {
    format!("tally_{}", level.name())
}

/// Table of a level's buckets.
pub(super) fn bucket_table(level: RollUpLevel) -> String {
    format!("tally_{}_bucket", level.name())
}

/// Setting that holds the store's running time.
pub(super) const RUNNING: &str = "running_s";

/// Setting of a store to which another's identities are being copied.
const ADOPTING_SETTING: &str = "adopting";

/// Statement that is true for a store without identities and positions, or to which they are being copied.
pub(super) const IS_FRESH: &str =
    "SELECT EXISTS (SELECT 1 FROM tally_setting WHERE name = 'adopting')
     OR NOT (EXISTS (SELECT 1 FROM tally_identity) OR EXISTS (SELECT 1 FROM tally_position))";

/// Statement to run after a part of the identities was copied; `more` if others follow.
pub(super) fn adopting(more: bool) -> String {
    match more {
        true => {
            format!("REPLACE INTO tally_setting (name, value) VALUES ('{ADOPTING_SETTING}', '1')")
        }
        false => format!("DELETE FROM tally_setting WHERE name = '{ADOPTING_SETTING}'"),
    }
}

/// Setting that holds a level's watermark.
pub(super) fn watermark(level: RollUpLevel) -> String {
    format!("rolled_{}", level.name())
}

/// Settings of a new store.
pub(super) fn new_settings(new: &Settings) -> Vec<(String, String)> {
    let mut all = vec![
        ("classes_ms".to_owned(), new.bounds.to_string()),
        ("timezone".to_owned(), new.zone.name().to_owned()),
    ];
    all.extend(
        [RollUpLevel::Hour, RollUpLevel::Day, RollUpLevel::Month]
            .map(|level| (watermark(level), "0".to_owned())),
    );
    all.push((RUNNING.to_owned(), "0".to_owned()));
    // Written last: a store without it is incomplete.
    all.push(("schema".to_owned(), super::SCHEMA.to_string()));
    all
}

/// Columns of classes.
pub(super) fn classes(bounds: &ClassBounds) -> Vec<String> {
    debug_assert!(bounds.classes() <= MAX_CLASSES);
    (0..bounds.classes())
        .map(|class| format!("class_{class}"))
        .collect()
}

/// Columns of values: without the key and the count of events.
pub(super) fn value_columns(bounds: &ClassBounds) -> Vec<String> {
    let named = ["total", "smallest", "largest", "latest"].map(str::to_owned);
    named.into_iter().chain(classes(bounds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_a_literal() {
        assert_eq!(literal(b"a\xff"), "x'61ff'");
    }
}
