//! One kind of I/O, as a user describes it.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanos};

/// Where the next request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Anywhere in the span, every block as likely as any other.
    Random,
    /// After the last one, from the start of the span and round again. Each thread has its own
    /// part of the span, so that no two read the same place at the same time.
    Sequential,
}

/// One kind of I/O: what is issued, how much of it at once, where, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Where the next request goes.
    pub pattern: Pattern,
    /// The share of requests that are reads, 0 to 1.
    pub read_fraction: f64,
    /// The size of a request.
    pub block: Bytes,
    /// How many threads issue I/O, each on its own ring.
    pub threads: u32,
    /// How many requests each thread keeps in flight (closed loop), or may at most have in flight
    /// (open loop).
    pub depth: u32,
    /// Open loop: requests a second over all threads, at Poisson times. `None` is a closed loop.
    pub rate_per_s: Option<f64>,
    /// How much of the target, from its start, is used. `None` is all of it.
    pub span: Option<Bytes>,
    /// fdatasync after every this many writes of a thread; 0 never.
    pub sync_every: u32,
    /// One fdatasync by each thread when its last write has come back. Its time stands apart: it is
    /// not in the rate.
    pub sync_at_end: bool,
    /// When a phase ends although it is not precise yet.
    pub longest: Nanos,
    /// When a phase may end at the earliest.
    pub shortest: Nanos,
    /// The phase ends when the 95 % interval of its IOPS is within this share of the mean;
    /// 0 never ends it early.
    pub precision: f64,
    /// The phase ends after this many requests.
    pub ops: Option<u64>,
}

impl Workload {
    /// Whether any request writes.
    pub fn writes(&self) -> bool {
        self.read_fraction < 1.0
    }

    /// Whether any request reads.
    pub fn reads(&self) -> bool {
        self.read_fraction > 0.0
    }

    /// Requests in flight over all threads.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.depth)
    }
}
