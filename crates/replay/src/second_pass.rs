//! The second pass over a trace, on a thread of its own: prepares I/Os in the order of arrival, a bounded number ahead
//! of their issue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;

use engine::list;
use record::ReplayCounts;
use trace::{Class, Io, Op, ReadError, TraceReader};

use crate::class::Classifier;
use crate::depend::{Arrival, Inference, IoDependencies};
use crate::map::Placer;
use crate::source::arrival;

/// Number of I/Os that are handed over at once.
pub(crate) const BATCH: usize = 1024;
/// Maximum number of batches in the queue.
pub(crate) const MAX_BATCHES: usize = 64;
/// Number of I/Os that are held back for sorting by arrival: a trace is in the order of issue.
const REORDER_IOS: usize = 4096;

/// An I/O to be replayed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its sequence number among the replayed I/Os.
    pub number: u64,
    /// Recorded arrival, in nanoseconds since the first.
    pub at: u64,
    /// Recorded latency, in nanoseconds.
    pub latency: Option<u64>,
    pub class: Class,
    pub op: list::Op,
    pub file: u16,
    pub offset: u64,
    pub len: u32,
    /// True if nothing else was in flight at its arrival.
    pub was_alone: bool,
    /// True if it failed when it was recorded.
    pub had_failed: bool,
    /// I/Os that it waited for; empty unless dependencies are inferred.
    pub waits: IoDependencies,
}

/// Settings of the thread.
pub(crate) struct SortSettings {
    /// File and map of offsets of each device of the trace; `None` for a device that is left out.
    pub devices: Vec<Option<(u16, Placer)>>,
    pub reads_only: bool,
    pub discards: bool,
    /// True if dependencies are inferred.
    pub infers: bool,
    /// Arrival of the first I/O, in nanoseconds.
    pub first: u64,
}

/// Result of the pass.
#[derive(Debug, Default)]
pub(crate) struct ReadingEnd {
    pub counts: ReplayCounts,
    pub failed: Option<ReadError>,
}

/// Reads the trace and hands over its I/Os, until its end, an error, or the receiver is dropped.
pub(crate) fn run(
    mut reader: Box<dyn TraceReader>,
    sorting: &SortSettings,
    to: &SyncSender<Vec<Item>>,
    over: &AtomicBool,
) -> ReadingEnd {
    let mut batcher = Batcher {
        sorting,
        classes: Classifier::default(),
        inference: Inference::default(),
        busy_until: 0,
        latest: 0,
        numbers: 0,
        batch: Vec::with_capacity(BATCH),
        end: ReadingEnd::default(),
    };
    let mut held: BinaryHeap<Reverse<HeldIo>> = BinaryHeap::with_capacity(REORDER_IOS + 1);
    let mut order = 0_u64;
    while let Some(io) = reader.next() {
        let io = match io {
            Ok(io) => io,
            Err(error) => {
                batcher.end.failed = Some(error);
                break;
            }
        };
        order += 1;
        let came = arrival(&io);
        held.push(Reverse(HeldIo { came, order, io }));
        if held.len() > REORDER_IOS
            && let Some(Reverse(first)) = held.pop()
            && !batcher.take(&first, reader.as_ref(), to)
        {
            return batcher.end;
        }
        if over.load(Relaxed) {
            return batcher.end;
        }
    }
    while let Some(Reverse(first)) = held.pop() {
        if over.load(Relaxed) || !batcher.take(&first, reader.as_ref(), to) {
            return batcher.end;
        }
    }
    let rest = std::mem::take(&mut batcher.batch);
    if !rest.is_empty() {
        let _ = to.send(rest);
    }
    batcher.end
}

/// An I/O that is held back.
struct HeldIo {
    came: u64,
    order: u64,
    io: Io,
}

impl PartialEq for HeldIo {
    fn eq(&self, other: &HeldIo) -> bool {
        (self.came, self.order) == (other.came, other.order)
    }
}

impl Eq for HeldIo {}

impl PartialOrd for HeldIo {
    fn partial_cmp(&self, other: &HeldIo) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeldIo {
    fn cmp(&self, other: &HeldIo) -> std::cmp::Ordering {
        (self.came, self.order).cmp(&(other.came, other.order))
    }
}

struct Batcher<'a> {
    sorting: &'a SortSettings,
    classes: Classifier,
    inference: Inference,
    /// Time at which all I/Os so far had completed.
    busy_until: u64,
    /// Arrival of the last I/O.
    latest: u64,
    numbers: u64,
    batch: Vec<Item>,
    end: ReadingEnd,
}

impl Batcher<'_> {
    /// Hands an I/O over; false if the receiver was dropped.
    fn take(
        &mut self,
        held: &HeldIo,
        reader: &dyn TraceReader,
        to: &SyncSender<Vec<Item>>,
    ) -> bool {
        let io = &held.io;
        let place = self.sorting.devices.get(usize::from(io.device.0));
        let Some((file, placer)) = place.and_then(Option::as_ref) else {
            return true;
        };
        let (file, name) = (*file, io.file.and_then(|file| reader.name(file)));
        let device = reader.header().devices.get(usize::from(io.device.0));
        let cache = device.and_then(|device| device.write_cache);
        let class = self.classes.class(io, name, cache);
        let Some(mut item) = self.item(held, class, file, placer) else {
            return true;
        };
        self.numbers += 1;
        item.number = self.numbers - 1;
        if self.sorting.infers {
            item.waits = self.inference.waits(Arrival {
                number: item.number,
                at: item.at,
                completed: item.latency.map(|latency| item.at.saturating_add(latency)),
                thread: io.thread,
                is_commit: item.class.is_durable(),
            });
        }
        self.batch.push(item);
        if self.batch.len() < BATCH {
            return true;
        }
        let full = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        to.send(full).is_ok()
    }

    /// Item to issue for an I/O; `None` if it is left out.
    fn item(&mut self, held: &HeldIo, class: Class, file: u16, placer: &Placer) -> Option<Item> {
        let io = &held.io;
        let counts = &mut self.end.counts;
        counts.ios += 1;
        self.latest = self.latest.max(held.came);
        let at = self.latest.saturating_sub(self.sorting.first);
        let latency = io.completed.map(|done| done.0.saturating_sub(held.came));
        let was_alone = self.busy_until <= at;
        self.busy_until = self.busy_until.max(at.saturating_add(latency.unwrap_or(0)));
        if self.sorting.reads_only && io.op != Op::Read {
            counts.left_out += 1;
            return None;
        }
        if io.op == Op::Discard && !self.sorting.discards {
            counts.discards_left_out += 1;
            return None;
        }
        let op = match io.op {
            Op::Read => list::Op::Read,
            // This includes log writes recorded on a disk without a write cache: on a target with a cache, they must
            // be durable as well.
            Op::Write if class.is_durable() => list::Op::WriteDurable,
            Op::Write => list::Op::Write,
            Op::Flush => list::Op::Flush,
            Op::Discard => list::Op::Discard,
        };
        let (offset, len) = match op {
            list::Op::Flush => (0, 0),
            list::Op::Discard => placer.place_discard(io.offset.0, io.length.0, counts)?,
            _ => placer.place(io.offset.0, io.length.0, counts)?,
        };
        Some(Item {
            number: 0,
            at,
            latency,
            class,
            op,
            file,
            offset,
            len,
            was_alone,
            had_failed: io.failed,
            waits: IoDependencies::default(),
        })
    }
}
