//! The truth table.

use std::collections::BTreeMap;
use std::fmt;

use crate::play::{Play, Verdict};

/// Results of the plays of one cause.
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

    /// True if each cause was found in each of its plays.
    pub(crate) fn is_complete(&self) -> bool {
        let with_cause = self.0.iter().filter(|(cause, _)| cause.is_some());
        let mut rows = with_cause.map(|(_, row)| row);
        rows.all(|row| row.found.len() == row.played)
    }

    /// Panics unless each cause was found in this share of its plays at least, and what is not so was found in
    /// this share of the plays at most: of those without a cause, of those with one, and of each cause that
    /// was played so often that one such play is no larger share.
    pub(crate) fn assert(&self, least_found: f64, most_false: f64) {
        let mut with_cause = Row::default();
        for (cause, row) in &self.0 {
            let is_often = row.played as f64 * most_false >= 1.0;
            if cause.is_none() || is_often {
                let cause = cause.unwrap_or("nothing");
                assert!(row.is_right(most_false), "found beside {cause}: {row:?}");
            }
            if let Some(cause) = cause {
                let found = row.found.len() as f64 / row.played as f64;
                assert!(found >= least_found, "{cause}: {row:?}");
                with_cause.played += row.played;
                with_cause.with_others += row.with_others;
            }
        }
        assert!(
            with_cause.is_right(most_false),
            "found beside causes: {self:?}"
        );
    }
}

impl Row {
    /// True if other findings occurred in at most this share of the plays.
    fn is_right(&self, most_false: f64) -> bool {
        self.with_others as f64 <= most_false * self.played as f64
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

/// Plays of a cause that was found each time, next to which anything else was found in so many.
fn played(cause: Option<&'static str>, plays: usize, with_others: usize) -> Table {
    let verdict = |number: usize| Verdict {
        play: Play {
            cause,
            ..Play::nothing(Vec::new(), 60)
        },
        found: cause.map(|_| 1.0),
        others: vec!["cold".to_owned(); usize::from(number < with_others)],
    };
    Table::of((0..plays).map(verdict).collect())
}

#[test]
fn one_of_twenty_may_be_false() {
    played(Some("stalled"), 20, 1).assert(1.0, 0.05);
    played(None, 20, 1).assert(1.0, 0.05);
}

#[test]
#[should_panic(expected = "found beside stalled")]
fn two_of_twenty_may_not_be_false_alongside_a_cause() {
    played(Some("stalled"), 20, 2).assert(1.0, 0.05);
}

#[test]
#[should_panic(expected = "found beside causes")]
fn of_few_plays_none_may_be_false() {
    played(Some("stalled"), 2, 1).assert(1.0, 0.05);
}

#[test]
#[should_panic(expected = "found beside nothing")]
fn nothing_may_be_found_of_nothing() {
    played(None, 2, 1).assert(1.0, 0.05);
}
