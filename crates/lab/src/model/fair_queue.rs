//! Caps of an instance on all of its volumes together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::bucket::Cap;
use crate::spec::scale_bytes;

/// Caps on operations and bytes a second; `None` for no cap.
///
/// If the maximum is above the sustained rate, as for small instances of EC2 (Amazon EC2 User Guide, "Amazon
/// EBS-optimized instances": the maximum for at least 30 minutes once every 24 hours), the difference is paid with
/// credits. At the start, which is also their maximum, they last for the burst's time; the unused part of the
/// sustained rate refills them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Caps {
    /// Sustained operations a second.
    pub iops: Option<f64>,
    /// Sustained bytes a second.
    pub throughput: Option<Bytes>,
    /// Maximum operations a second, while credits last.
    pub most_iops: Option<f64>,
    /// Maximum bytes a second, while credits last.
    pub most_throughput: Option<Bytes>,
    /// Time for which the credits at the start last at the maximum rate, in nanoseconds.
    #[serde(rename = "burst_ns")]
    pub burst: Nanos,
}

impl Caps {
    /// True if there are no caps.
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

/// A waiting request, ordered by a number, and among equal numbers by arrival.
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

/// A released request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmittedRequest<T> {
    /// Time of its arrival.
    pub at: Nanos,
    /// The request.
    pub what: T,
}

/// Releases requests when the caps allow, and shares the rate fairly among the volumes with waiting requests.
///
/// Fairness is by start-time fair queueing (Goyal, Vin and Cheng, 1996): each volume has a clock of the work that it
/// received, and the volume with the lowest clock is next. A volume with a deep queue takes nothing from a volume with
/// a shallow queue, and the unused share of a volume is available to the others.
pub struct FairQueue<T> {
    caps: Caps,
    ops: Option<Cap>,
    bytes: Option<Cap>,
    /// Requests that have not yet left the queues of their volumes, in the order in which they will.
    coming: BinaryHeap<Reverse<QueuedRequest<T>>>,
    /// Requests that wait here, in the order of their release.
    waiting: BinaryHeap<Reverse<QueuedRequest<T>>>,
    /// Work received by each volume up to now, in nanoseconds of the whole queue.
    work: Vec<u64>,
    /// The work clock of the last released request.
    clock: u64,
    /// Time of the last arrival or release.
    now: Nanos,
    arrivals: u64,
}

impl<T> FairQueue<T> {
    /// A queue for this number of volumes.
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

    /// Adds a request of a volume that reaches the queue at `at`.
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

    /// Time of the next arrival or release; `None` if there are no requests.
    pub fn next(&self) -> Option<Nanos> {
        let coming = self.coming.peek().map(|c| Nanos(c.0.order.0));
        [coming, self.opens()].into_iter().flatten().min()
    }

    /// The next request that was released by `now`.
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

    /// Time at which the first waiting request may be released.
    fn opens(&self) -> Option<Nanos> {
        let first = &self.waiting.peek()?.0;
        let earliest = |cap: &Option<Cap>, cost: u64| match cap {
            Some(cap) if cost > 0 => cap.earliest(self.now, cost as f64, 1.0),
            _ => self.now,
        };
        Some(earliest(&self.ops, first.ops).max(earliest(&self.bytes, first.bytes)))
    }

    /// Takes the first of the arriving requests.
    fn arrive(&mut self) {
        let Some(Reverse(mut one)) = self.coming.pop() else {
            return;
        };
        let (at, arrival) = one.order;
        self.now = self.now.max(Nanos(at));
        // An idle volume does not accumulate its unused share.
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

    /// Time for which this request occupies the queue, in nanoseconds.
    fn work_of(&self, ops: u64, bytes: u64) -> u64 {
        let of =
            |amount: u64, rate: Option<f64>| rate.map_or(0.0, |rate| amount as f64 / rate * 1e9);
        let ops = of(ops, self.caps.iops);
        let bytes = of(bytes, self.caps.throughput.map(|rate| rate.0 as f64));
        ops.max(bytes) as u64
    }
}
