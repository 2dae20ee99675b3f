//! Logs of disk statistics: of `iostat` (text of sysstat 5 to 12, and JSON), `sar -d`, `sadf` (`-d`, `-p` and `-j`)
//! and `vmstat -d`, and answers of Prometheus with the counters of node_exporter.
//!
//! A log is read as a stream of [`LogReport`]s, in bounded memory however long it is. The meaning of a column is
//! given by its header; if headers are missing, by the user or by a guess that the figures must confirm. The formats
//! are those in the tools' manuals and of their output (`fixtures/`).

mod calendar;
mod clock;
mod column_guess;
mod columns;
mod counters;
mod ending;
mod json;
mod landmark;
mod line;
mod lines;
mod notes;
mod number;
mod one_host;
mod other_tool;
mod pace;
mod prefix;
mod prometheus;
mod reader;
mod report;
mod row;
mod sadf;
mod sar;
mod series;
mod stamp;
mod text;
mod vmstat;
mod wrapped;

pub use calendar::DateOrder;
pub use column_guess::ColumnGuess;
pub use columns::{Columns, ColumnsError};
pub use notes::{LineNotes, Notes};
pub use other_tool::OtherTool;
pub use prometheus::MatrixError;
pub use reader::{Reader, is_binary};

use std::io;

use jiff::tz::TimeZone;
use record::Nanos;
use record::sample::Sample;

use text::ColumnsLost;

/// Content of the first report of a run of iostat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstReport {
    /// An interval if `iostat -y` left a blank line in place of the means since boot; else the means since boot.
    #[default]
    Tell,
    /// The means since boot.
    SinceBoot,
    /// An interval like the others, as with `iostat -y`.
    Interval,
}

/// Information that a log may lack.
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
    /// Content of the first report of a run of iostat.
    pub first: FirstReport,
}

impl Default for Options {
    /// Options for a log that lacks nothing, with times in UTC.
    fn default() -> Options {
        Options {
            columns: None,
            interval: None,
            zone: TimeZone::UTC,
            dates: None,
            first: FirstReport::default(),
        }
    }
}

/// A report of a log: the figures of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LogReport {
    /// Figures of the report.
    pub sample: Sample,
    /// The line where it begins, from 1.
    pub line: u64,
    /// True if the report shows the means since boot. It is then not an interval, and its length is zero if the log
    /// does not give it.
    pub since_boot: bool,
    /// True if the report is the only one of its run of iostat. Its length is zero if the log does not give it. If it
    /// shows the means since boot, the log has nothing else of this run.
    pub alone: bool,
    /// Number of the run of the tool that printed it, from 1; always 1 if the log does not show where runs begin.
    pub run: u64,
}

/// Reason why a log was not read to its end.
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
    /// The log is compressed.
    #[error(
        "it is compressed; decompress it first, for instance with zcat, and give '-' to read it \
         from a pipe"
    )]
    Compressed,
    /// The log is a binary file of sar.
    #[error(
        "it is a binary file of sysstat, which sadf reads by its name only; give the file with --parse FILE"
    )]
    Binary,
    /// The headers are missing, and the meaning of the figures cannot be determined.
    #[error(
        "line {line}: no header names the {figures} figures of each device, and no known \
         columns fit them beyond doubt; give them with --columns{}",
        examples(.candidates)
    )]
    NoColumns {
        /// The first line of figures.
        line: u64,
        /// Number of figures of most lines.
        figures: usize,
        /// The known headers with this number of columns, and the tools that print them.
        candidates: Vec<String>,
    },
    /// The log was written by another tool.
    #[error("line {line} looks like the output of {}; {}", .tool.name, .tool.instead)]
    Other {
        /// The line by which the tool was recognized.
        line: u64,
        /// Tool whose output the line looks like.
        tool: OtherTool,
    },
    /// The log has lines of several hosts.
    #[error(
        "line {line} is of the host {other}, and those before it of {first}: disks of one name would be taken for one \
         disk; give the log of one host (of lines that begin with its name: grep {first} LOG)"
    )]
    Hosts {
        /// The first line of the other host.
        line: u64,
        /// The host that was named first.
        first: String,
        /// Name of the other host.
        other: String,
    },
    /// The log is an answer of Prometheus without usable counters of one host's disks.
    #[error("{0}")]
    Matrix(#[from] MatrixError),
    /// The log has no report.
    #[error(
        "it holds no report of iostat, sar -d, sadf or vmstat -d, in none of its {lines} lines"
    )]
    Nothing {
        /// Number of lines.
        lines: u64,
    },
}

fn examples(list: &[String]) -> String {
    if list.is_empty() {
        return ", as the header of the log would: 'Device r/s w/s rkB/s wkB/s await %util'"
            .to_owned();
    }
    format!(", such as {}", list.join(", "))
}

impl From<ColumnsLost> for LogError {
    fn from(no: ColumnsLost) -> LogError {
        LogError::NoColumns {
            line: no.line,
            figures: no.figures,
            candidates: no.candidates,
        }
    }
}
