//! Recognizes the format of a log, and makes samples from the reports of the format's reader.

use std::borrow::Cow;
use std::io::BufRead;

use record::sample::{SampleSource, SourceKind};

use super::calendar::Calendar;
use super::json::Json;
use super::landmark::{BannerLine, strip_colours};
use super::lines::{LinePiece, Lines};
use super::notes::Notes;
use super::one_host::{self, OneHost};
use super::other_tool::{self, OtherTool};
use super::prefix::{Prefix, unquoted};
use super::prometheus::Readings;
use super::report::Report;
use super::sadf::Sadf;
use super::sar::{self, Sar};
use super::series::Series;
use super::text::Text;
use super::vmstat::Vmstat;
use super::wrapped::{Line, LineJoiner};
use super::{LogError, LogReport, Options};

/// Reader of a log: an iterator over its reports.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    parts: ReaderState,
    stage: Stage,
    /// Error to return after the reports of the first host: the log of another host follows.
    other_host: Option<LogError>,
}

/// Progress of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Reading,
    /// All lines are read; reports may be left.
    AtEnd,
    /// All reports are converted; samples may be left.
    Ended,
    Failed,
}

/// Format of the present lines of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineForm {
    Iostat,
    Json,
    Sar,
    Sadf,
    Vmstat,
}

/// State of a log's reader, without the log itself.
#[derive(Debug)]
struct ReaderState {
    form: LineForm,
    /// Prefix of each line.
    prefix: Prefix,
    /// Verifies that the log is of one host.
    host: OneHost,
    wrapped: LineJoiner,
    text: Text,
    json: Json,
    sar: Sar,
    sadf: Sadf,
    vmstat: Vmstat,
    /// Reports from counters of Prometheus.
    counters: Option<Readings>,
    calendar: Calendar,
    series: Series,
    notes: Notes,
    line: u64,
    any: bool,
    /// The first line before all reports that looks like another tool's.
    other: Option<(u64, OtherTool)>,
}

/// Number of lines that are searched for signatures of other tools.
const SEARCHED_LINES: u64 = 10_000;

/// First bytes of gzip, xz, zstd and bzip2.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh"];

/// First bytes of a binary file of sar, on machines of either byte order.
const BINARY: [&[u8]; 2] = [b"\x96\xd5", b"\xd5\x96"];

/// True if these are the first two bytes of a binary file of sar.
pub fn is_binary(head: &[u8]) -> bool {
    BINARY.iter().any(|mark| head.starts_with(mark))
}

impl<R: BufRead> Reader<R> {
    /// A reader of the log `input`.
    pub fn new(input: R, options: Options) -> Reader<R> {
        Reader {
            lines: Lines::new(input),
            parts: ReaderState {
                form: LineForm::Iostat,
                prefix: Prefix::default(),
                host: OneHost::default(),
                wrapped: LineJoiner::new(options.columns.as_ref()),
                text: Text::new(options.columns),
                json: Json::new(),
                sar: Sar::new(),
                sadf: Sadf::new(),
                vmstat: Vmstat::new(options.interval),
                counters: None,
                calendar: Calendar::new(options.zone, options.dates),
                series: Series::new(options.first, options.interval),
                notes: Notes::default(),
                line: 0,
                any: false,
                other: None,
            },
            stage: Stage::Reading,
            other_host: None,
        }
    }

    /// Properties of the log as a whole, so far.
    pub fn source(&self) -> &SampleSource {
        let (json, text) = (&self.parts.json.source, &self.parts.text.source);
        match json.hostname.is_some() || json.kind == SourceKind::Prometheus {
            true => json,
            false => text,
        }
    }

    /// Notes on the log so far; complete when the iteration has ended.
    pub fn notes(&self) -> &Notes {
        &self.parts.notes
    }

    /// Reads a piece of the log, or handles its end.
    fn step(&mut self) -> Result<(), LogError> {
        if self.stage == Stage::AtEnd {
            self.stage = Stage::Ended;
            let finished = self.parts.finish();
            return finished.map_err(|error| self.parts.of_other(error));
        }
        let piece = self.lines.next().map_err(|source| LogError::Io {
            line: self.parts.line,
            source,
        })?;
        let taken = match piece {
            Some(piece) => self.parts.piece(&piece),
            None => {
                self.stage = Stage::AtEnd;
                self.parts.end()
            }
        };
        match taken {
            Err(error @ LogError::Hosts { .. }) if self.parts.hosts_in_front().is_none() => {
                // The part before it is a complete log.
                self.other_host = Some(error);
                self.stage = Stage::AtEnd;
                self.parts.end()
            }
            taken => taken,
        }
        .map_err(|error| self.parts.of_other(error))
    }
}

impl ReaderState {
    fn piece(&mut self, piece: &LinePiece<'_>) -> Result<(), LogError> {
        self.line = piece.line;
        if piece.line == 1 && piece.begins {
            if COMPRESSED.iter().any(|mark| piece.bytes.starts_with(mark)) {
                return Err(LogError::Compressed);
            }
            if is_binary(piece.bytes) {
                return Err(LogError::Binary);
            }
        }
        let text = String::from_utf8_lossy(piece.bytes);
        if !piece.begins || !piece.ends || self.form == LineForm::Json {
            self.release()?;
            return self.part(piece, &text);
        }
        let plain = strip_colours(&text);
        self.prefix.learn(&plain);
        if let Some((first, other)) = self.hosts_in_front() {
            return Err(one_host::several(piece.line, first, other));
        }
        let line = Line {
            number: piece.line,
            text: Cow::Borrowed(self.prefix.strip(&plain)),
            terminated: piece.terminated,
            front: self.prefix.stamp(),
        };
        let (held, line) = self.wrapped.push(line);
        held.into_iter()
            .chain(line)
            .try_for_each(|line| self.line(&line))
    }

    /// Names of two hosts, before the last two headers or in headings above them.
    fn hosts_in_front(&self) -> Option<(&str, &str)> {
        let hosts = self.prefix.hosts();
        let hosts = hosts.filter(|(first, other)| self.host.are_hosts(first, other));
        hosts.or_else(|| self.prefix.unnamed_hosts())
    }

    /// Processes the lines that waited for their continuation.
    fn release(&mut self) -> Result<(), LogError> {
        let held = self.wrapped.release();
        held.iter().try_for_each(|line| self.line(line))
    }

    /// Processes a piece of JSON, or of a line that is too long.
    fn part(&mut self, piece: &LinePiece<'_>, text: &str) -> Result<(), LogError> {
        let mut bytes = piece.bytes;
        if piece.begins {
            let plain = unquoted(text);
            bytes = bytes.get(text.len() - plain.len()..).unwrap_or_default();
            self.change_form(piece.line, plain);
        }
        if self.form == LineForm::Json {
            self.json(piece.line, bytes, piece.ends, piece.terminated)?;
        } else if piece.begins && piece.ends {
            // JSON ended, or was cut off, before this line.
            return self.piece(piece);
        } else {
            let beginning: String = text.chars().take(100).collect();
            self.notes.garbage.add(piece.line, &beginning);
        }
        Ok(())
    }

    fn json(
        &mut self,
        line: u64,
        bytes: &[u8],
        ends: bool,
        terminated: bool,
    ) -> Result<(), LogError> {
        let (calendar, notes) = (&mut self.calendar, &mut self.notes);
        self.json.feed(line, bytes, terminated, calendar, notes);
        if ends && self.json.is_outside() {
            self.json.end(notes);
            self.form = LineForm::Iostat;
        }
        // The reader of Prometheus' answers verifies the host itself.
        let source = &self.json.source;
        match &source.hostname {
            Some(host) if source.kind != SourceKind::Prometheus => {
                let of_one = self.host.check(line, host);
                if of_one.is_err() {
                    // Reports of the other host may have been read together with its name.
                    self.json = Json::new();
                }
                of_one
            }
            _ => Ok(()),
        }
    }

    /// Processes a whole line.
    fn line(&mut self, line: &Line<'_>) -> Result<(), LogError> {
        self.change_form(line.number, &line.text);
        if let Some(host) = BannerLine::host_of(&line.text) {
            self.host.check(line.number, &host)?;
        }
        let (calendar, notes) = (&mut self.calendar, &mut self.notes);
        let (number, text, terminated) = (line.number, &line.text, line.terminated);
        match self.form {
            LineForm::Iostat => self.text.line(line, calendar, notes)?,
            LineForm::Json => self.json(number, text.as_bytes(), true, terminated)?,
            LineForm::Sar => self.sar.line(number, text, terminated, calendar, notes),
            LineForm::Sadf => {
                if let Some(host) = Sadf::host_of(text) {
                    self.host.check(number, host)?;
                }
                self.sadf.line(number, text, terminated, calendar, notes);
                if self.text.source.hostname.is_none() {
                    self.text.source.hostname = self.sadf.hostname().map(str::to_owned);
                }
            }
            LineForm::Vmstat => self.vmstat.line(number, text, terminated, calendar, notes),
        }
        Ok(())
    }

    /// Changes to another format if this line begins it.
    fn change_form(&mut self, line: u64, text: &str) {
        let is_front = !self.any && line <= SEARCHED_LINES;
        if is_front && self.other.is_none() {
            self.other = other_tool::tool(text).map(|tool| (line, tool));
        }
        let form = if is_text(text) {
            LineForm::Iostat
        } else if self.form == LineForm::Json {
            return;
        } else if Json::begins(text) {
            LineForm::Json
        } else if Sar::begins(text) || (is_front && sar::may_begin(text)) {
            LineForm::Sar
        } else if Sadf::begins(text) {
            LineForm::Sadf
        } else if Vmstat::begins(text) {
            LineForm::Vmstat
        } else {
            return;
        };
        if form == self.form {
            return;
        }
        self.leave_form();
        self.form = form;
        let kind = match form {
            LineForm::Iostat | LineForm::Json => return,
            LineForm::Sar => {
                self.sar.begin_run();
                SourceKind::Sar
            }
            LineForm::Sadf => SourceKind::Sadf,
            LineForm::Vmstat => {
                self.vmstat.begin_run();
                SourceKind::Vmstat
            }
        };
        if !self.any {
            self.text.source.kind = kind;
        }
    }

    fn leave_form(&mut self) {
        match self.form {
            LineForm::Iostat => self.text.end_form(&mut self.calendar, &mut self.notes),
            LineForm::Json => self.json.end(&mut self.notes),
            LineForm::Sar => self.sar.reports.cut(),
            LineForm::Sadf => self.sadf.reports.cut(),
            LineForm::Vmstat => self.vmstat.reports.cut(),
        }
    }

    /// Handles the end of the log.
    fn end(&mut self) -> Result<(), LogError> {
        self.release()?;
        match self.form {
            LineForm::Iostat => self.text.end(&mut self.calendar, &mut self.notes)?,
            _ => self.leave_form(),
        }
        if let Some(matrix) = self.json.take_matrix() {
            self.counters = Some(matrix.readings(self.line)?);
        }
        Ok(())
    }

    /// Converts the reports that are left.
    fn finish(&mut self) -> Result<(), LogError> {
        self.series.finish(&mut self.notes);
        self.notes.date_order = self.calendar.assumed();
        if !self.any {
            return Err(LogError::Nothing { lines: self.line });
        }
        Ok(())
    }

    /// The error, or the one for another tool's output if that is the cause.
    fn of_other(&self, error: LogError) -> LogError {
        let is_unknown = matches!(error, LogError::NoColumns { .. } | LogError::Nothing { .. });
        match self.other.filter(|_| is_unknown && !self.any) {
            Some((line, tool)) => LogError::Other { line, tool },
            None => error,
        }
    }

    /// Makes a sample of the next complete report; false if there is none.
    fn emit_sample(&mut self) -> bool {
        let Some(report) = self.report() else {
            return false;
        };
        self.any = true;
        self.series.push(report, &mut self.notes);
        true
    }

    fn report(&mut self) -> Option<Report> {
        self.text
            .take()
            .or_else(|| self.json.take())
            .or_else(|| self.sar.reports.take())
            .or_else(|| self.sadf.reports.take())
            .or_else(|| self.vmstat.reports.take())
            .or_else(|| self.counters.as_mut()?.next())
    }
}

/// True if a line begins a text log of iostat, which may be appended to one that was cut off.
fn is_text(line: &str) -> bool {
    ["Linux ", "avg-cpu", "Device"]
        .iter()
        .any(|start| line.starts_with(start))
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<LogReport, LogError>;

    fn next(&mut self) -> Option<Result<LogReport, LogError>> {
        loop {
            if let Some(reading) = self.parts.series.take() {
                return Some(Ok(reading));
            }
            if self.parts.emit_sample() {
                continue;
            }
            if matches!(self.stage, Stage::Ended | Stage::Failed) {
                return self.other_host.take().map(Err);
            }
            if let Err(error) = self.step() {
                self.stage = Stage::Failed;
                return Some(Err(error));
            }
        }
    }
}
