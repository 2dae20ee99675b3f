//! Reads JSON as a stream, complete or cut off by Ctrl-C: that of `iostat -o JSON`, of `sadf -j`, and answers of
//! Prometheus with the counters of node_exporter.
//!
//! A log may be too long to be read as one document, may be cut at any byte, and another run may be appended after the
//! cut. So it is read token by token, with a stack of the enclosing objects and lists.

use record::sample::{CpuShares, Fraction, SampleSource, SourceKind};

use super::calendar::Calendar;
use super::columns::Column;
use super::ending::TimestampFields;
use super::landmark::cpu_place;
use super::notes::Notes;
use super::number::number;
use super::prometheus::Matrix;
use super::report::{Report, Reports, Row};
use super::row::Figures;
use super::stamp;

/// Maximum length of a token; the rest is dropped.
const MAX_TOKEN_BYTES: usize = 1024;
/// Maximum nesting depth; sadf has nine levels.
const MAX_NESTING: usize = 64;

/// Meaning of an open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BracketContent {
    /// The list of reports.
    Reports,
    /// One report, of one interval.
    Report,
    /// The shares of the processors.
    Cpu,
    /// The list of devices.
    Devices,
    /// Figures of one device.
    Device,
    /// The end and the length of an interval, in sadf's JSON.
    Timestamp,
    /// The labels of a counter in Prometheus.
    Labels,
    /// The values of a counter.
    Values,
    /// A time and a value.
    Value,
    Other,
}

/// Position of the reader within a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    String,
    Escape,
    Bare,
}

/// A reader of JSON.
#[derive(Debug)]
pub(crate) struct Json {
    state: State,
    word: Vec<u8>,
    /// A string that may be a key.
    string: Option<String>,
    key: Option<String>,
    inside: Vec<BracketContent>,
    cpu: Option<CpuShares>,
    name: Option<String>,
    figures: Figures,
    reports: Reports,
    ending: TimestampFields,
    /// Counters of Prometheus.
    matrix: Option<Matrix>,
    /// Time of a value.
    second: Option<f64>,
    /// The line that is read.
    line: u64,
    pub(crate) source: SampleSource,
}

impl Json {
    pub(crate) fn new() -> Json {
        Json {
            state: State::Between,
            word: Vec::new(),
            string: None,
            key: None,
            inside: Vec::new(),
            cpu: None,
            name: None,
            figures: Figures::default(),
            reports: Reports::new(),
            ending: TimestampFields::default(),
            matrix: None,
            second: None,
            line: 0,
            source: SampleSource {
                kind: SourceKind::IostatJson,
                ..SampleSource::default()
            },
        }
    }

    /// True if a document begins with this line.
    pub(crate) fn begins(line: &str) -> bool {
        let line = line.trim_matches(['\0', '\u{feff}', ' ', '\t']);
        line == "{" || line.starts_with("{\"") || line.starts_with("{ \"")
    }

    /// True if no document is open.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.is_empty() && self.state == State::Between
    }

    /// The next complete report.
    pub(crate) fn take(&mut self) -> Option<Report> {
        self.reports.take()
    }

    /// The counters of all documents so far.
    pub(crate) fn take_matrix(&mut self) -> Option<Matrix> {
        self.matrix.take()
    }

    /// Reads a piece of a line. `ends`: the line ends with it.
    pub(crate) fn feed(
        &mut self,
        line: u64,
        bytes: &[u8],
        ends: bool,
        calendar: &mut Calendar,
        notes: &mut Notes,
    ) {
        self.line = line;
        let mut is_whole = true;
        for byte in bytes.iter().chain(ends.then_some(&b'\n')) {
            is_whole &= self.byte(*byte, calendar);
        }
        if !is_whole {
            notes.garbage.add(line, &String::from_utf8_lossy(bytes));
            self.reports.mark_damaged();
        }
    }

    /// Handles the end of the JSON, or of the log.
    pub(crate) fn end(&mut self, notes: &mut Notes) {
        let is_cut = |inside: &BracketContent| {
            [
                BracketContent::Device,
                BracketContent::Values,
                BracketContent::Value,
            ]
            .contains(inside)
        };
        if self.name.is_some() || self.inside.last().is_some_and(is_cut) {
            notes.cut.add(self.line, "");
        }
        // A number at the end of the text may be cut off, and is not used.
        self.state = State::Between;
        self.word.clear();
        self.string = None;
        self.key = None;
        self.end_device();
        self.cpu = None;
        self.reports.cut();
        self.inside.clear();
    }

    /// Reads a byte; false if it cannot occur here.
    fn byte(&mut self, byte: u8, calendar: &mut Calendar) -> bool {
        match (self.state, byte) {
            (State::String, b'"') => {
                self.state = State::Between;
                let word = std::mem::take(&mut self.word);
                self.string = Some(String::from_utf8_lossy(&word).into_owned());
            }
            // iostat prints no string over several lines: the end of this one is missing.
            (State::String | State::Escape, b'\n') => {
                self.state = State::Between;
                self.word.clear();
                return false;
            }
            (State::String, b'\\') => self.state = State::Escape,
            (State::Escape, _) => {
                self.state = State::String;
                self.keep(byte);
            }
            (State::String, _) => self.keep(byte),
            (State::Bare, b'0'..=b'9' | b'.' | b'-' | b'+' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.keep(byte);
            }
            (State::Bare, _) => {
                self.state = State::Between;
                let word = std::mem::take(&mut self.word);
                let is_known = self.bare(&String::from_utf8_lossy(&word));
                return self.byte(byte, calendar) && is_known;
            }
            (State::Between, b'"') => self.state = State::String,
            (State::Between, b'{' | b'[') => return self.open(),
            (State::Between, b'}' | b']') => self.close(calendar),
            (State::Between, b':') => self.key = self.string.take(),
            (State::Between, b',') => self.value(calendar),
            (State::Between, b' ' | b'\t' | b'\r' | b'\n') => {}
            (State::Between, b'0'..=b'9' | b'-' | b'a'..=b'z') => {
                self.state = State::Bare;
                self.keep(byte);
            }
            (State::Between, _) => return false,
        }
        true
    }

    fn keep(&mut self, byte: u8) {
        if self.word.len() < MAX_TOKEN_BYTES {
            self.word.push(byte);
        }
    }

    fn open(&mut self) -> bool {
        let key = self.key.take();
        self.string = None;
        let parent = self.inside.last().copied();
        let inside = match (key.as_deref(), parent) {
            (Some("hosts"), _) => {
                // Another run, perhaps after one that was cut off.
                self.end_device();
                self.end_cpu();
                self.reports.begin_run();
                self.inside = vec![BracketContent::Other; self.inside.len().min(2)];
                BracketContent::Other
            }
            (Some("statistics"), _) => BracketContent::Reports,
            (Some("avg-cpu"), _) => {
                self.end_device();
                if self.reports.has_cpu() || self.cpu.is_some() {
                    self.reports.end();
                }
                self.cpu = Some(CpuShares::default());
                BracketContent::Cpu
            }
            (Some("disk"), _) => {
                self.end_device();
                if self.reports.has_rows() {
                    self.reports.end();
                }
                BracketContent::Devices
            }
            (Some("timestamp"), _) => {
                self.ending = TimestampFields::default();
                self.source.kind = SourceKind::Sadf;
                BracketContent::Timestamp
            }
            (Some("metric"), _) => {
                self.source.kind = SourceKind::Prometheus;
                self.matrix.get_or_insert_default().begin_series();
                BracketContent::Labels
            }
            (Some("values"), _) if self.matrix.is_some() => BracketContent::Values,
            (None, Some(BracketContent::Values)) => BracketContent::Value,
            (None, Some(BracketContent::Reports)) => BracketContent::Report,
            (None, Some(BracketContent::Devices)) => BracketContent::Device,
            _ => BracketContent::Other,
        };
        if self.inside.len() < MAX_NESTING {
            self.inside.push(inside);
            return true;
        }
        false
    }

    fn close(&mut self, calendar: &mut Calendar) {
        if self.inside.last() == Some(&BracketContent::Value)
            && let (Some(second), Some(value)) = (self.second.take(), self.string.take())
            && let Some(matrix) = &mut self.matrix
        {
            matrix.value(second, &value);
        }
        self.value(calendar);
        match self.inside.pop() {
            Some(BracketContent::Timestamp) => self.end_timestamp(calendar),
            Some(BracketContent::Labels) => {
                if let Some(matrix) = &mut self.matrix {
                    matrix.end_labels();
                    self.source.hostname = matrix.host();
                }
            }
            Some(BracketContent::Device) => self.end_device(),
            Some(BracketContent::Cpu) => self.end_cpu(),
            Some(BracketContent::Report) => self.reports.end(),
            _ => {}
        }
    }

    /// Reads a token without quotes; false if it is not JSON.
    fn bare(&mut self, word: &str) -> bool {
        let key = self.key.take();
        if ["true", "false", "null"].contains(&word) {
            return true;
        }
        let Some(number) = number(word) else {
            return false;
        };
        let inside = self.inside.last();
        let Some(key) = key else {
            if inside == Some(&BracketContent::Value) {
                self.second = Some(number.value);
            }
            return true;
        };
        if inside == Some(&BracketContent::Timestamp) {
            self.ending.number(&key, number.value);
        } else if let Some(cpu) = &mut self.cpu {
            if let Some(place) = cpu_place(cpu, &key) {
                *place = Fraction((number.value / 100.0).max(0.0));
            }
        } else if self.name.is_some() {
            self.figures.set(Column::by_name(&key), number);
        } else if key == "number-of-cpus" {
            self.source.cpus = Some(number.value as u32);
        }
        true
    }

    /// Uses a string that is a value.
    fn value(&mut self, calendar: &mut Calendar) {
        let (Some(key), Some(value)) = (self.key.take(), self.string.take()) else {
            return;
        };
        match self.inside.last() {
            Some(BracketContent::Labels) => {
                if let Some(matrix) = &mut self.matrix {
                    matrix.label(key, value);
                }
                return;
            }
            Some(BracketContent::Timestamp) => return self.ending.text(&key, value),
            _ => {}
        }
        match key.as_str() {
            "nodename" => self.source.hostname = Some(value),
            "release" => self.source.kernel = Some(value),
            "date" => calendar.begin_run(stamp::raw_date(&value)),
            "timestamp" => {
                let at = stamp::stamp(&value).and_then(|stamp| calendar.instant(&stamp));
                self.reports.set_time(at);
            }
            "disk_device" | "disk-device" => {
                if self.name.is_some() {
                    // The end of the previous device is missing.
                    self.end_device();
                    self.reports.mark_damaged();
                }
                self.name = Some(value);
            }
            _ => {}
        }
    }

    fn end_timestamp(&mut self, calendar: &mut Calendar) {
        let ending = std::mem::take(&mut self.ending);
        self.reports.set_time(ending.instant(calendar));
        self.reports.set_length(ending.interval);
    }

    fn end_device(&mut self) {
        let figures = std::mem::take(&mut self.figures);
        if let Some(name) = self.name.take() {
            let group = name.starts_with(' ');
            let name = name.trim().to_owned();
            self.reports.row(
                self.line,
                Row {
                    name,
                    group,
                    figures,
                },
            );
        }
    }

    fn end_cpu(&mut self) {
        if let Some(cpu) = self.cpu.take() {
            self.reports.cpu(self.line, cpu);
        }
    }
}
