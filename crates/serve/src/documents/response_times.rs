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
    /// Tag with labels; `None` where there is none.
    pub(crate) selection: Option<String>,
    /// Tags, the busiest first.
    pub(crate) tags: Vec<String>,
    /// Sources.
    pub(crate) sources: Vec<SourceDocument>,
    /// Start of each slot.
    pub(crate) time_s: Vec<i64>,
    /// Upper bounds of the classes of response times but the last.
    pub(crate) bounds_ms: Vec<f64>,
    /// Requests a second.
    pub(crate) requests_per_s: Line,
    /// Mean.
    pub(crate) mean_ms: Vec<RoundedFigure>,
    /// Longest.
    pub(crate) max_ms: Vec<RoundedFigure>,
    /// Median.
    pub(crate) p50_ms: Line,
    /// 95th percentile.
    pub(crate) p95_ms: Line,
    /// 99th percentile.
    pub(crate) p99_ms: Line,
    /// Share of each class.
    pub(crate) shares: Vec<Vec<RoundedFigure>>,
    /// Disks.
    pub(crate) disks: Vec<DiskLines>,
    /// Hosts.
    pub(crate) hosts: Vec<HostLines>,
    /// Other series.
    pub(crate) series: Vec<SeriesLine>,
    /// All disks that can be chosen.
    pub(crate) known_disks: Vec<DiskName>,
    /// Markers.
    pub(crate) markers: Vec<Marker>,
    /// Findings.
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
    /// Mean latency.
    pub(crate) await_ms: Line,
    /// I/Os a second.
    pub(crate) iops: Line,
    /// Share of the time in which a request was in flight.
    pub(crate) busy_fraction: Line,
    /// Mean number of requests in flight.
    pub(crate) queue: Line,
}

/// A host over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostLines {
    /// The host.
    pub(crate) hostname: String,
    /// Share of the processors' time that was not idle.
    pub(crate) cpu_busy_fraction: Line,
    /// Share of the time in which a task waited for I/O (PSI, some).
    pub(crate) io_pressure_fraction: Line,
}

/// Another series over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesLine {
    /// Its name.
    pub(crate) name: String,
    /// Its values.
    pub(crate) values: Line,
}

/// A finding while it lasted.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OpenFinding {
    /// The disk, or `host`.
    #[serde(flatten)]
    pub(crate) disk: DiskName,
    /// Its code.
    pub(crate) code: String,
    /// Its severity.
    pub(crate) severity: String,
    /// Start.
    pub(crate) began: Timestamp,
    /// End; `None` while it lasts.
    pub(crate) ended: Option<Timestamp>,
    /// The observation.
    pub(crate) text: String,
    /// Advice.
    pub(crate) advice: String,
}
