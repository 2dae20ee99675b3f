//! Reads the disks in the output of `sadf -d` (semicolons) and `sadf -p` (tabs, a line for each figure).

use jiff::Timestamp;

use super::Columns;
use super::calendar::{Calendar, Instant};
use super::columns::Column;
use super::notes::Notes;
use super::number::number;
use super::report::{Reports, Row};
use super::row::Figures;
use super::stamp::stamp;

/// Start of a header of `sadf -d`.
const HEADER: &str = "# hostname;interval;timestamp;";
/// Word in place of a device in a line for a start of the host.
const RESTART_WORD: &str = "LINUX-RESTART";
/// Number of fields before the device.
const FIELDS_BEFORE_DEVICE: usize = 3;
/// Number of fields in a line of `sadf -p`.
const FIGURE_FIELDS: usize = 6;

/// Format of the output.
#[derive(Debug)]
enum Table {
    /// `sadf -d` of disks.
    Disks(Columns),
    /// `sadf -d` of something else.
    Other,
    /// `sadf -p`.
    Figures,
}

/// A reader of sadf's text.
#[derive(Debug)]
pub(crate) struct Sadf {
    table: Table,
    /// Printed time, and length in seconds, of the current report.
    current: Option<(String, u64)>,
    hostname: Option<String>,
    pub(crate) reports: Reports,
}

/// The fields before a device.
struct LeadingFields<'a> {
    hostname: &'a str,
    /// Length of the interval in seconds; 0 between two records in the same second, and at a start of the host.
    interval: u64,
    time: &'a str,
}

impl<'a> LeadingFields<'a> {
    fn of(fields: &[&'a str]) -> Option<LeadingFields<'a>> {
        let [hostname, interval, time] = *fields.first_chunk::<FIELDS_BEFORE_DEVICE>()?;
        let interval: i64 = interval.parse().ok()?;
        Some(LeadingFields {
            hostname,
            interval: u64::try_from(interval).unwrap_or_default(),
            time,
        })
    }
}

impl Sadf {
    pub(crate) fn new() -> Sadf {
        Sadf {
            table: Table::Other,
            current: None,
            hostname: None,
            reports: Reports::new(),
        }
    }

    /// True if this line is output of sadf.
    pub(crate) fn begins(text: &str) -> bool {
        let is_restart =
            || text.contains(RESTART_WORD) && [';', '\t'].iter().any(|by| is_restart(text, *by));
        header(text).is_some() || is_figure(text) || is_restart()
    }

    /// The host of a line of figures.
    pub(crate) fn host_of(text: &str) -> Option<&str> {
        let fields: Vec<&str> = text
            .split(separator_of(text))
            .take(FIELDS_BEFORE_DEVICE)
            .collect();
        LeadingFields::of(&fields).map(|leading| leading.hostname)
    }

    /// The host of the last figures.
    pub(crate) fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
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
        if let Some(table) = header(text) {
            if let Table::Disks(columns) = &table {
                for name in columns.unknown() {
                    notes.unknown_column(name);
                }
            }
            self.table = table;
            return;
        }
        if is_figure(text) {
            self.table = Table::Figures;
        }
        let separator = separator_of(text);
        if is_restart(text, separator) {
            self.reports.begin_run();
            self.current = None;
            return;
        }
        let fields: Vec<&str> = text.split(separator).collect();
        let Some(leading) = LeadingFields::of(&fields) else {
            return notes.garbage.add(line, text);
        };
        let rest = &fields[FIELDS_BEFORE_DEVICE..];
        let row = match &self.table {
            Table::Other => return,
            Table::Disks(columns) => columns_of(columns, rest, terminated),
            Table::Figures => figure_of(rest),
        };
        match row {
            Ok(Some(row)) => {
                if !self.row(line, &leading, row, calendar) {
                    notes.garbage.add(line, text);
                }
            }
            Err(TruncatedLine) => {
                notes.cut.add(line, text);
                self.reports.mark_damaged();
            }
            Ok(None) => {}
        }
    }

    /// Adds a row; false if the report has too many devices.
    fn row(
        &mut self,
        line: u64,
        leading: &LeadingFields<'_>,
        row: Row,
        calendar: &mut Calendar,
    ) -> bool {
        if self.hostname.as_deref() != Some(leading.hostname) {
            self.reports.begin_run();
            self.current = None;
            self.hostname = Some(leading.hostname.to_owned());
        }
        // Two records in the same second have no interval between them, and no rates.
        if leading.interval == 0 {
            return true;
        }
        let is_same = self
            .current
            .as_ref()
            .is_some_and(|(time, interval)| time == leading.time && *interval == leading.interval);
        if !is_same {
            let Some(at) = instant(leading.time, calendar) else {
                return false;
            };
            self.reports.begin_at(line, Some(at));
            self.reports.set_length(Some(leading.interval as f64));
            self.current = Some((leading.time.to_owned(), leading.interval));
        }
        self.reports.row(line, row)
    }
}

/// The end of a line is missing.
struct TruncatedLine;

fn separator_of(text: &str) -> char {
    if text.contains(';') { ';' } else { '\t' }
}

/// Row from the fields after the time; `None` for another report of sar.
type ParsedRow = Result<Option<Row>, TruncatedLine>;

fn columns_of(columns: &Columns, fields: &[&str], terminated: bool) -> ParsedRow {
    let Some((name, numbers)) = fields.split_first() else {
        return Err(TruncatedLine);
    };
    if numbers.first().is_none_or(|first| number(first).is_none()) {
        // A comment: 'COM;upgrade'.
        return Ok(None);
    }
    if numbers.len() != columns.count() || !terminated {
        return Err(TruncatedLine);
    }
    let mut figures = Figures::default();
    for (column, text) in columns.list.iter().zip(numbers) {
        match number(text) {
            Some(number) => figures.set(*column, number),
            None => return Err(TruncatedLine),
        }
    }
    Ok(Some(Row {
        name: (*name).to_owned(),
        group: false,
        figures,
    }))
}

/// A line of `sadf -p`: device, name of the figure, figure.
fn figure_of(fields: &[&str]) -> ParsedRow {
    let [name, column, value] = fields else {
        return Ok(None);
    };
    let column = Column::by_name(column);
    // Totals of the host, as `tps` of sar -b, have a dash in place of a device.
    if *name == "-" || column == Column::Unknown {
        return Ok(None);
    }
    let Some(number) = number(value) else {
        return Err(TruncatedLine);
    };
    let mut figures = Figures::default();
    figures.set(column, number);
    Ok(Some(Row {
        name: (*name).to_owned(),
        group: false,
        figures,
    }))
}

/// Table below a header of `sadf -d`. With -h, one row has all devices, which is not supported.
fn header(text: &str) -> Option<Table> {
    let names = text.strip_prefix(HEADER)?;
    let disks = names
        .strip_prefix("DEV;")
        .filter(|names| !names.contains('['));
    let columns =
        disks.and_then(|names| Columns::of_names(&format!("DEV {}", names.replace(';', " "))));
    Some(columns.map_or(Table::Other, Table::Disks))
}

/// True if the line records a start of the host.
fn is_restart(text: &str, separator: char) -> bool {
    let fields: Vec<&str> = text.split(separator).collect();
    let place = fields.get(FIELDS_BEFORE_DEVICE);
    place.is_some_and(|place| place.starts_with(RESTART_WORD))
        && LeadingFields::of(&fields).is_some()
}

fn is_figure(text: &str) -> bool {
    let mut fields = text.split('\t');
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    text.contains('\t')
        && fields.clone().count() == FIGURE_FIELDS
        && fields.nth(1).is_some_and(is_number)
        && fields
            .next()
            .is_some_and(|time| stamp(time).is_some() || is_number(time))
}

/// Parses a time as sadf prints it: followed by UTC, in the host's zone (`-t`), or in seconds since 1970 (`-U`).
fn instant(text: &str, calendar: &mut Calendar) -> Option<Instant> {
    if let Ok(seconds) = text.parse() {
        return Some(Instant {
            at: Timestamp::from_second(seconds).ok()?,
            corrected: None,
        });
    }
    calendar.instant(&stamp(text)?)
}
