//! Hosts and their disks, now.

use jiff::Timestamp;
use serde::Serialize;

use super::{Document, RoundedFigure, SourceDocument};

/// The document `now`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NowDocument {
    /// Time of the answer.
    pub(crate) time: Timestamp,
    /// Sources.
    pub(crate) sources: Vec<SourceDocument>,
    /// Hosts, this one first.
    pub(crate) hosts: Vec<HostNow>,
}

impl Document for NowDocument {
    const KIND: &'static str = "now";
}

/// Source of a host's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostSource {
    /// The kernel of this host.
    Kernel,
    /// Prometheus.
    Prometheus,
}

/// State of a host's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostState {
    /// They are of now.
    Live,
    /// They have not come for a while.
    Stale,
}

/// A host.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostNow {
    /// Its name.
    pub(crate) hostname: String,
    /// Source of its figures.
    pub(crate) source: HostSource,
    /// State of its figures.
    pub(crate) state: HostState,
    /// Age of its figures in seconds.
    pub(crate) age_s: RoundedFigure,
    /// Share of the processors' time that was not idle.
    pub(crate) cpu_busy_fraction: RoundedFigure,
    /// Share of the processors' time in which they were idle and a task waited for a disk.
    pub(crate) iowait_fraction: RoundedFigure,
    /// Share of the time in which a task waited for I/O (PSI, some).
    pub(crate) io_pressure_fraction: RoundedFigure,
    /// Load average of one minute.
    pub(crate) load_1: RoundedFigure,
    /// Memory that waits to be written.
    pub(crate) dirty_bytes: RoundedFigure,
    /// Its disks.
    pub(crate) disks: Vec<DiskNow>,
    /// Findings that last.
    pub(crate) findings: Vec<Finding>,
}

/// A disk.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskNow {
    /// The kernel's name.
    pub(crate) name: String,
    /// The name that people gave it.
    pub(crate) alias: Option<String>,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// The maker's name for it.
    pub(crate) model: Option<String>,
    /// Its size.
    pub(crate) size_bytes: Option<u64>,
    /// Names of the devices that it lies on.
    pub(crate) lies_on: Vec<String>,
    /// Reads.
    pub(crate) read: Flow,
    /// Writes.
    pub(crate) write: Flow,
    /// Mean latency of reads, writes and discards.
    pub(crate) await_ms: RoundedFigure,
    /// Mean number of requests in flight.
    pub(crate) queue: RoundedFigure,
    /// Share of the time in which a request was in flight.
    pub(crate) busy_fraction: RoundedFigure,
    /// Codes of findings that last.
    pub(crate) findings: Vec<String>,
    /// State of an array.
    pub(crate) array: Option<Array>,
}

/// State of an array: whether it is checked or rebuilt, and how far that is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Array {
    /// md's sync action, such as `check`; `idle` where none is under way.
    pub(crate) action: String,
    /// Share of it that is done.
    pub(crate) done_fraction: RoundedFigure,
    /// Its speed on each member.
    pub(crate) speed_bytes_per_s: RoundedFigure,
    /// Number of members that are missing.
    pub(crate) missing_members: RoundedFigure,
}

impl Array {
    /// True if it is checked or rebuilt.
    pub(crate) fn is_at_work(&self) -> bool {
        self.done_fraction.0.is_finite()
    }
}

/// Requests of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Flow {
    /// Requests a second.
    pub(crate) iops: RoundedFigure,
    /// Bytes a second.
    pub(crate) bytes_per_s: RoundedFigure,
    /// Mean latency.
    pub(crate) await_ms: RoundedFigure,
}

/// A finding that lasts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// Its code.
    pub(crate) code: String,
    /// Its severity.
    pub(crate) severity: String,
    /// Name of the disk, or `host`.
    pub(crate) name: String,
    /// Start of its cause.
    pub(crate) began: Option<Timestamp>,
    /// The observation.
    pub(crate) text: String,
    /// Advice.
    pub(crate) advice: String,
    /// The figures that it rests on.
    pub(crate) figures: Vec<FindingFigure>,
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FindingFigure {
    /// Its name with its unit.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: RoundedFigure,
}
