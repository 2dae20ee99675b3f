//! A window: a slice of a phase with its own counts and histograms.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Histogram};

/// Direction of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Requests that read.
    Read,
    /// Requests that write.
    Write,
    /// fdatasync calls.
    Sync,
    /// A group of writes and the fdatasync that ends it, timed from the first write's start to the
    /// fdatasync's end: what a database's commit waits for.
    Commit,
}

impl Direction {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Direction; 4] = [
        Direction::Read,
        Direction::Write,
        Direction::Sync,
        Direction::Commit,
    ];

    /// The word for it in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Sync => "sync",
            Direction::Commit => "commit",
        }
    }
}

/// Counts over a tenth of a window. The statistics use these, since a phase has few windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Requests that came back.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// One direction in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowFlow {
    /// Counts by slice, in order of time.
    pub slices: Vec<Slice>,
    /// Latency in nanoseconds of the requests that came back in this window, from the time they
    /// were scheduled (open loop) or submitted (closed loop).
    pub latency: Histogram,
}

impl WindowFlow {
    /// Requests that came back in this window.
    pub fn ops(&self) -> u64 {
        self.slices.iter().map(|slice| slice.ops).sum()
    }

    /// Bytes that they moved.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.slices.iter().map(|slice| slice.bytes).sum())
    }
}

/// The kernel's counts on one device: the difference between two readings of its diskstats. Sectors there are
/// always of 512 bytes (Linux, Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounts {
    /// Reads completed, after merging.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed, after merging.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed (Linux 5.5 and later).
    pub flushes: u64,
    /// Milliseconds in which anything was in flight.
    pub busy_ms: u64,
}

/// A slice of a phase, 1 s by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Start, in seconds from the phase's start.
    pub t_s: f64,
    /// Length in seconds. The last window of a phase is often shorter.
    pub seconds: f64,
    /// Length of each of its slices, in seconds.
    pub slice_seconds: f64,
    /// Requests that read.
    pub read: Option<WindowFlow>,
    /// Requests that write.
    pub write: Option<WindowFlow>,
    /// fdatasync calls.
    pub sync: Option<WindowFlow>,
    /// Commits.
    pub commit: Option<WindowFlow>,
    /// Requests that were in flight, or due, when the window ended.
    pub in_flight: u64,
    /// The share of the workers' time in which they waited for the device, 0 to 1.
    pub idle_fraction: f64,
    /// The kernel's counts meanwhile on the device below, where there is one.
    pub device: Option<DeviceCounts>,
}

impl Window {
    /// One direction's part.
    pub fn flow(&self, direction: Direction) -> Option<&WindowFlow> {
        match direction {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Sync => self.sync.as_ref(),
            Direction::Commit => self.commit.as_ref(),
        }
    }

    /// Reads and writes that came back, slice by slice.
    pub fn slice_ops(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = Vec::new();
        for flow in [&self.read, &self.write].into_iter().flatten() {
            if sums.len() < flow.slices.len() {
                sums.resize(flow.slices.len(), 0);
            }
            for (sum, slice) in sums.iter_mut().zip(&flow.slices) {
                *sum += slice.ops;
            }
        }
        sums
    }

    /// Number of its slices that are complete: the last one of a phase that was cut short is not.
    pub fn complete_slices(&self) -> usize {
        // The little more makes up for the rounding of 1 s into ten slices of 0.1 s.
        (self.seconds / self.slice_seconds + 1e-6) as usize
    }

    /// Reads and writes that came back.
    pub fn ops(&self) -> u64 {
        [&self.read, &self.write]
            .into_iter()
            .flatten()
            .map(WindowFlow::ops)
            .sum()
    }
}
