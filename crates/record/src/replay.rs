//! A replay: recorded I/O that was issued again, with both latencies.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Direction, Histogram};

/// Rule by which a replay times its I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Open loop: each I/O at its recorded time.
    #[default]
    Recorded,
    /// Each I/O after the completion of those that it waited for when it was recorded, plus its think time.
    Dependencies,
    /// I/Os in the recorded order, with a fixed number in flight.
    Asap,
}

/// Rule by which recorded offsets become offsets of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OffsetMap {
    /// Offsets as recorded; I/Os beyond the target's end are left out.
    #[default]
    Exact,
    /// Modulo the target's size.
    Wrap,
    /// The accessed parts of the device next to each other, in order.
    Compact,
}

/// A trace that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayedTrace {
    /// Path of the file.
    pub path: String,
    /// Format of the file.
    pub format: String,
    /// Number of its I/Os on all devices that were replayed.
    pub ios: u64,
    /// Seconds from its first I/O to its last.
    pub seconds: f64,
    /// Number of events that its recorder lost.
    pub lost: u64,
    /// Number of completions that matched several requests, or none.
    pub ambiguous: u64,
    /// True if its recorder was ended before it closed the file.
    pub cut_off: bool,
    /// True if it has completions.
    pub has_completions: bool,
    /// True if its format has flushes.
    pub has_flushes: bool,
    /// True if it writes to a disk without a volatile write cache, which receives no flushes.
    #[serde(default)]
    pub has_written_through: bool,
    /// True if writes have the names of their files.
    #[serde(default)]
    pub has_written_names: bool,
}

/// A device of the trace, and its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayedDevice {
    /// Name of the device in the trace.
    pub name: String,
    /// Path of its target.
    pub target: String,
    /// Size of the target.
    pub size: Bytes,
    /// End of the last byte that the trace accesses.
    pub reach: Bytes,
    /// Bytes of the accessed parts; `None` if the map does not need them.
    pub footprint: Option<Bytes>,
}

/// Settings of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplaySettings {
    /// Rule by which I/Os are timed.
    pub pace: Pace,
    /// Factor by which recorded times are shortened.
    pub speed: f64,
    /// Maximum number of I/Os in flight.
    pub depth: u32,
    /// Rule by which offsets are mapped.
    pub map: OffsetMap,
    /// True if writes, flushes and discards are left out.
    pub reads_only: bool,
    /// True if discards are issued.
    pub discards: bool,
    /// Share of each 4 KiB written that compresses away.
    pub compressible: f64,
}

/// I/Os of one class, as recorded and as replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayClass {
    /// Name, such as `read-16k` or `write-log`.
    pub name: String,
    /// Direction of its I/Os.
    pub direction: Direction,
    /// Number of I/Os that were replayed.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Number of I/Os that failed.
    pub failed: u64,
    /// Number of I/Os that failed when they were recorded.
    pub failed_recorded: u64,
    /// Recorded latency in nanoseconds of the I/Os that were replayed; empty if it was not recorded.
    pub recorded: Histogram,
    /// Recorded latency in nanoseconds, by the parts of `replayed`; empty in runs of versions that did not store it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded_parts: Vec<Histogram>,
    /// Latency in nanoseconds, from the time at which an I/O was due, by equal parts of the replay.
    pub replayed: Vec<Histogram>,
    /// Latency in nanoseconds from the time of issue.
    pub service: Histogram,
}

impl ReplayClass {
    /// Adds another class's I/Os.
    pub fn add(&mut self, other: &ReplayClass) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.failed_recorded += other.failed_recorded;
        self.recorded.merge(&other.recorded);
        self.service.merge(&other.service);
        merge_parts(&mut self.recorded_parts, &other.recorded_parts);
        merge_parts(&mut self.replayed, &other.replayed);
    }

    /// Recorded latency by parts; if the parts were not stored, the whole as the only part.
    pub fn recorded_by_parts(&self) -> &[Histogram] {
        match self.recorded_parts.is_empty() {
            true => std::slice::from_ref(&self.recorded),
            false => &self.recorded_parts,
        }
    }

    /// Latency over the whole replay.
    pub fn all(&self) -> Histogram {
        Histogram::merged(&self.replayed)
    }
}

fn merge_parts(parts: &mut [Histogram], others: &[Histogram]) {
    for (part, other) in parts.iter_mut().zip(others) {
        part.merge(other);
    }
}

/// Counts of I/Os, and of differences from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayCounts {
    /// I/Os of the trace that were processed.
    pub ios: u64,
    /// I/Os that were issued.
    pub issued: u64,
    /// I/Os left out, since they lie beyond the target's end.
    pub clipped: u64,
    /// I/Os shortened to the target's end, or to the largest possible request.
    pub shortened: u64,
    /// I/Os whose offset was changed by the map.
    pub remapped: u64,
    /// I/Os widened to the target's block size.
    pub widened: u64,
    /// Writes and flushes left out, since only reads were requested.
    pub left_out: u64,
    /// Discards that were not issued.
    pub discards_left_out: u64,
    /// I/Os issued late since the limit of I/Os in flight was reached.
    pub full: u64,
    /// I/Os issued late since the kernel blocked the submission of earlier ones.
    #[serde(default)]
    pub blocked: u64,
    /// Number of times that the trace was not read fast enough.
    pub starved: u64,
}

/// Load in one slice of the replay's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSlice {
    /// I/Os that were due in the slice, by the recorded times.
    pub due: u64,
    /// I/Os whose recorded completion is in the slice.
    pub recorded_ios: u64,
    /// Bytes of these.
    pub recorded_bytes: u64,
    /// I/Os in flight when they were recorded, as a mean over the slice.
    pub recorded_in_flight: f64,
    /// I/Os that completed in the replay.
    pub replayed_ios: u64,
    /// I/Os in flight or due, as a mean over the slice.
    pub replayed_in_flight: f64,
}

/// A trace that was replayed on a target, with the recorded and the measured figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// Trace that was replayed.
    pub trace: ReplayedTrace,
    /// Devices of the trace that were replayed.
    pub devices: Vec<ReplayedDevice>,
    /// Settings of the replay.
    pub settings: ReplaySettings,
    /// Classes of I/Os, in the order in which they are shown.
    pub classes: Vec<ReplayClass>,
    /// Time in nanoseconds from when an I/O was due until it was issued.
    pub lateness: Histogram,
    /// Counts of differences from the trace.
    pub counts: ReplayCounts,
    /// Length of a slice of the load, in seconds of the replay.
    pub slice_seconds: f64,
    /// Load over time.
    pub load: Vec<LoadSlice>,
    /// Latency in nanoseconds of recorded reads of at most 16 KiB that found nothing else in flight.
    pub lone_recorded: Histogram,
    /// Latency in nanoseconds of replayed reads of at most 16 KiB that found nothing else in flight.
    pub lone_replayed: Histogram,
}
