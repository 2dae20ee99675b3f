//! The logs of `iostat`: text of sysstat 5 to 12, and JSON.
//!
//! A log is read as a stream of [`Reading`]s, in bounded memory however long it is. What a column
//! means is given by its header; where headers are missing, by the user or by a guess that
//! the figures must bear out. The form is that of iostat(1) and of what it prints (`fixtures/`).

mod calendar;
mod columns;
mod json;
mod known;
mod landmark;
mod line;
mod lines;
mod notes;
mod number;
mod other;
mod pace;
mod prefix;
mod report;
mod row;
mod series;
mod stamp;
mod text;

pub use calendar::DateOrder;
pub use columns::{Columns, ColumnsError};
pub use known::Guess;
pub use notes::{Lines, Notes};
pub use other::OtherTool;

use std::io::{self, BufRead};

use jiff::tz::TimeZone;
use record::Nanos;
use record::sample::{Sample, Source};

use calendar::Calendar;
use json::Json;
use series::Series;
use text::{NoColumns, Text};

/// Content of the first report of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// Told by the blank line that `iostat -y` leaves in its place; else the means since boot.
    #[default]
    Tell,
    /// The means since boot.
    SinceBoot,
    /// An interval like the others, as with `iostat -y`.
    Interval,
}

/// Facts that a log may not tell of itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The columns of lines without a header.
    pub columns: Option<Columns>,
    /// Length of the intervals.
    pub interval: Option<Nanos>,
    /// The zone of times without one.
    pub zone: TimeZone,
    /// Order of day and month in dates.
    pub dates: Option<DateOrder>,
    /// Content of the first report of a run.
    pub first: First,
}

impl Default for Options {
    /// All is told by the log, and its times are UTC.
    fn default() -> Options {
        Options {
            columns: None,
            interval: None,
            zone: TimeZone::UTC,
            dates: None,
            first: First::default(),
        }
    }
}

/// A report of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The sample.
    pub sample: Sample,
    /// The line where it begins, from 1.
    pub line: u64,
    /// It shows the means since boot. It has no place among the intervals, and its length is zero
    /// where nothing tells it.
    pub since_boot: bool,
    /// It is the only report of its run of iostat, and nothing tells its length, if that is zero. Where it is
    /// the means since boot, nothing better is known of that run.
    pub alone: bool,
    /// The run of iostat that printed it, from 1; all are 1 where nothing tells where runs begin.
    pub run: u64,
}

/// Reason for which a log was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log could not be read.
    #[error("it could not be read further than line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// The system's error.
        source: io::Error,
    },
    /// It is compressed.
    #[error(
        "it is compressed; decompress it first, for instance with zcat, and give '-' to read it \
         from a pipe"
    )]
    Compressed,
    /// The headers are gone, and what the figures mean cannot be determined.
    #[error(
        "line {line}: no header says what the {figures} figures of each device are, and no known \
         columns fit them beyond doubt; give them with --columns{}",
        such_as(.candidates)
    )]
    NoColumns {
        /// The first line of figures.
        line: u64,
        /// Number of figures of most lines.
        figures: usize,
        /// The known headers with so many columns, with what prints them.
        candidates: Vec<String>,
    },
    /// Another tool wrote it.
    #[error("line {line} looks like the output of {}; {}", .tool.name, .tool.instead)]
    Other {
        /// The line by which the tool is known.
        line: u64,
        /// The tool.
        tool: OtherTool,
    },
    /// There is no report.
    #[error("it holds no report of iostat, in none of its {lines} lines")]
    Nothing {
        /// Number of lines.
        lines: u64,
    },
}

fn such_as(list: &[String]) -> String {
    if list.is_empty() {
        return ", as the header of the log would: 'Device r/s w/s rkB/s wkB/s await %util'"
            .to_owned();
    }
    format!(", such as {}", list.join(", "))
}

impl From<NoColumns> for LogError {
    fn from(no: NoColumns) -> LogError {
        LogError::NoColumns {
            line: no.line,
            figures: no.figures,
            candidates: no.candidates,
        }
    }
}

/// Reads a log. Iterate over it; each item is a report.
#[derive(Debug)]
pub struct Reader<R> {
    lines: lines::Lines<R>,
    parts: Parts,
    at_end: bool,
    failed: bool,
}

/// State of a log's reader, without the log itself.
#[derive(Debug)]
struct Parts {
    text: Text,
    json: Json,
    in_json: bool,
    calendar: Calendar,
    series: Series,
    notes: Notes,
    line: u64,
    any: bool,
    /// The first line that looks like another tool's, in front of all reports.
    other: Option<(u64, OtherTool)>,
}

/// Number of lines that are searched for signs of other tools.
const LOOKED_AT: u64 = 10_000;

/// First bytes of gzip, xz, zstd and bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh"];

impl<R: BufRead> Reader<R> {
    /// A reader of the log `input`.
    pub fn new(input: R, options: Options) -> Reader<R> {
        Reader {
            lines: lines::Lines::new(input),
            parts: Parts {
                text: Text::new(options.columns),
                json: Json::new(),
                in_json: false,
                calendar: Calendar::new(options.zone, options.dates),
                series: Series::new(options.first, options.interval),
                notes: Notes::default(),
                line: 0,
                any: false,
                other: None,
            },
            at_end: false,
            failed: false,
        }
    }

    /// Facts about the log as a whole, so far.
    pub fn source(&self) -> &Source {
        match self.parts.json.source.hostname {
            Some(_) => &self.parts.json.source,
            None => &self.parts.text.source,
        }
    }

    /// Remarks on the log so far. It is complete when the iteration is.
    pub fn notes(&self) -> &Notes {
        &self.parts.notes
    }

    /// Bytes of the log that were taken so far.
    pub fn bytes_taken(&self) -> u64 {
        self.lines.taken()
    }

    /// Reads a piece of the log, or notes its end.
    fn step(&mut self) -> Result<(), LogError> {
        let piece = self.lines.next().map_err(|source| LogError::Io {
            line: self.parts.line,
            source,
        })?;
        match piece {
            Some(piece) => self.parts.piece(&piece),
            None => {
                self.at_end = true;
                self.parts.end()
            }
        }
        .map_err(|error| self.parts.of_other(error))
    }
}

impl Parts {
    fn piece(&mut self, piece: &lines::Piece<'_>) -> Result<(), LogError> {
        self.line = piece.line;
        if piece.line == 1 && piece.begins && COMPRESSED.iter().any(|m| piece.bytes.starts_with(m))
        {
            return Err(LogError::Compressed);
        }
        let text = String::from_utf8_lossy(piece.bytes);
        if !self.any && self.other.is_none() && piece.line <= LOOKED_AT {
            self.other = other::tool(&text).map(|tool| (piece.line, tool));
        }
        if piece.begins && self.in_json && is_text(&text) {
            self.json.end(&mut self.notes);
            self.in_json = false;
        } else if piece.begins && !self.in_json && Json::begins(&text) {
            self.text.end(&mut self.calendar, &mut self.notes)?;
            self.in_json = true;
        }
        let (calendar, notes) = (&mut self.calendar, &mut self.notes);
        if self.in_json {
            self.json
                .feed(piece.line, piece.bytes, piece.terminated, calendar, notes);
            if piece.ends && self.json.is_outside() {
                self.json.end(notes);
                self.in_json = false;
            }
        } else if piece.begins && piece.ends {
            self.text
                .line(piece.line, &text, piece.terminated, calendar, notes)?;
        } else {
            let beginning: String = text.chars().take(100).collect();
            notes.garbage.add(piece.line, &beginning);
        }
        self.pass_on();
        Ok(())
    }

    fn end(&mut self) -> Result<(), LogError> {
        self.json.end(&mut self.notes);
        self.text.end(&mut self.calendar, &mut self.notes)?;
        self.pass_on();
        self.series.finish(&mut self.notes);
        self.notes.date_order = self.calendar.assumed();
        if !self.any {
            return Err(LogError::Nothing { lines: self.line });
        }
        Ok(())
    }

    /// The error, or that of another tool's output where that is the reason.
    fn of_other(&self, error: LogError) -> LogError {
        let is_unknown = matches!(error, LogError::NoColumns { .. } | LogError::Nothing { .. });
        match self.other.filter(|_| is_unknown && !self.any) {
            Some((line, tool)) => LogError::Other { line, tool },
            None => error,
        }
    }

    /// Makes samples of the reports that are complete.
    fn pass_on(&mut self) {
        loop {
            let Some(report) = self.text.take().or_else(|| self.json.take()) else {
                return;
            };
            self.any = true;
            self.series.push(report, &mut self.notes);
        }
    }
}

/// True if a line within JSON belongs to a text log that was appended behind a cut.
fn is_text(line: &str) -> bool {
    ["Linux ", "avg-cpu", "Device"]
        .iter()
        .any(|start| line.starts_with(start))
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Reading, LogError>;

    fn next(&mut self) -> Option<Result<Reading, LogError>> {
        loop {
            if let Some(reading) = self.parts.series.take() {
                return Some(Ok(reading));
            }
            if self.at_end || self.failed {
                return None;
            }
            if let Err(error) = self.step() {
                self.failed = true;
                return Some(Err(error));
            }
        }
    }
}
