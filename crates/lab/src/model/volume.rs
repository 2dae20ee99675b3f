//! A volume in simulated time.

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::Flow;
use super::Random;
use super::bucket::Cap;
use super::cold::ColdMap;
use super::merge::{MergeCount, MergeCounter};
use super::noise::NoiseModel;
use super::request::{Request, RequestKind};
use crate::spec::{ErrorOn, Span, VolumeSpec};

/// Time and result of a request.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Time at which it leaves the volume's own queue.
    pub start: Nanos,
    /// Latency from then on.
    pub latency: Nanos,
    /// Time at which the cold blocks that it needs are fetched; `start` if there are none.
    pub ready: Nanos,
    /// Operations that count toward caps.
    pub ops: u64,
    /// Bytes that count toward caps.
    pub bytes: u64,
    /// True if the request is answered with EIO.
    pub failed: bool,
}

/// Counters of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Requests that read.
    pub read: Flow,
    /// Writes, including those of zeros.
    pub write: Flow,
    /// Discards.
    pub trim: Flow,
    /// Number of flushes.
    pub flush: u64,
    /// Operations after merging and splitting: what the IOPS cap counts.
    pub counted_ops: u64,
    /// Requests that waited for a cold block.
    pub cold_waits: u64,
    /// Requests that were answered with EIO.
    pub errors: u64,
}

/// The caps of one volume.
#[derive(Clone, Debug)]
struct Buckets {
    ops: Option<Cap>,
    bytes: Option<Cap>,
}

/// Model of a volume: accepts requests in the order of their arrival.
#[derive(Clone, Debug)]
pub struct Volume {
    spec: VolumeSpec,
    buckets: Buckets,
    merger: MergeCounter,
    cold: ColdMap,
    noise: NoiseModel,
    latencies: Random,
    failures: Random,
    counters: Counters,
    /// Time at which the last request left the queue.
    last: Nanos,
}

impl Buckets {
    fn new(spec: &VolumeSpec) -> Buckets {
        let of_bytes = |bytes: Bytes| bytes.0 as f64;
        let burst = spec.burst.map(|burst| (burst.iops, burst.credits));
        let byte_burst = spec.throughput_burst;
        let byte_burst =
            byte_burst.map(|burst| (of_bytes(burst.throughput), of_bytes(burst.credits)));
        Buckets {
            ops: spec.iops.map(|iops| Cap::new(iops, burst)),
            bytes: spec
                .throughput
                .map(|rate| Cap::new(of_bytes(rate), byte_burst)),
        }
    }

    /// The caps that apply to this request, each with the number of tokens that it takes.
    fn costs(&mut self, ops: f64, bytes: f64) -> impl Iterator<Item = (&mut Cap, f64)> {
        [(&mut self.ops, ops), (&mut self.bytes, bytes)]
            .into_iter()
            .filter(|(_, cost)| *cost > 0.0)
            .filter_map(|(cap, cost)| Some((cap.as_mut()?, cost)))
    }

    /// Takes the tokens for the request at the earliest time, not before `from`, at which all caps have enough.
    fn pass(&mut self, from: Nanos, ops: u64, bytes: u64, noise: &NoiseModel) -> Nanos {
        let factor = noise.factor(from);
        let (ops, bytes) = (ops as f64, bytes as f64);
        let earliest = self
            .costs(ops, bytes)
            .map(|(cap, cost)| cap.earliest(from, cost, factor))
            .fold(from, Nanos::max);
        let start = noise.after_stall(earliest);
        // An episode may have begun or ended before that time.
        let factor = noise.factor(start);
        for (cap, cost) in self.costs(ops, bytes) {
            cap.take(start, cost, factor);
        }
        start
    }
}

impl Volume {
    /// A volume at time 0, with random numbers from `seed`. The times of its faults count from 0.
    pub fn new(spec: VolumeSpec, seed: u64) -> Volume {
        Volume {
            buckets: Buckets::new(&spec),
            merger: MergeCounter::new(spec.merge),
            cold: ColdMap::new(&spec, seed),
            noise: NoiseModel::new(&spec, Some(Nanos(0))),
            latencies: Random::of(seed, u64::MAX - 1),
            failures: Random::of(seed, u64::MAX - 2),
            counters: Counters::default(),
            last: Nanos(0),
            spec,
        }
    }

    /// The same volume without any faults until [`Volume::begin`]: no stalls, no slow episodes, no errors; and cold
    /// blocks cost nothing and stay cold.
    #[must_use]
    pub fn paused(mut self) -> Volume {
        self.noise = NoiseModel::new(&self.spec, None);
        self
    }

    /// Starts the faults of a held volume now. For others this does nothing.
    pub fn begin(&mut self, now: Nanos) {
        self.noise.begin(now);
    }

    /// Accepts a request that arrives now. Times must not decrease.
    pub fn admit(&mut self, now: Nanos, request: &Request) -> Admission {
        let (start, ops, bytes) = self.queue(now, request);
        let ready = match self.noise.elapsed(now) {
            Some(_) => self.cold.ready_at(start, request),
            None => start,
        };
        let admission = Admission {
            start,
            latency: self.latency(start),
            ready,
            ops,
            bytes,
            failed: self.fails(start, request),
        };
        if bytes > 0 {
            self.merger.scheduled(start, self.due(&admission, start));
        }
        self.tally(request, &admission);
        admission
    }

    /// Time at which the request is answered, if it passed everything after its volume at `passed`, which is `start`
    /// if nothing follows the volume.
    pub fn due(&self, admission: &Admission, passed: Nanos) -> Nanos {
        let done = passed.0.saturating_add(admission.latency.0);
        let done = Nanos(done).max(admission.ready);
        self.noise.after_stall(done)
    }

    /// Queues a request of the volume: the time at which it leaves, and its count toward caps.
    fn queue(&mut self, now: Nanos, request: &Request) -> (Nanos, u64, u64) {
        let Request { offset, length, .. } = *request;
        match request.kind {
            RequestKind::Flush => (self.noise.after_stall(now), 0, 0),
            RequestKind::Trim => (self.pass(now, 1, 0), 1, 0),
            RequestKind::Read | RequestKind::Write | RequestKind::Zero => {
                let write = request.kind != RequestKind::Read;
                match self.merger.count(now, write, offset, length) {
                    MergeCount::New(ops) => (self.pass(now, ops, length), ops, length),
                    // It leaves with its operation, which may already have left, as soon as the bytes cap allows.
                    MergeCount::Joined(start) => {
                        let from = self.noise.after_stall(now.max(start));
                        let start = self.buckets.pass(from, 0, length, &self.noise);
                        (start, 0, length)
                    }
                }
            }
        }
    }

    fn pass(&mut self, now: Nanos, ops: u64, bytes: u64) -> Nanos {
        let from = self.noise.after_stall(now.max(self.last));
        self.last = self.buckets.pass(from, ops, bytes, &self.noise);
        self.last
    }

    fn latency(&mut self, start: Nanos) -> Nanos {
        let latency = self.spec.latency;
        let above =
            (latency.mean - latency.min).0 as f64 * self.latencies.log_normal(latency.jitter);
        let nanos = (latency.min.0 as f64 + above) * self.noise.factor(start);
        Nanos(nanos as u64)
    }

    fn fails(&mut self, start: Nanos, request: &Request) -> bool {
        let errors = &self.spec.errors;
        let hit = match request.kind {
            RequestKind::Flush => false,
            RequestKind::Read => errors.on != ErrorOn::Write,
            RequestKind::Write | RequestKind::Zero | RequestKind::Trim => {
                errors.on != ErrorOn::Read
            }
        };
        let began = |elapsed| elapsed >= errors.after;
        if !hit || !self.noise.elapsed(start).is_some_and(began) {
            return false;
        }
        let span = Span {
            offset: request.offset,
            length: request.length,
        };
        let placed = errors
            .places
            .iter()
            .any(|place| place.shared(span).is_some());
        placed || (errors.rate > 0.0 && self.failures.uniform() < errors.rate)
    }

    fn tally(&mut self, request: &Request, admission: &Admission) {
        let counters = &mut self.counters;
        match request.kind {
            RequestKind::Read => counters.read.add(1, request.length),
            RequestKind::Write | RequestKind::Zero => counters.write.add(1, request.length),
            RequestKind::Trim => counters.trim.add(1, request.length),
            RequestKind::Flush => counters.flush += 1,
        }
        counters.counted_ops += admission.ops;
        counters.cold_waits += u64::from(admission.ready > admission.start);
        counters.errors += u64::from(admission.failed);
    }

    /// The specification that it was made from.
    pub fn spec(&self) -> &VolumeSpec {
        &self.spec
    }

    /// Counters of the volume.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Stalls and fail-slow episodes of the volume.
    pub fn noise(&self) -> &NoiseModel {
        &self.noise
    }

    /// Number of blocks that are still cold.
    pub fn cold_blocks_left(&self) -> u64 {
        self.cold.left()
    }

    /// I/O credits; `None` without a burst.
    pub fn credits(&self, now: Nanos) -> Option<f64> {
        self.buckets.ops.as_ref()?.credits_at(now)
    }

    /// Credits of its throughput, in bytes; `None` without a burst of it.
    pub fn throughput_credits(&self, now: Nanos) -> Option<Bytes> {
        let left = self.buckets.bytes.as_ref()?.credits_at(now)?;
        Some(Bytes(left as u64))
    }
}
