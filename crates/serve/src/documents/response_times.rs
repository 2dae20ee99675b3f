//! Response times, disks and other series on one time axis.

use jiff::Timestamp;
use serde::Serialize;

use super::{DiskName, Document, Line, Marker, RoundedFigure, SourceDocument};

/// The document `response-times`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ResponseTimes {
    /// Start of the first slot.
    pub(crate) from: Timestamp,
    /// End of the last slot.
    pub(crate) to: Timestamp,
    /// Roll-up that response times are taken from.
    pub(crate) level: &'static str,
    /// Length of a slot in seconds: of days the usual one.
    pub(crate) slot_s: i64,
    /// Zone of hours and days.
    pub(crate) zone: String,
    /// Selected tag with labels; null where there is none.
    pub(crate) selection: Option<String>,
    /// Tags, the busiest first.
    pub(crate) tags: Vec<String>,
    /// Sources of the document, and whether they answer.
    pub(crate) sources: Vec<SourceDocument>,
    /// Start of each slot, in seconds since 1970 (UTC).
    pub(crate) time_s: Vec<i64>,
    /// Upper bounds in milliseconds of the classes of response times, without the last class.
    pub(crate) bounds_ms: Vec<f64>,
    /// Requests a second.
    pub(crate) requests_per_s: Line,
    /// Mean response time of each slot, in milliseconds.
    pub(crate) mean_ms: Vec<RoundedFigure>,
    /// Longest response time of each slot, in milliseconds.
    pub(crate) max_ms: Vec<RoundedFigure>,
    /// Median of the response times, in milliseconds.
    pub(crate) p50_ms: Line,
    /// 95th percentile of the response times, in milliseconds.
    pub(crate) p95_ms: Line,
    /// 99th percentile of the response times, in milliseconds.
    pub(crate) p99_ms: Line,
    /// Share of each class.
    pub(crate) shares: Vec<Vec<RoundedFigure>>,
    /// Chosen disks over time.
    pub(crate) disks: Vec<DiskLines>,
    /// Hosts over time, those of the chosen disks first.
    pub(crate) hosts: Vec<HostLines>,
    /// Other series over time.
    pub(crate) series: Vec<SeriesLine>,
    /// Disks that can be chosen.
    pub(crate) known_disks: Vec<DiskName>,
    /// Markers in the span.
    pub(crate) markers: Vec<Marker>,
    /// Findings about disks and hosts in the span.
    pub(crate) findings: Vec<OpenFinding>,
}

impl Document for ResponseTimes {
    const KIND: &'static str = "response-times";
}

/// A disk over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskLines {
    /// The disk.
    #[serde(flatten)]
    pub(crate) disk: DiskName,
    /// Mean latency of requests, in milliseconds.
    pub(crate) await_ms: Line,
    /// I/Os a second.
    pub(crate) iops: Line,
    /// Share of the time in which a request was in flight, from 0 to 1.
    pub(crate) busy_fraction: Line,
    /// Mean number of requests in flight.
    pub(crate) queue: Line,
}

/// A host over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostLines {
    /// Name of the host.
    pub(crate) hostname: String,
    /// Share of the processors' time that was not idle, from 0 to 1.
    pub(crate) cpu_busy_fraction: Line,
    /// Share of the time in which a task waited for I/O (PSI, some), from 0 to 1.
    pub(crate) io_pressure_fraction: Line,
}

/// Values of another series over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesLine {
    /// Name of the series.
    pub(crate) name: String,
    /// Values of the series.
    pub(crate) values: Line,
}

/// A finding while it lasted.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OpenFinding {
    /// The disk, or `host`.
    #[serde(flatten)]
    pub(crate) disk: DiskName,
    /// Code of the finding, which stays the same over versions.
    pub(crate) code: String,
    /// Severity of the finding.
    pub(crate) severity: String,
    /// Start of the cause.
    pub(crate) began: Timestamp,
    /// End of the cause; null while it lasts.
    pub(crate) ended: Option<Timestamp>,
    /// The observation.
    pub(crate) text: String,
    /// Advice on what to do, in sentences.
    pub(crate) advice: String,
}
