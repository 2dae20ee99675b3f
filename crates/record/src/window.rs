//! A window: a slice of a phase with its own counts and histograms.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Histogram};

/// Kind of requests that a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Requests that read.
    Read,
    /// Requests that write.
    Write,
    /// fdatasync calls.
    Sync,
    /// A group of writes and the fdatasync that ends it, timed from the first write's start to the fdatasync's end: the
    /// latency of a database's commit.
    Commit,
    /// Discards of blocks before they are written. In a workload that only discards, discards count as writes.
    Trim,
}

impl Direction {
    /// All directions, in the order in which they are shown.
    pub const ALL: [Direction; 5] = [
        Direction::Read,
        Direction::Write,
        Direction::Sync,
        Direction::Commit,
        Direction::Trim,
    ];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Sync => "sync",
            Direction::Commit => "commit",
            Direction::Trim => "trim",
        }
    }
}

/// Counts over a tenth of a window. The statistics use these, since a phase has few windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// Completed requests.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// Requests of one direction in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowFlow {
    /// Counts by slice, in order of time.
    pub slices: Vec<Slice>,
    /// Latency in nanoseconds of the requests completed in this window, from the time they
    /// were scheduled (open loop) or submitted (closed loop).
    pub latency: Histogram,
}

impl WindowFlow {
    /// Joins the flow of a window with that of the next one; adjacent slices are joined in pairs.
    fn joined(this: Option<WindowFlow>, that: Option<WindowFlow>) -> WindowFlow {
        let slices = [&this, &that].map(|flow| flow.as_ref().map_or(0, |flow| flow.slices.len()));
        let most = slices.into_iter().max().unwrap_or(0);
        let mut joined = WindowFlow {
            slices: Vec::with_capacity(most),
            latency: Histogram::new(),
        };
        let mut all = Vec::with_capacity(2 * most);
        for flow in [this, that] {
            let mut flow = flow.unwrap_or_default();
            flow.slices.resize(most, Slice::default());
            all.append(&mut flow.slices);
            joined.latency.merge(&flow.latency);
        }
        joined.latency.trim();
        joined.slices = all
            .chunks(2)
            .map(|pair| Slice {
                ops: pair.iter().map(|slice| slice.ops).sum(),
                bytes: pair.iter().map(|slice| slice.bytes).sum(),
            })
            .collect();
        joined
    }

    /// Requests completed in this window.
    pub fn ops(&self) -> u64 {
        self.slices.iter().map(|slice| slice.ops).sum()
    }

    /// Bytes that they moved.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.slices.iter().map(|slice| slice.bytes).sum())
    }
}

/// The kernel's counts for a device: the difference between two readings of diskstats, in which a sector is always 512
/// bytes (Linux, Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Milliseconds in which any request was in flight.
    pub busy_ms: u64,
}

impl DeviceCounts {
    /// Sum of both counts.
    fn plus(self, other: DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            write_bytes: self.write_bytes + other.write_bytes,
            flushes: self.flushes + other.flushes,
            busy_ms: self.busy_ms + other.busy_ms,
        }
    }
}

/// A slice of a phase, 1 s by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Commits: writes together with the sync that ends them.
    pub commit: Option<WindowFlow>,
    /// Discards of blocks before they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<WindowFlow>,
    /// Requests that were in flight, or due, when the window ended.
    pub in_flight: u64,
    /// The share of the workers' time in which they waited for the device, 0 to 1.
    pub idle_fraction: f64,
    /// The kernel's counts for the device below during the window; `None` if there is no device.
    pub device: Option<DeviceCounts>,
}

impl Window {
    /// Flow of a direction.
    pub fn flow(&self, direction: Direction) -> Option<&WindowFlow> {
        match direction {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Sync => self.sync.as_ref(),
            Direction::Commit => self.commit.as_ref(),
            Direction::Trim => self.trim.as_ref(),
        }
    }

    /// Mutable flow of a direction.
    pub fn flow_mut(&mut self, direction: Direction) -> &mut Option<WindowFlow> {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Sync => &mut self.sync,
            Direction::Commit => &mut self.commit,
            Direction::Trim => &mut self.trim,
        }
    }

    /// Completed reads and writes, slice by slice.
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

    /// Joins the window with the following one of the same length.
    pub fn join(&mut self, next: &Window) {
        let (this, that) = (self.seconds, next.seconds);
        self.idle_fraction = (self.idle_fraction * this + next.idle_fraction * that)
            / (this + that).max(f64::MIN_POSITIVE);
        self.seconds += next.seconds;
        self.slice_seconds *= 2.0;
        self.in_flight = next.in_flight;
        self.device = match (self.device, next.device) {
            (Some(this), Some(that)) => Some(this.plus(that)),
            (this, that) => this.or(that),
        };
        for direction in Direction::ALL {
            let [this, that] = [&*self, next].map(|window| window.flow(direction).cloned());
            let joined = match (this, that) {
                (None, None) => None,
                (this, that) => Some(WindowFlow::joined(this, that)),
            };
            *self.flow_mut(direction) = joined;
        }
    }

    /// Number of its complete slices: the last slice of a phase may be incomplete.
    pub fn complete_slices(&self) -> usize {
        // The small addend compensates for rounding errors of 0.1 s slices.
        (self.seconds / self.slice_seconds + 1e-6) as usize
    }

    /// Completed reads and writes.
    pub fn ops(&self) -> u64 {
        [&self.read, &self.write]
            .into_iter()
            .flatten()
            .map(WindowFlow::ops)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_windows_become_one_of_twice_the_length() {
        let window = |t_s: f64, ops: u64| {
            let mut latency = Histogram::new();
            latency.record_many(1000 * ops, 4 * ops);
            Window {
                t_s,
                seconds: 1.0,
                slice_seconds: 0.25,
                read: Some(WindowFlow {
                    slices: vec![Slice { ops, bytes: 1 }; 4],
                    latency,
                }),
                in_flight: ops,
                idle_fraction: ops as f64 / 10.0,
                ..Window::default()
            }
        };
        let mut both = window(0.0, 2);
        both.join(&window(1.0, 3));
        let read = both.read.as_ref().unwrap();
        let ops: Vec<u64> = read.slices.iter().map(|slice| slice.ops).collect();
        assert_eq!(ops, [4, 4, 6, 6]);
        assert_eq!((read.latency.count(), both.in_flight), (20, 3));
        assert_eq!(
            (both.t_s, both.seconds, both.slice_seconds),
            (0.0, 2.0, 0.5)
        );
        assert!((both.idle_fraction - 0.25).abs() < 1e-9 && both.write.is_none());
    }
}
