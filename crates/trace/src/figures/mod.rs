//! Figures of a trace, in bounded memory.

mod blocks;
mod depth;
mod heat;
mod series;

pub(crate) use blocks::Skew;
pub(crate) use heat::HeatMap;
pub(crate) use series::Series;

use std::collections::{BTreeMap, HashMap, VecDeque};

use record::{Bytes, Histogram, Nanos};

use crate::class::Class;
use crate::io::{DeviceIndex, Io, NameIndex, Op};
use blocks::Blocks;
use depth::{Depth, QueueDepth};

/// Maximum number of sequential streams tracked for a device: an I/O that begins where one of the last I/Os ended
/// continues its stream.
const MAX_STREAMS: usize = 32;
/// Maximum number of names and of sizes with figures of their own; all others are summed.
const MAX_GROUPS: usize = 4096;

/// Figures of a group of I/Os.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) ios: u64,
    pub(crate) bytes: Bytes,
    /// Latency from issue to completion, for I/Os whose completion was recorded.
    pub(crate) latency: Histogram,
}

impl Group {
    fn add(&mut self, io: &Io) {
        self.ios += 1;
        self.bytes += io.length;
        if let Some(completed) = io.completed {
            self.latency.record((completed - io.issued).0);
        }
    }
}

/// I/O in a slice of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) bytes: u64,
    pub(crate) latency: Histogram,
    pub(crate) deepest: u64,
    /// Distinct bytes accessed from the start of the trace to the end of the slice.
    pub(crate) distinct: u64,
}

impl series::Merge for Slice {
    fn merge(&mut self, later: &Slice) {
        self.reads += later.reads;
        self.writes += later.writes;
        self.flushes += later.flushes;
        self.bytes += later.bytes;
        self.latency.merge(&later.latency);
        self.deepest = self.deepest.max(later.deepest);
        self.distinct = self.distinct.max(later.distinct);
    }
}

/// Figures of a trace.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) reads: Group,
    pub(crate) writes: Group,
    pub(crate) flushes: Group,
    pub(crate) discards: Group,
    pub(crate) failed: u64,
    pub(crate) fua: u64,
    pub(crate) end: Nanos,
    /// Time from the block layer to the issue.
    pub(crate) queued: Histogram,
    pub(crate) classes: BTreeMap<Class, Group>,
    pub(crate) devices: HashMap<DeviceIndex, Group>,
    pub(crate) processes: HashMap<Option<NameIndex>, Group>,
    pub(crate) files: HashMap<Option<NameIndex>, Group>,
    /// Reads and writes by length.
    pub(crate) sizes: BTreeMap<(Op, u64), u64>,
    pub(crate) sequential: u64,
    ends: HashMap<(DeviceIndex, Op), VecDeque<u64>>,
    blocks: Blocks,
    depth: Depth,
    pub(crate) over_time: Series<Slice>,
    pub(crate) heat: HashMap<DeviceIndex, HeatMap>,
}

impl Figures {
    /// Adds an I/O; I/Os must be in the order of their issue.
    pub(crate) fn add(&mut self, io: &Io) {
        let of_op = match io.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Flush => &mut self.flushes,
            Op::Discard => &mut self.discards,
        };
        of_op.add(io);
        self.failed += u64::from(io.failed);
        self.fua += u64::from(io.fua);
        self.end = self.end.max(io.completed.unwrap_or(io.issued));
        if let Some(queued) = io.queued {
            self.queued.record((io.issued - queued).0);
        }
        self.classes.entry(Class::of(io)).or_default().add(io);
        self.devices.entry(io.device).or_default().add(io);
        bounded(&mut self.processes, io.process).add(io);
        bounded(&mut self.files, io.file).add(io);
        let depth = self.depth.add(io);
        self.add_place(io);
        let distinct = self.blocks.distinct().0;
        let slice = self.over_time.at(io.issued);
        match io.op {
            Op::Read => slice.reads += 1,
            Op::Write => slice.writes += 1,
            Op::Flush => slice.flushes += 1,
            Op::Discard => {}
        }
        slice.bytes += if io.op == Op::Discard { 0 } else { io.length.0 };
        if let Some(completed) = io.completed {
            slice.latency.record((completed - io.issued).0);
        }
        slice.deepest = slice.deepest.max(depth);
        slice.distinct = distinct;
    }

    /// Adds the offset of a read or a write.
    fn add_place(&mut self, io: &Io) {
        if !matches!(io.op, Op::Read | Op::Write) {
            return;
        }
        if self.sizes.len() < MAX_GROUPS || self.sizes.contains_key(&(io.op, io.length.0)) {
            *self.sizes.entry((io.op, io.length.0)).or_default() += 1;
        }
        let ends = self.ends.entry((io.device, io.op)).or_default();
        if let Some(at) = ends.iter().position(|end| *end == io.offset.0) {
            self.sequential += 1;
            ends.remove(at);
        }
        ends.push_back(io.offset.0.saturating_add(io.length.0));
        if ends.len() > MAX_STREAMS {
            ends.pop_front();
        }
        self.blocks.add(io);
        if self.heat.len() < 8 || self.heat.contains_key(&io.device) {
            self.heat.entry(io.device).or_default().add(io);
        }
    }

    /// Number of I/Os.
    pub(crate) fn ios(&self) -> u64 {
        self.reads.ios + self.writes.ios + self.flushes.ios + self.discards.ios
    }

    /// The highest rate in a slice of time, in I/Os per second without discards.
    pub(crate) fn peak_iops(&self) -> f64 {
        let slices = self.over_time.slices().iter();
        let most = slices
            .map(|slice| slice.reads + slice.writes + slice.flushes)
            .max();
        most.unwrap_or(0) as f64 / self.over_time.width().as_secs_f64()
    }

    /// Bytes that were read or written at least once.
    pub(crate) fn distinct(&self) -> Bytes {
        self.blocks.distinct()
    }

    /// True if the trace accesses more blocks than can be counted exactly, so that they were sampled.
    pub(crate) fn is_sampled(&self) -> bool {
        self.blocks.is_sampled()
    }

    /// Shares of the reads and writes that go to the hottest blocks.
    pub(crate) fn skew(&self) -> Vec<Skew> {
        self.blocks.skew()
    }

    /// Queue depth; `None` if completions were not recorded.
    pub(crate) fn depth(&mut self) -> Option<QueueDepth> {
        self.depth.end(self.end)
    }
}

fn bounded<K: std::hash::Hash + Eq>(
    groups: &mut HashMap<Option<K>, Group>,
    key: Option<K>,
) -> &mut Group {
    let has_room = groups.len() < MAX_GROUPS || groups.contains_key(&key);
    groups.entry(key.filter(|_| has_room)).or_default()
}

#[cfg(test)]
mod tests;
