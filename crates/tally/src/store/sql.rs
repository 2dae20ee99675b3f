//! Names of tables and columns, which all SQL stores share.

use crate::classes::{Bounds, MOST_CLASSES};
use crate::level::Level;

/// Table of a level's sums.
pub(super) fn table(level: Level) -> String {
    format!("tally_{}", level.name())
}

/// Table of a level's buckets.
pub(super) fn bucket_table(level: Level) -> String {
    format!("tally_{}_bucket", level.name())
}

/// Setting that holds a level's watermark.
pub(super) fn watermark(level: Level) -> String {
    format!("rolled_{}", level.name())
}

/// Columns of classes.
pub(super) fn classes(bounds: &Bounds) -> Vec<String> {
    debug_assert!(bounds.classes() <= MOST_CLASSES);
    (0..bounds.classes())
        .map(|class| format!("class_{class}"))
        .collect()
}

/// Columns of values: without the key and the count of events.
pub(super) fn value_columns(bounds: &Bounds) -> Vec<String> {
    let named = ["total", "smallest", "largest", "latest"].map(str::to_owned);
    named.into_iter().chain(classes(bounds)).collect()
}

/// What is selected to sum rows of a finer level, without the key.
pub(super) fn sums(bounds: &Bounds, latest: &str) -> String {
    let classes = classes(bounds)
        .into_iter()
        .map(|class| format!(", SUM({class})"));
    format!(
        "SUM(events), SUM(total), MIN(smallest), MAX(largest), {latest}{}",
        classes.collect::<String>()
    )
}
