//! Statements that cannot use their index, and pairs of columns that lead to such statements.

use crate::check::{Area, Basis, Check, Judgement, format_count};
use crate::facts::Facts;
use ui::format::count;

/// Number of rows that a statement reads above which it is to be corrected.
const MANY_ROWS: f64 = 100_000.0;
/// The same for a statement that locks the rows that it reads.
const MANY_LOCKED_ROWS: f64 = 1_000.0;
/// Maximum number of characters of a statement that are shown.
const MAX_STATEMENT_CHARS: usize = 160;
/// Maximum number of pairs of columns that are shown.
const MAX_COLUMN_PAIRS: usize = 20;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "implicit-conversion",
        area: Area::Sql,
        reads: "EXPLAIN of digest samples, statement history, slow log or --queries, and its warnings",
        rule: "A column is compared with a value of its own type and collation. Otherwise its index cannot be used, and a \
               DELETE or UPDATE reads and locks the whole table.",
        source: "MySQL Reference Manual, \"Type Conversion in Expression Evaluation\", warning 1739; MariaDB, MDEV-32203, \
                 note 1105",
        basis: Basis::Documented,
        playbook: "index-not-used",
        judge: conversions,
    },
    Check {
        name: "column-types",
        area: Area::Sql,
        reads: "information_schema.COLUMNS: indexed columns of one name, but for names such as id and status; and user_id with \
                the id of users",
        rule: "Columns of one name in a schema have one type and collation, so that a join can use their index.",
        source: "MySQL Reference Manual, \"Optimizing Data Types\"",
        basis: Basis::Inferred,
        playbook: "index-not-used",
        judge: columns,
    },
];

fn conversions(facts: &Facts) -> Vec<Judgement> {
    let Some(explained) = &facts.sql else {
        return Vec::new();
    };
    let mut left_out = String::new();
    if let Some(why) = &explained.why_left_out {
        left_out = format!("; {} left out ({why})", explained.left_out);
    }
    let value = match explained.sources.is_empty() {
        true => "no statements are kept".to_owned(),
        false => format!(
            "{} of {}{left_out}",
            count(explained.explained, "statement"),
            explained.sources.join(", ")
        ),
    };
    if explained.explained == 0 {
        return vec![Judgement::unknown(
            value,
            "Give statements with --queries FILE, or let the server keep them: slow_query_log = ON, or \
             performance_schema = ON.",
        )];
    }
    if explained.unusable.is_empty() && !explained.has_notes {
        return vec![Judgement::unknown(
            value,
            "This version has no note for it: MariaDB has from 10.6.16 and 10.11.6 on, MySQL from 5.6 on.",
        )];
    }
    if explained.unusable.is_empty() {
        return vec![Judgement::ok(format!("{value}: none cannot use its index"))];
    }
    let found = explained.unusable.iter().map(|one| {
        let rows = one.rows.map_or(String::new(), |rows| format!(", {} rows", format_count(rows)));
        let value = format!("{}: {}{rows}", shortened(&one.statement.text), one.reason);
        let advice = "Give the value the type of the column, in the program or by a CAST of the value, not of the column; \
                      in a join give both columns one type and collation.";
        let first = one.statement.text.split_whitespace().next().unwrap_or_default();
        let locks = first.eq_ignore_ascii_case("delete") || first.eq_ignore_ascii_case("update");
        let many = if locks { MANY_LOCKED_ROWS } else { MANY_ROWS };
        match one.rows.is_some_and(|rows| rows >= many) {
            true => Judgement::fix(value, advice),
            false => Judgement::consider(value, advice),
        }
    });
    found.collect()
}

fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_STATEMENT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn columns(facts: &Facts) -> Vec<Judgement> {
    let Some(pairs) = facts
        .mysql
        .as_ref()
        .and_then(|mysql| mysql.columns.as_ref())
    else {
        return Vec::new();
    };
    if pairs.is_empty() {
        return vec![Judgement::ok(
            "columns of one name have one type and collation",
        )];
    }
    let shown: Vec<String> = pairs
        .iter()
        .take(MAX_COLUMN_PAIRS)
        .map(|pair| {
            format!(
                "{}.{}: {}",
                pair.schema,
                pair.column,
                pair.kinds.join(" / ")
            )
        })
        .collect();
    vec![Judgement::consider(
        format!(
            "{} of one name and different type: {}",
            count(pairs.len(), "column"),
            shown.join("; ")
        ),
        "Where they are joined, give them one type and collation.",
    )]
}
