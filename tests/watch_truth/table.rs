//! The truth table.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::Verdict;

/// What became of the plays of one cause.
#[derive(Debug, Default)]
struct Row {
    played: usize,
    /// Seconds until it was found, of those that were.
    found: Vec<f64>,
    /// Plays with anything else, and what that was.
    with_others: usize,
    others: BTreeMap<String, usize>,
}

/// Rows by their cause; nothing comes first.
#[derive(Debug)]
pub(crate) struct Table(BTreeMap<Option<&'static str>, Row>);

impl Table {
    pub(crate) fn of(verdicts: Vec<Verdict>) -> Table {
        let mut rows: BTreeMap<Option<&'static str>, Row> = BTreeMap::new();
        for verdict in verdicts {
            let row = rows.entry(verdict.play.cause).or_default();
            row.played += 1;
            row.found.extend(verdict.found);
            row.with_others += usize::from(!verdict.others.is_empty());
            for code in verdict.others {
                *row.others.entry(code).or_default() += 1;
            }
        }
        for row in rows.values_mut() {
            row.found.sort_by(f64::total_cmp);
        }
        Table(rows)
    }

    /// Panics unless each cause was found in this share of its plays at least, and anything was found
    /// without a cause in this share of the others at most.
    pub(crate) fn assert(&self, least_found: f64, most_false: f64) {
        for (cause, row) in &self.0 {
            let share = |count: usize| count as f64 / row.played as f64;
            match cause {
                None => assert!(
                    share(row.with_others) <= most_false,
                    "found of nothing: {row:?}"
                ),
                Some(cause) => {
                    assert!(share(row.found.len()) >= least_found, "{cause}: {row:?}");
                }
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:14} {:>6} {:>6}  {:22} also found",
            "cause", "played", "found", "seconds until found"
        )?;
        for (cause, row) in &self.0 {
            let seconds = match (row.found.first(), row.found.last()) {
                (Some(least), Some(most)) => {
                    let median = row.found[row.found.len() / 2];
                    format!("{median:.0} ({least:.0} to {most:.0})")
                }
                _ => "-".to_owned(),
            };
            let found = match cause {
                Some(_) => row.found.len().to_string(),
                None => "-".to_owned(),
            };
            let others: Vec<String> = row
                .others
                .iter()
                .map(|(code, count)| format!("{count} {code}"))
                .collect();
            writeln!(
                f,
                "{:14} {:6} {found:>6}  {seconds:22} {}",
                cause.unwrap_or("nothing"),
                row.played,
                others.join(", ")
            )?;
        }
        Ok(())
    }
}
