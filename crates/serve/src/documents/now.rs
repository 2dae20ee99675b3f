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
    /// Sources of the figures, and their states.
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
    /// The figures are current.
    Live,
    /// No figures have come for a while.
    Stale,
}

/// A host with its disks, as they are now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HostNow {
    /// Name of the host.
    pub(crate) hostname: String,
    /// Source of the figures.
    pub(crate) source: HostSource,
    /// State of the figures.
    pub(crate) state: HostState,
    /// Age of the figures, in seconds.
    pub(crate) age_s: RoundedFigure,
    /// Share of the processors' time that was not idle, from 0 to 1.
    pub(crate) cpu_busy_fraction: RoundedFigure,
    /// Share of the processors' time in which they were idle and a task waited for a disk, from 0 to 1.
    pub(crate) iowait_fraction: RoundedFigure,
    /// Share of the time in which a task waited for I/O (PSI, some), from 0 to 1.
    pub(crate) io_pressure_fraction: RoundedFigure,
    /// Load average of one minute.
    pub(crate) load_1: RoundedFigure,
    /// Memory that waits to be written.
    pub(crate) dirty_bytes: RoundedFigure,
    /// Disks of the host.
    pub(crate) disks: Vec<DiskNow>,
    /// Findings that last.
    pub(crate) findings: Vec<Finding>,
}

/// A disk as it is now.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskNow {
    /// Kernel name of the disk.
    pub(crate) name: String,
    /// Name that people gave the disk; null where there is none.
    pub(crate) alias: Option<String>,
    /// Kind of the disk.
    pub(crate) kind: &'static str,
    /// Model; null where it is not known.
    pub(crate) model: Option<String>,
    /// Size in bytes; null where it is not known.
    pub(crate) size_bytes: Option<u64>,
    /// Names of the devices that it lies on.
    pub(crate) lies_on: Vec<String>,
    /// Requests that read.
    pub(crate) read: Flow,
    /// Requests that write.
    pub(crate) write: Flow,
    /// Mean latency of reads, writes and discards, in milliseconds.
    pub(crate) await_ms: RoundedFigure,
    /// Mean number of requests in flight.
    pub(crate) queue: RoundedFigure,
    /// Share of the time in which a request was in flight, from 0 to 1.
    pub(crate) busy_fraction: RoundedFigure,
    /// Codes of findings that last.
    pub(crate) findings: Vec<String>,
    /// State of an array; null of other disks.
    pub(crate) array: Option<Array>,
}

/// State of an array: whether it is checked or rebuilt, and how far that is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Array {
    /// Sync action of md, such as `check`; `idle` where none is under way.
    pub(crate) action: String,
    /// Share of the action that is done, from 0 to 1; null where none is under way.
    pub(crate) done_fraction: RoundedFigure,
    /// Rate of the action on each member, in bytes a second.
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
    /// Mean latency, in milliseconds.
    pub(crate) await_ms: RoundedFigure,
}

/// A finding that lasts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    /// Code of the finding, which stays the same over versions.
    pub(crate) code: String,
    /// Severity of the finding.
    pub(crate) severity: String,
    /// Name of the disk, or `host`.
    pub(crate) name: String,
    /// Start of the cause; null where it is not known.
    pub(crate) began: Option<Timestamp>,
    /// The observation.
    pub(crate) text: String,
    /// Advice on what to do, in sentences.
    pub(crate) advice: String,
    /// The figures that it rests on.
    pub(crate) figures: Vec<FindingFigure>,
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FindingFigure {
    /// Name of the figure, with its unit.
    pub(crate) key: String,
    /// The figure.
    pub(crate) value: RoundedFigure,
}
