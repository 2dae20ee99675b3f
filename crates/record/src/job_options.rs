//! Options of a job file other than offsets and sizes: data, verification, threads, shares and limits.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Direction, Nanos};

/// Data of writes that is not entirely random.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Contents {
    /// The share of each chunk that is compressible, 0 to 1.
    pub compressible: f64,
    /// Length of a chunk.
    pub chunk: Bytes,
    /// The share of writes that repeat the data of an earlier one, 0 to 1.
    pub repeated: f64,
    /// Number of data blocks from which repeated writes draw; 0 repeats the last one written.
    pub working_set: u64,
    /// True if jobs repeat each other's data.
    pub shared: bool,
    /// Pattern that fills the compressible share; empty for zeros.
    pub pattern: Vec<u8>,
}

/// Verification of written data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verify {
    /// Length of a block with its own header; `None` for the request.
    pub interval: Option<Bytes>,
    /// Offset of the header in a block, in bytes.
    pub header_at: u32,
    /// Data between headers; empty is random.
    pub pattern: Vec<u8>,
    /// True if the data is the pattern throughout, without headers.
    pub pattern_only: bool,
    /// True if the writes are read back at the end.
    pub reads_back: bool,
    /// Number of writes after which they are read back; 0 for never.
    pub backlog: u32,
    /// True if a block must hold the last write to it.
    pub in_sequence: bool,
    /// True if the first failure ends the phase.
    pub fatal: bool,
}

/// Errors of the kernel, as errno(3) numbers, that do not end a phase. Requests that fail with them are counted
/// separately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NonFatal {
    /// Errors of reads.
    pub reads: Vec<i32>,
    /// Errors of all other requests: writes, discards and syncs.
    pub writes: Vec<i32>,
}

/// Settings of the threads that issue I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadSettings {
    /// Processors on which they may run; empty for all.
    pub cpus: Vec<u32>,
    /// Nice value of the threads, if given.
    pub nice: Option<i32>,
    /// Priority of their I/O.
    pub priority: Option<Priority>,
    /// NUMA policy for the memory of their buffers.
    pub memory: Option<MemoryPolicy>,
}

/// Priority of I/O, as in ioprio_set(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Priority {
    /// 0 none, 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0, the highest, to 7.
    pub level: u8,
    /// A hint to the device.
    #[serde(default)]
    pub hint: u16,
}

/// A share of the requests that has a priority of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PriorityShare {
    /// True for requests that write, false for those that read.
    pub writes: bool,
    /// Size of these requests; `None` for all sizes.
    pub size: Option<Bytes>,
    /// The share of them, 0 to 1.
    pub share: f64,
    /// Priority of these requests.
    pub priority: Priority,
}

/// NUMA memory policy, as in set_mempolicy(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryPolicy {
    /// Mode of the policy.
    pub mode: MemoryMode,
    /// Numbers of the nodes; empty if the mode needs none.
    pub nodes: Vec<u32>,
}

/// Mode of a NUMA memory policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// The system's default.
    Default,
    /// The first node, and others if it is full.
    Prefer,
    /// The given nodes only.
    Bind,
    /// The nodes in turn.
    Interleave,
    /// The node of the allocating processor.
    Local,
}

/// A weight by which concurrent jobs share the requests that they issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowShare {
    /// Number of the group of jobs that share.
    pub id: u32,
    /// The weight; above 0.
    pub weight: u32,
    /// Pause of a job that is ahead of its share.
    pub pause: Nanos,
}

/// A search for the highest queue depth that keeps a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DepthSearch {
    /// Latency to keep, in nanoseconds.
    pub latency: Nanos,
    /// Time for which each depth is tried.
    pub window: Nanos,
    /// The share of requests that must keep it, 0 to 1.
    pub share: f64,
    /// True if the phase continues once the depth is found.
    pub continues: bool,
}

/// A steady state that ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteadyState {
    /// Figure that must become steady.
    pub of: SteadyFigure,
    /// True if its slope is limited, false if its largest deviation from the mean.
    pub slope: bool,
    /// Limit of the slope or deviation: in the unit of the figure, or as a share of its mean.
    pub limit: f64,
    /// True if the limit is a share of the mean.
    pub relative: bool,
    /// Time at the end of the phase over which it must be steady.
    pub duration: Nanos,
    /// Time before the first figure.
    pub ramp: Nanos,
    /// Time over which one figure is taken.
    pub interval: Nanos,
}

/// A figure that can be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SteadyFigure {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, in nanoseconds.
    Latency,
}

/// Maximum times of requests; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxLatency {
    /// Maximum time of a read.
    pub reads: Nanos,
    /// Maximum time of a write or a discard.
    pub writes: Nanos,
}

/// Minimum rates of reads and writes, below which a phase ends; 0 for no minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RateFloor {
    /// Bytes read per second.
    pub read_bytes: u64,
    /// Bytes written per second.
    pub write_bytes: u64,
    /// Reads per second.
    pub read_ops: u64,
    /// Writes per second.
    pub write_ops: u64,
    /// Time over which a rate is taken.
    pub cycle: Nanos,
}

/// Rate of one direction of a closed loop that has both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneSidedRate {
    /// True if the rate is that of writes, false if that of reads.
    pub writes: bool,
    /// Maximum requests per second of that direction; when none of them is due, a request of the other direction is
    /// issued.
    pub per_s: f64,
}

impl OneSidedRate {
    /// The direction.
    pub fn direction(&self) -> Direction {
        match self.writes {
            true => Direction::Write,
            false => Direction::Read,
        }
    }
}
