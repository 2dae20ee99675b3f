//! Caps of an instance over all its volumes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::bucket::Cap;
use crate::spec::scale_bytes;

/// Caps on operations and bytes a second; `None` for no cap.
///
/// Where the most is more than what is sustained, as with small instances of EC2 (Amazon EC2 User Guide, "Amazon
/// EBS-optimized instances": the maximum for at least 30 minutes once every 24 hours), credits pay for it: at the start
/// they are enough for the burst's time, they are never more, and what of the sustained rate is not used flows back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Caps {
    /// Operations a second, sustained.
    pub iops: Option<f64>,
    /// Bytes a second, sustained.
    pub throughput: Option<Bytes>,
    /// The most operations a second, while credits last.
    pub most_iops: Option<f64>,
    /// The most bytes a second, while credits last.
    pub most_throughput: Option<Bytes>,
    /// Time for which the most of each can be had at the start, in nanoseconds.
    #[serde(rename = "burst_ns")]
    pub burst: Nanos,
}

impl Caps {
    /// True if nothing is capped.
    pub fn is_open(&self) -> bool {
        self.iops.is_none() && self.throughput.is_none()
    }

    /// Caps multiplied by `scale`.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Caps {
        Caps {
            iops: self.iops.map(|iops| iops * scale),
            throughput: self.throughput.map(|rate| scale_bytes(rate, scale)),
            most_iops: self.most_iops.map(|iops| iops * scale),
            most_throughput: self.most_throughput.map(|rate| scale_bytes(rate, scale)),
            burst: self.burst,
        }
    }

    fn cap(self, rate: f64, most: Option<f64>) -> Cap {
        let credits = |most: f64| (most - rate) * self.burst.as_secs_f64();
        let most = most.filter(|most| *most > rate && self.burst > Nanos(0));
        Cap::new(rate, most.map(|most| (most, credits(most))))
    }
}

/// A request that waits, in the order of a number that is compared first and of its arrival.
struct QueuedRequest<T> {
    order: (u64, u64),
    volume: usize,
    ops: u64,
    bytes: u64,
    what: T,
}

impl<T> PartialEq for QueuedRequest<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl<T> Eq for QueuedRequest<T> {}
impl<T> PartialOrd for QueuedRequest<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for QueuedRequest<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

/// Something that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmittedRequest<T> {
    /// Time of its arrival.
    pub at: Nanos,
    /// The request.
    pub what: T,
}

/// Lets through what the caps allow, and shares it fairly among the volumes that want it.
///
/// Fair is start-time fair queueing (Goyal, Vin and Cheng, 1996): each volume has a clock of the
/// work that it was given, and the volume that had least goes first. A volume with a deep queue
/// takes nothing from one with a shallow queue, and what one leaves the others have.
pub struct FairQueue<T> {
    caps: Caps,
    ops: Option<Cap>,
    bytes: Option<Cap>,
    /// Requests that have not yet left their volume, in the order in which they will.
    coming: BinaryHeap<Reverse<QueuedRequest<T>>>,
    /// Requests that wait here, in the order in which they go.
    waiting: BinaryHeap<Reverse<QueuedRequest<T>>>,
    /// Work of each volume up to now, in nanoseconds of the whole queue.
    work: Vec<u64>,
    /// The work clock of what went last.
    clock: u64,
    /// Time at which the last one arrived or went.
    now: Nanos,
    arrivals: u64,
}

impl<T> FairQueue<T> {
    /// A queue before so many volumes.
    pub fn new(caps: Caps, volumes: usize) -> FairQueue<T> {
        FairQueue {
            caps,
            ops: caps.iops.map(|iops| caps.cap(iops, caps.most_iops)),
            bytes: caps.throughput.map(|rate| {
                let most = caps.most_throughput.map(|most| most.0 as f64);
                caps.cap(rate.0 as f64, most)
            }),
            coming: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            work: vec![0; volumes],
            clock: 0,
            now: Nanos(0),
            arrivals: 0,
        }
    }

    /// Brings a request of a volume that reaches the queue at `at`.
    pub fn enqueue(&mut self, at: Nanos, volume: usize, ops: u64, bytes: u64, what: T) {
        self.arrivals += 1;
        self.coming.push(Reverse(QueuedRequest {
            order: (at.0, self.arrivals),
            volume,
            ops,
            bytes,
            what,
        }));
    }

    /// Time at which there is something to do; `None` while nothing is here.
    pub fn next(&self) -> Option<Nanos> {
        let coming = self.coming.peek().map(|c| Nanos(c.0.order.0));
        [coming, self.opens()].into_iter().flatten().min()
    }

    /// The next request that went by `now`.
    pub fn step(&mut self, now: Nanos) -> Option<AdmittedRequest<T>> {
        loop {
            let opens = self.opens().filter(|at| *at <= now);
            let comes = self.coming.peek().map(|c| Nanos(c.0.order.0));
            match (comes.filter(|at| *at <= now), opens) {
                (Some(comes), Some(opens)) if comes <= opens => self.arrive(),
                (Some(_), None) => self.arrive(),
                (_, Some(opens)) => return self.go(opens),
                (None, None) => return None,
            }
        }
    }

    /// Time at which the first of those that wait may go.
    fn opens(&self) -> Option<Nanos> {
        let first = &self.waiting.peek()?.0;
        let earliest = |cap: &Option<Cap>, cost: u64| match cap {
            Some(cap) if cost > 0 => cap.earliest(self.now, cost as f64, 1.0),
            _ => self.now,
        };
        Some(earliest(&self.ops, first.ops).max(earliest(&self.bytes, first.bytes)))
    }

    /// Takes the first of those that come.
    fn arrive(&mut self) {
        let Some(Reverse(mut one)) = self.coming.pop() else {
            return;
        };
        let (at, arrival) = one.order;
        self.now = self.now.max(Nanos(at));
        // A volume that was idle does not save up what it did not use.
        let begins = self
            .clock
            .max(self.work.get(one.volume).copied().unwrap_or(0));
        let ends = begins.saturating_add(self.work_of(one.ops, one.bytes));
        if let Some(work) = self.work.get_mut(one.volume) {
            *work = ends;
        }
        one.order = (begins, arrival);
        self.waiting.push(Reverse(one));
    }

    fn go(&mut self, at: Nanos) -> Option<AdmittedRequest<T>> {
        let Reverse(one) = self.waiting.pop()?;
        self.now = self.now.max(at);
        self.clock = self.clock.max(one.order.0);
        for (cap, cost) in [(&mut self.ops, one.ops), (&mut self.bytes, one.bytes)] {
            if let Some(cap) = cap.as_mut().filter(|_| cost > 0) {
                cap.take(at, cost as f64, 1.0);
            }
        }
        Some(AdmittedRequest { at, what: one.what })
    }

    /// Time for which the queue is busy with this, in nanoseconds.
    fn work_of(&self, ops: u64, bytes: u64) -> u64 {
        let of =
            |amount: u64, rate: Option<f64>| rate.map_or(0.0, |rate| amount as f64 / rate * 1e9);
        let ops = of(ops, self.caps.iops);
        let bytes = of(bytes, self.caps.throughput.map(|rate| rate.0 as f64));
        ops.max(bytes) as u64
    }
}
