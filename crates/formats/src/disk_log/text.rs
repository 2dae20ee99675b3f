//! Reads the text of iostat, line by line.

use std::sync::Arc;

use record::sample::{SampleSource, SourceKind};

use super::Columns;
use super::calendar::Calendar;
use super::column_guess::{self, SUFFICIENT_RELATIONS};
use super::columns::{LastHeader, NamePlace};
use super::landmark::{BannerLine, cpu_header, cpu_shares, is_other_header};
use super::line::{DeviceLine, device_line, has_decimal_comma, headless_figures};
use super::notes::Notes;
use super::number::{Number, number};
use super::report::{Report, Reports};
use super::stamp::{self, PrintedTimestamp};
use super::wrapped::Line;

/// Maximum number of lines that are examined before the columns are guessed.
const MAX_EXAMINED_LINES: usize = 4096;
/// Maximum number of bytes that are examined before the columns are guessed.
const MAX_EXAMINED_BYTES: usize = 1 << 20;

/// Error: the header is missing, and the columns could not be determined.
#[derive(Debug)]
pub(crate) struct ColumnsLost {
    /// The first line of figures.
    pub(crate) line: u64,
    /// Number of figures of most lines.
    pub(crate) figures: usize,
    /// The known headers with this number of columns.
    pub(crate) candidates: Vec<String>,
}

/// Meaning of the present lines of figures.
#[derive(Clone, Debug, PartialEq)]
enum Section {
    /// No header was seen yet.
    Open,
    /// Shares of the processors, with these names.
    Cpu(Vec<String>),
    /// Devices with these columns.
    Devices(Arc<Columns>),
    /// Lines of another report, such as that of NFS, which are ignored.
    Other,
}

/// Reader of iostat's text.
#[derive(Debug)]
pub(crate) struct Text {
    section: Section,
    /// The columns of lines without a header.
    columns: Option<Arc<Columns>>,
    /// True if the user gave these columns.
    given: bool,
    last_header: LastHeader,
    reports: Reports,
    /// Number of blank lines since the line that names the host; `None` after any other line.
    blanks: Option<u32>,
    /// Lines that wait until their columns are known.
    held: Vec<Line<'static>>,
    held_bytes: usize,
    /// Figures of the held lines.
    rows: Vec<Vec<Number>>,
    pub(crate) source: SampleSource,
}

impl Text {
    pub(crate) fn new(columns: Option<Columns>) -> Text {
        Text {
            section: Section::Open,
            given: columns.is_some(),
            last_header: LastHeader::default(),
            columns: columns.map(Arc::new),
            reports: Reports::new(),
            blanks: None,
            held: Vec::new(),
            held_bytes: 0,
            rows: Vec::new(),
            source: SampleSource {
                kind: SourceKind::IostatText,
                ..SampleSource::default()
            },
        }
    }

    /// The next complete report.
    pub(crate) fn take(&mut self) -> Option<Report> {
        self.reports.take()
    }

    /// Reads a line.
    pub(crate) fn line(
        &mut self,
        line: &Line<'_>,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) -> Result<(), ColumnsLost> {
        if self.held.is_empty() && !self.is_headless(&line.text) {
            self.known(line, calendar, notes);
            return Ok(());
        }
        if let Some(columns) = Columns::of_header(&line.text) {
            // The log begins within a report, and the headers come later.
            if column_guess::usual_count(&self.rows) == Some(columns.count()) {
                self.columns = Some(Arc::new(columns));
            }
            self.release(calendar, notes)
                .unwrap_or_else(|_| self.drop_held(notes));
            self.known(line, calendar, notes);
            return Ok(());
        }
        self.hold_line(line);
        if self.held.len() >= MAX_EXAMINED_LINES
            || self.held_bytes >= MAX_EXAMINED_BYTES
            || self.has_known_columns()
        {
            self.release(calendar, notes)?;
        }
        Ok(())
    }

    /// Handles the end of the text, or of the log.
    pub(crate) fn end(
        &mut self,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) -> Result<(), ColumnsLost> {
        self.release(calendar, notes)?;
        self.end_form(calendar, notes);
        Ok(())
    }

    /// Handles the change to another format. Figures whose columns are still unknown are dropped.
    pub(crate) fn end_form(&mut self, calendar: &mut Calendar, notes: &mut Notes) {
        self.release(calendar, notes)
            .unwrap_or_else(|_| self.drop_held(notes));
        self.reports.cut();
        self.section = Section::Open;
    }

    /// True if a line has figures of a device whose columns are unknown.
    fn is_headless(&self, text: &str) -> bool {
        let open = matches!(self.section, Section::Open | Section::Cpu(_));
        open && self.columns.is_none() && headless_figures(text).is_some()
    }

    fn hold_line(&mut self, line: &Line<'_>) {
        self.rows.extend(headless_figures(&line.text));
        self.held_bytes += line.text.len() + 64;
        self.held.push(line.clone().into_owned());
    }

    /// Drops the figures before the first header, which has other columns.
    fn drop_held(&mut self, notes: &mut Notes) {
        for held in std::mem::take(&mut self.held) {
            if headless_figures(&held.text).is_some() {
                self.note_lost_line(&held, notes);
            }
        }
        self.rows.clear();
        self.held_bytes = 0;
    }

    /// True if the columns of the held lines can be determined. Tested only at every 64th line, since it takes time.
    fn has_known_columns(&self) -> bool {
        self.rows.len().is_multiple_of(64)
            && column_guess::guess(&self.rows)
                .is_some_and(|guess| guess.checked >= SUFFICIENT_RELATIONS)
    }

    /// Reads the held lines with the columns determined from them.
    fn release(&mut self, calendar: &mut Calendar, notes: &mut Notes) -> Result<(), ColumnsLost> {
        let Some(first) = self.held.first() else {
            return Ok(());
        };
        if self.columns.is_none() {
            let Some(guess) = column_guess::guess(&self.rows) else {
                return Err(ColumnsLost {
                    line: first.number,
                    figures: column_guess::usual_count(&self.rows).unwrap_or_default(),
                    candidates: column_guess::candidates_text(&self.rows),
                });
            };
            self.columns = Some(Arc::new(guess.columns.clone()));
            notes.guess = Some(guess);
        }
        self.rows.clear();
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            self.known(&held, calendar, notes);
        }
        Ok(())
    }

    /// Reads a line; its columns are known if it has figures.
    fn known(&mut self, line: &Line<'_>, calendar: &mut Calendar, notes: &mut Notes) {
        let text = &*line.text;
        if text.trim().is_empty() {
            self.reports.blank();
            if let Some(blanks) = &mut self.blanks {
                *blanks += 1;
            }
            return;
        }
        // If the means since boot are omitted, a blank line takes their place.
        if self.blanks.take().is_some_and(|blanks| blanks >= 2) {
            self.reports.omit_boot();
        }
        // Fast path: most lines are rows of figures. Other lines have no number after their first word, except a date
        // or the release of a kernel.
        let mut words = text.split_whitespace();
        let is_date = words.next().is_some_and(stamp::is_weekday);
        let mut are_figures = words.map(|word| number(word).is_some());
        let has_figures =
            !is_date && are_figures.next() == Some(true) && are_figures.next() != Some(false);
        if !has_figures && self.landmark(line.number, text, calendar, notes) {
            self.time_in_front(line.front, calendar);
        } else {
            self.figures(line, calendar, notes);
        }
    }

    /// Reads a line that begins a section or is a time.
    fn landmark(
        &mut self,
        line: u64,
        text: &str,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) -> bool {
        if let Some(machine) = BannerLine::of_line(text) {
            self.reports.begin_run();
            calendar.begin_run(machine.date);
            machine.note(&mut self.source);
            self.blanks = Some(0);
            self.section = Section::Open;
        } else if let Some(names) = cpu_header(text) {
            self.reports.begin_cpu(line);
            self.section = Section::Cpu(names);
        } else if let Some(columns) = self.last_header.columns(text) {
            for name in columns.unknown() {
                notes.unknown_column(name);
            }
            self.reports.header(line, &columns);
            if columns.names == NamePlace::First && !self.given {
                self.columns = Some(columns.clone());
            }
            self.section = Section::Devices(columns);
        } else if let Some(stamp) = stamp::stamp(text) {
            let at = calendar.instant(&stamp);
            self.reports.begin_at(line, at);
        } else if is_other_header(text) {
            self.section = Section::Other;
        } else {
            return false;
        }
        true
    }

    /// Sets the time of the current report, if it is printed before each line.
    fn time_in_front(&mut self, front: Option<PrintedTimestamp>, calendar: &mut Calendar) {
        if self.reports.lacks_time()
            && let Some(stamp) = front
        {
            self.reports.set_time(calendar.instant(&stamp));
        }
    }

    /// Reads a line of figures.
    fn figures(&mut self, line: &Line<'_>, calendar: &mut Calendar, notes: &mut Notes) {
        let text = &*line.text;
        calendar.commas |= has_decimal_comma(text);
        let first = text.split_whitespace().next().unwrap_or_default();
        let cpu = match &self.section {
            _ if number(first).is_none() => None,
            Section::Cpu(names) => cpu_shares(text, Some(names)),
            _ => cpu_shares(text, None),
        };
        if let Some(cpu) = cpu {
            self.reports.cpu(line.number, cpu);
            return;
        }
        let columns = match &self.section {
            Section::Devices(columns) => columns.clone(),
            Section::Other => return,
            _ => match &self.columns {
                Some(columns) => columns.clone(),
                None => return self.note_lost_line(line, notes),
            },
        };
        match device_line(&columns, text, line.terminated) {
            Some(DeviceLine { row, cut }) => {
                if cut {
                    notes.cut.add(line.number, text);
                    self.reports.mark_damaged();
                }
                if !self.reports.row(line.number, row) {
                    self.note_lost_line(line, notes);
                }
            }
            None => self.note_lost_line(line, notes),
        }
    }

    fn note_lost_line(&mut self, line: &Line<'_>, notes: &mut Notes) {
        notes.garbage.add(line.number, &line.text);
        self.reports.mark_damaged();
    }
}
