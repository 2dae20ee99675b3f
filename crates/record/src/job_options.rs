//! Options of a job file besides places and sizes: data, verification, threads, shares and ends.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Direction, Nanos};

/// Data of writes that is not random throughout.
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
    /// Offset of the header in it.
    pub header_at: u32,
    /// Data between headers; empty is random.
    pub pattern: Vec<u8>,
    /// True if the data is the pattern throughout, without headers.
    pub pattern_only: bool,
    /// True if the writes are read back at the end.
    pub reads_back: bool,
    /// Number of writes after which they are read back; 0 never.
    pub backlog: u32,
    /// True if a block must hold the last write to it.
    pub in_sequence: bool,
    /// True if the first failure ends the phase.
    pub fatal: bool,
}

/// Errors of the kernel that do not end a phase, by their numbers (errno(3)). Requests that fail with them are
/// counted separately.
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
    /// Processors that they may run on; empty is all.
    pub cpus: Vec<u32>,
    /// Nice value of the threads, where it is given.
    pub nice: Option<i32>,
    /// Priority of their I/O.
    pub priority: Option<Priority>,
    /// Nodes of memory for their buffers.
    pub memory: Option<MemoryPolicy>,
}

/// Priority of I/O, as ioprio_set(2) has it.
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
    /// Requests of this size; `None` is all.
    pub size: Option<Bytes>,
    /// The share of them, 0 to 1.
    pub share: f64,
    /// Priority of these requests.
    pub priority: Priority,
}

/// Nodes of memory, as set_mempolicy(2) has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryPolicy {
    /// Use of the nodes.
    pub mode: MemoryMode,
    /// Numbers of the nodes; empty where the mode needs none.
    pub nodes: Vec<u32>,
}

/// Use of nodes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// The system's default.
    Default,
    /// The first node, and others where it is full.
    Prefer,
    /// The given nodes only.
    Bind,
    /// The nodes in turn.
    Interleave,
    /// The node of the allocating processor.
    Local,
}

/// A weight by which jobs that run at the same time share what they issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowShare {
    /// Number of the group; its jobs share.
    pub id: u32,
    /// The weight; above 0.
    pub weight: u32,
    /// Pause of a job that is ahead.
    pub pause: Nanos,
}

/// A search for the highest depth that keeps a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DepthSearch {
    /// Latency that is kept, in nanoseconds.
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
    /// Figure that is to be steady.
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
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Mean latency, in nanoseconds.
    Latency,
}

/// Longest times that requests may take; 0 is any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxLatency {
    /// Longest time of a read.
    pub reads: Nanos,
    /// Longest time of a write or a discard.
    pub writes: Nanos,
}

/// Rates below which a phase ends, of reads and of writes; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RateFloor {
    /// Bytes a second that are read.
    pub read_bytes: u64,
    /// Bytes a second that are written.
    pub write_bytes: u64,
    /// Reads a second.
    pub read_ops: u64,
    /// Writes a second.
    pub write_ops: u64,
    /// Time over which a rate is taken.
    pub cycle: Nanos,
}

/// Rate of one direction of a closed loop that has both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneSidedRate {
    /// True if it is that of writes.
    pub writes: bool,
    /// The most requests a second of that direction; where one is not due, a request goes the other way.
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
