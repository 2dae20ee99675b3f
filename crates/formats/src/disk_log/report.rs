//! Assembles the lines of a report, and finds the beginning of the next one.

use std::collections::{HashMap, VecDeque};

use record::sample::CpuShares;

use super::calendar::Instant;
use super::columns::Columns;
use super::row::Figures;

/// Figures of a device, from one line or several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// True if it is the sum of a group of devices (`-g`).
    pub(crate) group: bool,
    pub(crate) figures: Figures,
}

/// A report of iostat, printed at the end of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// The line where it begins.
    pub(crate) line: u64,
    /// True if it is the first report of a run of iostat.
    pub(crate) first: bool,
    /// True if it is the first report of a run that omitted the means since boot (`-y`).
    pub(crate) boot_omitted: bool,
    pub(crate) at: Option<Instant>,
    /// Length of its interval in seconds, if the log gives it; then the report does not show means since boot.
    pub(crate) length: Option<f64>,
    pub(crate) cpu: Option<CpuShares>,
    pub(crate) rows: Vec<Row>,
    /// True if lines of the report are lost, so that missing devices were not necessarily idle.
    pub(crate) damaged: bool,
    has_header: bool,
}

impl Report {
    /// A report of an interval.
    pub(crate) fn of_interval(line: u64, at: Instant, length: f64, rows: Vec<Row>) -> Report {
        Report {
            line,
            at: Some(at),
            length: Some(length),
            rows,
            ..Report::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cpu.is_none() && !self.has_header
    }
}

/// Maximum number of devices in a report, so that memory is bounded.
const MAX_ROWS: usize = 1 << 16;

/// Builder of reports, line by line.
#[derive(Debug)]
pub(crate) struct Reports {
    current: Report,
    /// The headers of the current report so far.
    headers: Vec<String>,
    /// Index of each device's row.
    places: HashMap<String, usize>,
    next_is_first: bool,
    boot_omitted: bool,
    done: VecDeque<Report>,
}

impl Reports {
    pub(crate) fn new() -> Reports {
        Reports {
            current: Report::default(),
            headers: Vec::new(),
            places: HashMap::new(),
            next_is_first: true,
            boot_omitted: false,
            done: VecDeque::new(),
        }
    }

    /// The next complete report.
    pub(crate) fn take(&mut self) -> Option<Report> {
        self.done.pop_front()
    }

    /// Ends the current report, if there is one.
    pub(crate) fn end(&mut self) {
        self.headers.clear();
        self.places.clear();
        let mut report = std::mem::take(&mut self.current);
        if report.is_empty() {
            // A time without figures belongs to the next report.
            self.current.at = report.at;
            self.current.line = report.line;
            self.current.damaged = report.damaged;
            return;
        }
        report.first = std::mem::take(&mut self.next_is_first);
        report.boot_omitted = std::mem::take(&mut self.boot_omitted);
        self.done.push_back(report);
    }

    /// Ends the current report, since the log ends: some of its devices may be missing.
    pub(crate) fn cut(&mut self) {
        self.current.damaged = true;
        self.end();
        self.current = Report::default();
    }

    /// Begins a run of iostat. A time before it belongs to its first report, as from a script that runs `date` and
    /// iostat repeatedly.
    pub(crate) fn begin_run(&mut self) {
        self.end();
        self.current.damaged = false;
        self.next_is_first = true;
        self.boot_omitted = false;
    }

    /// Records that the run that has begun omitted the means since boot.
    pub(crate) fn omit_boot(&mut self) {
        self.boot_omitted = true;
    }

    /// Handles a blank line. iostat prints none between a header and its first row: if there is one, another program
    /// put them between all lines, and blank lines have no meaning.
    pub(crate) fn blank(&mut self) {
        if self.current.has_header && self.current.rows.is_empty() {
            self.boot_omitted = false;
        }
    }

    /// Begins a report at this time.
    pub(crate) fn begin_at(&mut self, line: u64, at: Option<Instant>) {
        self.end();
        self.current.line = line;
        self.current.at = at;
    }

    /// Sets the length of the current report's interval in seconds.
    pub(crate) fn set_length(&mut self, seconds: Option<f64>) {
        self.current.length = seconds;
    }

    /// Sets the time of the current report, which is printed within it.
    pub(crate) fn set_time(&mut self, at: Option<Instant>) {
        self.current.at = at;
    }

    /// Begins a report, unless the current one is empty: the shares of the processors come next.
    pub(crate) fn begin_cpu(&mut self, line: u64) {
        if !self.current.is_empty() {
            self.end();
        }
        self.touch(line);
    }

    /// Sets the shares of the processors; begins a report if the current one already has them.
    pub(crate) fn cpu(&mut self, line: u64, cpu: CpuShares) {
        if self.current.cpu.is_some() {
            self.end();
        }
        self.touch(line);
        self.current.cpu = Some(cpu);
    }

    /// Handles the header of a table of devices. A header that the report already has begins the next report; with `-h`
    /// a report has several different ones.
    pub(crate) fn header(&mut self, line: u64, columns: &Columns) {
        if self.headers.iter().any(|header| header == columns.text()) {
            self.end();
        }
        self.touch(line);
        self.headers.push(columns.text().to_owned());
        self.current.has_header = true;
    }

    /// Adds a row; false if the report has too many devices.
    pub(crate) fn row(&mut self, line: u64, row: Row) -> bool {
        if let Some(known) = self.places.get(&row.name).copied() {
            let place = &mut self.current.rows[known].figures;
            if !place.overlaps(&row.figures) {
                place.join(&row.figures);
                return true;
            }
            // The header is missing, or the last part of the previous report.
            self.end();
        }
        if self.current.rows.len() >= MAX_ROWS {
            return false;
        }
        self.touch(line);
        self.places
            .insert(row.name.clone(), self.current.rows.len());
        self.current.rows.push(row);
        true
    }

    /// True if a report has begun whose time is not known yet.
    pub(crate) fn lacks_time(&self) -> bool {
        self.current.line != 0 && self.current.at.is_none()
    }

    /// True if the current report has lines of devices.
    pub(crate) fn has_rows(&self) -> bool {
        !self.current.rows.is_empty()
    }

    /// True if the current report has a device of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// True if the current report has the shares of the processors.
    pub(crate) fn has_cpu(&self) -> bool {
        self.current.cpu.is_some()
    }

    /// Marks the current report as damaged, since a line of it is lost.
    pub(crate) fn mark_damaged(&mut self) {
        self.current.damaged = true;
    }

    fn touch(&mut self, line: u64) {
        if self.current.line == 0 {
            self.current.line = line;
        }
    }
}
