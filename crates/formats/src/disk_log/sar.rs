//! Reads the output of `sar -d`, alone or among other reports of sar (`sar -A`).

use jiff::civil::Time;

use super::calendar::{Calendar, Instant};
use super::clock::time_of_day;
use super::columns::NamePlace;
use super::line::has_decimal_comma;
use super::notes::Notes;
use super::number::{Number, number};
use super::report::{Reports, Row};
use super::row::Figures;
use super::stamp::PrintedTimestamp;
use super::{Columns, other_tool};

/// Words in the line for a start of the host.
const RESTART_WORDS: [&str; 2] = ["LINUX", "RESTART"];
/// Maximum number of words of a time of day, with the half of the day and a zone.
const TIME_FIELDS: usize = 5;
const DAY: f64 = 86_400.0;
/// Columns that no other report of sar has together.
pub(crate) const NAMES: [&str; 2] = ["DEV", "tps"];

/// Meaning of the rows below a header.
#[derive(Debug)]
enum Table {
    Disks {
        columns: Columns,
        /// Number of words of the time before each row.
        time_fields: usize,
    },
    /// Another report of sar, or no table.
    Other,
}

/// A printed time of day.
#[derive(Clone, Copy, Debug)]
struct PrintedTime {
    time: Time,
    at: Option<Instant>,
}

impl PrintedTime {
    /// Seconds since an earlier time; without dates, less than a day.
    fn since(&self, earlier: &PrintedTime) -> f64 {
        let instants = self.at.zip(earlier.at);
        let by_date = instants.map(|(now, then)| now.at.duration_since(then.at).as_secs_f64());
        by_date
            .filter(|seconds| *seconds >= 0.0)
            .unwrap_or_else(|| clockwise(earlier.time, self.time))
    }
}

/// Seconds from one time of day to the next occurrence of another.
fn clockwise(from: Time, to: Time) -> f64 {
    from.duration_until(to).as_secs_f64().rem_euclid(DAY)
}

/// A reader of sar's text.
#[derive(Debug)]
pub(crate) struct Sar {
    table: Table,
    /// Start of the next interval: the time of the last report, or of the header before the first one.
    last: Option<PrintedTime>,
    /// True if a report has begun at that time.
    is_open: bool,
    pub(crate) reports: Reports,
}

impl Sar {
    pub(crate) fn new() -> Sar {
        Sar {
            table: Table::Other,
            last: None,
            is_open: false,
            reports: Reports::new(),
        }
    }

    /// True if this line is a disk header of sar, or its line for a start of the host.
    pub(crate) fn begins(text: &str) -> bool {
        disks(text).is_some() || is_restart(text)
    }

    /// Begins a run of sar, or the part of a file after a restart.
    pub(crate) fn begin_run(&mut self) {
        self.reports.begin_run();
        self.table = Table::Other;
        self.last = None;
        self.is_open = false;
    }

    /// Reads a line. `terminated`: a line end follows it.
    pub(crate) fn line(
        &mut self,
        line: u64,
        text: &str,
        terminated: bool,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) {
        if text.trim().is_empty() {
            return;
        }
        if is_restart(text) {
            return self.begin_run();
        }
        if let Some((stamp, table)) = header(text) {
            return self.header(stamp, table, calendar, notes);
        }
        let Table::Disks {
            columns,
            time_fields,
        } = &self.table
        else {
            return;
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let (time, rest) = words.split_at((*time_fields).min(words.len()));
        let Some(stamp) = time_of_day(&time.join(" ")) else {
            if !is_means(columns, &words) {
                notes.garbage.add(line, text);
            }
            return;
        };
        calendar.commas |= has_decimal_comma(text);
        let Some((name, numbers)) = device(columns, rest) else {
            // A comment that a user added: '12:00:01  COM  upgrade'.
            if rest.first() != Some(&"COM") {
                notes.garbage.add(line, text);
                self.reports.mark_damaged();
            }
            return;
        };
        let is_short = numbers.len() < columns.count();
        let mut figures = Figures::default();
        let known = match is_short && !terminated {
            true => &numbers[..numbers.len() - 1],
            false => &numbers[..],
        };
        for (column, number) in columns.list.iter().zip(known) {
            figures.set(*column, *number);
        }
        if is_short {
            notes.cut.add(line, text);
        }
        let row = Row {
            name,
            group: false,
            figures,
        };
        self.row(line, &stamp, row, calendar, notes);
        if is_short {
            self.reports.mark_damaged();
        }
    }

    fn header(
        &mut self,
        stamp: PrintedTimestamp,
        table: Table,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) {
        if let Table::Disks { columns, .. } = &table {
            for name in columns.unknown() {
                notes.unknown_column(name);
            }
            // On a terminal the header is repeated within a report, with the time of the previous report.
            let is_later = self.last.is_none_or(|last| {
                let passed = clockwise(last.time, stamp.time);
                passed > 0.0 && passed < DAY / 2.0
            });
            if is_later {
                self.begin_at(&stamp, calendar);
                self.is_open = false;
            }
        } else {
            self.reports.end();
            self.last = None;
            self.is_open = false;
        }
        self.table = table;
    }

    fn row(
        &mut self,
        line: u64,
        stamp: &PrintedTimestamp,
        row: Row,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) {
        let is_same = self.last.is_some_and(|last| last.time == stamp.time);
        if !is_same {
            let last = self.last;
            let now = self.begin_at(stamp, calendar);
            let length = last.map(|last| now.since(&last));
            self.reports.begin_at(line, now.at);
            self.reports.set_length(length);
            self.is_open = true;
        }
        // Two records in the same second have no interval between them, and no rates.
        if !self.is_open || self.reports.has(&row.name) {
            return;
        }
        if !self.reports.row(line, row) {
            notes.garbage.add(line, "");
        }
    }

    fn begin_at(&mut self, stamp: &PrintedTimestamp, calendar: &mut Calendar) -> PrintedTime {
        let printed = PrintedTime {
            time: stamp.time,
            at: calendar.instant(stamp),
        };
        self.last = Some(printed);
        printed
    }
}

/// True if this line is the header of any report of sar: a disk report may follow.
pub(crate) fn may_begin(text: &str) -> bool {
    header(text).is_some()
}

/// The number of words of the time, and the columns, of a header of `sar -d`.
pub(crate) fn disks(text: &str) -> Option<(usize, Columns)> {
    if !NAMES.iter().all(|name| text.contains(name)) {
        return None;
    }
    match header(text)?.1 {
        Table::Disks {
            columns,
            time_fields,
        } => Some((time_fields, columns)),
        Table::Other => None,
    }
}

fn is_restart(text: &str) -> bool {
    if !text.contains(RESTART_WORDS[0]) {
        return false;
    }
    let mut words = text.split_whitespace();
    let mut time: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        if word == RESTART_WORDS[0] {
            return words.next() == Some(RESTART_WORDS[1])
                && time_of_day(&time.join(" ")).is_some();
        }
        time.push(word);
        if time.len() > TIME_FIELDS {
            return false;
        }
    }
    false
}

/// True if a line shows means over all intervals. They follow the last interval, after 'Average:' in the host's
/// language.
fn is_means(columns: &Columns, words: &[&str]) -> bool {
    let numbers = words.iter().filter(|word| number(word).is_some()).count();
    numbers >= columns.count() || NAMES.iter().all(|name| words.contains(name))
}

/// The time and the meaning of a header of sar.
fn header(text: &str) -> Option<(PrintedTimestamp, Table)> {
    if text.len() > 1024 || !text.contains(['/', '%']) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let most = TIME_FIELDS.min(words.len());
    if let Some(time_fields) = words.iter().position(|word| NAMES.contains(word))
        && NAMES.iter().all(|name| words.contains(name))
    {
        let stamp = time_of_day(&words[..time_fields.min(most)].join(" "))?;
        let columns = Columns::of_names(&words[time_fields..].join(" "))?;
        let table = Table::Disks {
            columns,
            time_fields,
        };
        return Some((stamp, table));
    }
    (1..=most).find_map(|count| {
        let (time, names) = words.split_at(count);
        let stamp = time_of_day(&time.join(" "))?;
        other_tool::is_sysstats(names).then_some((stamp, Table::Other))
    })
}

/// Name and figures of a row. A row with fewer figures than columns was cut off.
fn device(columns: &Columns, words: &[&str]) -> Option<(String, Vec<Number>)> {
    let (name, figures) = match columns.names {
        NamePlace::First => words.split_first()?,
        NamePlace::Last if words.len() == columns.count() + 1 => {
            let (name, figures) = words.split_last()?;
            (name, figures)
        }
        NamePlace::Last => return None,
    };
    let is_fitting = (1..=columns.count()).contains(&figures.len());
    let numbers: Option<Vec<Number>> = figures.iter().map(|word| number(word)).collect();
    Some(((*name).to_owned(), numbers.filter(|_| is_fitting)?))
}
