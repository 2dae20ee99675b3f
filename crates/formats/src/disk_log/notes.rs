//! Notes on a log: what was not understood, assumed or left out.

use super::calendar::DateOrder;
use super::column_guess::ColumnGuess;

/// Maximum number of line numbers kept for one kind of note.
const MAX_LINE_NUMBERS: usize = 10;
/// Maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 60;
/// Maximum number of names kept of columns and groups.
const NAMES: usize = 16;

/// Lines with the same problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineNotes {
    /// Number of lines.
    pub count: u64,
    /// Line numbers of the first ten, from 1.
    pub first: Vec<u64>,
    /// The first one, shortened, without control characters.
    pub example: String,
}

impl LineNotes {
    /// Counts a line.
    pub(crate) fn add(&mut self, line: u64, text: &str) {
        if self.count == 0 {
            let plain = |c: char| if c.is_control() { '.' } else { c };
            self.example = text
                .trim()
                .chars()
                .map(plain)
                .take(MAX_LINE_CHARS)
                .collect();
        }
        if self.first.last() == Some(&line) {
            return;
        }
        self.count += 1;
        if self.first.len() < MAX_LINE_NUMBERS {
            self.first.push(line);
        }
    }

    /// The line numbers as text: "line 7", or "lines 7, 9 and 12 more".
    fn numbers(&self) -> String {
        let listed: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let more = self.count - self.first.len() as u64;
        match (self.count, more) {
            (1, _) => format!("line {}", listed.join("")),
            (_, 0) => format!("lines {}", listed.join(", ")),
            _ => format!("lines {} and {more} more", listed.join(", ")),
        }
    }
}

/// Notes on a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// Lines that are not part of iostat's output.
    pub garbage: LineNotes,
    /// Lines of figures that were cut off. Their figures are used, except for a last one that may itself be cut.
    pub cut: LineNotes,
    /// Number of samples, without those since boot.
    pub samples: u64,
    /// Number of reports that show the means since boot.
    pub since_boot: u64,
    /// Number of reports that are the only ones of their runs of iostat.
    pub alone: u64,
    /// Names of unknown columns.
    pub unknown_columns: Vec<String>,
    /// The columns that were guessed, if headers are missing.
    pub guess: Option<ColumnGuess>,
    /// The order of day and month that was assumed, if no date of the log shows it.
    pub date_order: Option<DateOrder>,
    /// True if the log does not give the length of its intervals, which was assumed to be one second.
    pub interval_unknown: bool,
    /// Number of times that a device was missing from a report and was assumed to be idle, as with `-z`.
    pub missing: u64,
    /// Groups that were left out, since their members are listed.
    pub groups: Vec<String>,
    /// Names of rows that are statistics of other rows, and were left out.
    pub statistics: Vec<String>,
}

impl Notes {
    pub(crate) fn unknown_column(&mut self, name: &str) {
        remember(&mut self.unknown_columns, name);
    }

    pub(crate) fn group(&mut self, name: &str) {
        remember(&mut self.groups, name);
    }

    pub(crate) fn statistic(&mut self, name: &str) {
        remember(&mut self.statistics, name);
    }

    /// All notes as whole sentences, the most important first.
    pub fn sentences(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if let Some(guess) = &self.guess {
            notices.push(format!(
                "The headers are gone; the columns are taken as '{}' ({}), since {} of {} \
                 relations between the figures hold; change that with --columns.",
                guess.columns.text(),
                guess.printed_by,
                guess.held,
                guess.checked
            ));
        }
        self.report_lines(&mut notices);
        if self.interval_unknown {
            notices.push(
                "The log does not give the length of its intervals; 1 s is assumed; change that \
                 with --log-interval."
                    .to_owned(),
            );
        }
        if let Some(order) = self.date_order {
            let (order, other) = match order {
                DateOrder::DayFirst => ("day/month", "mdy"),
                DateOrder::MonthFirst => ("month/day", "dmy"),
            };
            notices.push(format!(
                "No date shows whether the day or the month comes first; dates are read as \
                 {order}; change that with --dates {other}."
            ));
        }
        self.report_parts(&mut notices);
        notices
    }

    fn report_lines(&self, notices: &mut Vec<String>) {
        if self.garbage.count > 0 {
            notices.push(format!(
                "{} of no report: {}, the first of which is '{}'.",
                counted(self.garbage.count, "line is part", "lines are part"),
                self.garbage.numbers(),
                self.garbage.example
            ));
        }
        if self.cut.count > 0 {
            notices.push(format!(
                "{} cut off ({}), and their figures are used as far as they go.",
                counted(self.cut.count, "line is", "lines are"),
                self.cut.numbers()
            ));
        }
    }

    fn report_parts(&self, notices: &mut Vec<String>) {
        if !self.unknown_columns.is_empty() {
            notices.push(format!(
                "Columns that are not known are passed over: {}.",
                self.unknown_columns.join(", ")
            ));
        }
        if self.since_boot > 0 {
            notices.push(format!(
                "{} the means since boot and left out of the findings; if iostat ran with -y, give \
                 --first interval.",
                counted(
                    self.since_boot,
                    "report is taken to be",
                    "reports are taken to be"
                )
            ));
        }
        if self.alone > 0 {
            notices.push(format!(
                "{} of iostat, and may show the means since boot; only findings from a single \
                 report are searched for in {}.",
                counted(
                    self.alone,
                    "report is the only one of its run",
                    "reports are the only ones of their runs"
                ),
                if self.alone == 1 { "it" } else { "them" }
            ));
        }
        if self.missing > 0 {
            notices.push(format!(
                "Devices are missing in {}; they are taken to have completed nothing there, as \
                 iostat -z leaves them out.",
                counted(self.missing, "place", "places")
            ));
        }
        if !self.groups.is_empty() {
            notices.push(format!(
                "Sums of groups are left out, since their members are listed: {}.",
                self.groups.join(", ")
            ));
        }
        if !self.statistics.is_empty() {
            notices.push(format!(
                "Rows that are statistics of others are left out: {}.",
                self.statistics.join(", ")
            ));
        }
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn remember(names: &mut Vec<String>, name: &str) {
    let name: String = name.chars().take(MAX_LINE_CHARS).collect();
    if names.len() < NAMES && !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_named() {
        let mut notes = Notes::default();
        notes.garbage.add(7, "  rm: cannot\u{1b}[0m remove");
        assert_eq!(
            notes.sentences(),
            [
                "1 line is part of no report: line 7, the first of which is \
              'rm: cannot.[0m remove'."
            ]
        );
        for line in 8..30 {
            notes.garbage.add(line, "x");
        }
        assert!(
            notes.sentences()[0].contains("lines 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 13 more")
        );
    }
}
