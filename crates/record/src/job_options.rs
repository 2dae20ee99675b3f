//! Rules of jobs of a job file that are neither places nor sizes: data, checks, threads, shares and ends.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanos};

/// Data that writes hold, where it is not random throughout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contents {
    /// The share of each chunk that compresses to nothing, 0 to 1.
    pub compressible: f64,
    /// Length of a chunk.
    pub chunk: Bytes,
    /// The share of writes whose data an earlier one had, 0 to 1.
    pub repeated: f64,
    /// Number of different data that repeated writes draw from; 0 is the last one that was written.
    pub working_set: u64,
    /// Jobs that repeat data of each other.
    pub shared: bool,
    /// Bytes that take the place of what compresses, again and again; empty for zeros.
    pub pattern: Vec<u8>,
}

/// A check that what was written is what is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// Length of what has a header of its own; `None` is a request.
    pub interval: Option<Bytes>,
    /// Place of the header in it.
    pub header_at: u32,
    /// Data between headers; empty is random.
    pub pattern: Vec<u8>,
    /// Data has no header, and is the pattern throughout.
    pub pattern_only: bool,
    /// True if the writes are read back at the end.
    pub reads_back: bool,
    /// Number of writes after which they are read back; 0 never.
    pub backlog: u32,
    /// A block must hold the last of the writes to it.
    pub in_sequence: bool,
    /// The first failure ends the phase.
    pub fatal: bool,
}

/// Errors of the kernel that do not end a phase, by their numbers (errno(3)). Requests that fail with them are
/// counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NonFatal {
    /// Of reads.
    pub reads: Vec<i32>,
    /// Of all other requests: writes, discards and syncs.
    pub writes: Vec<i32>,
}

/// Surroundings of the threads that issue I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadSettings {
    /// Processors that they may run on; empty is all.
    pub cpus: Vec<u32>,
    /// Their nice value, where it is given.
    pub nice: Option<i32>,
    /// Priority of their I/O.
    pub priority: Option<Priority>,
    /// Nodes of memory for their buffers.
    pub memory: Option<MemoryPolicy>,
}

/// Priority of I/O, as ioprio_set(2) has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct PriorityShare {
    /// Requests that write, and not those that read.
    pub writes: bool,
    /// Requests of this size; `None` is all.
    pub size: Option<Bytes>,
    /// The share of them, 0 to 1.
    pub share: f64,
    /// The priority.
    pub priority: Priority,
}

/// Nodes of memory, as set_mempolicy(2) has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPolicy {
    /// Use of the nodes.
    pub mode: MemoryMode,
    /// Their numbers; empty where the mode needs none.
    pub nodes: Vec<u32>,
}

/// Use of nodes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// As the system has it.
    Default,
    /// One of them first, and others where it is full.
    Prefer,
    /// These alone.
    Bind,
    /// In turn.
    Interleave,
    /// The node of the processor that asks.
    Local,
}

/// A weight by which jobs that run at the same time share what they issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowShare {
    /// Jobs with one number share.
    pub id: u32,
    /// The weight; above 0.
    pub weight: u32,
    /// Pause of a job that is ahead.
    pub pause: Nanos,
}

/// A search for the most requests in flight that keep a latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthSearch {
    /// The latency.
    pub latency: Nanos,
    /// Time for which each number is tried.
    pub window: Nanos,
    /// The share of requests that must keep it, 0 to 1.
    pub share: f64,
    /// It continues when the number is found.
    pub continues: bool,
}

/// A steady state that ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Figure that is to be steady.
    pub of: SteadyFigure,
    /// Its slope is judged, and not its largest deviation from the mean.
    pub slope: bool,
    /// The most that is steady: in the unit of the figure, or as a share of its mean.
    pub limit: f64,
    /// The limit is a share of the mean.
    pub relative: bool,
    /// Time over which it must be steady, of the last of the phase.
    pub duration: Nanos,
    /// Time before anything is judged.
    pub ramp: Nanos,
    /// Time of one figure.
    pub interval: Nanos,
}

/// A figure that can be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct MaxLatency {
    /// Of reads.
    pub reads: Nanos,
    /// Of writes, trims among them.
    pub writes: Nanos,
}

/// Rates below which a phase ends, of reads and of writes; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Floor {
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
