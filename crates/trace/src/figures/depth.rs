//! Queue depth: requests that were issued and not completed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use record::Nanos;

use crate::io::Io;

/// Mean and maximum number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueueDepth {
    pub(crate) mean: f64,
    pub(crate) max: u64,
}

/// Computes queue depth over time.
#[derive(Debug, Default)]
pub(super) struct Depth {
    under_way: BinaryHeap<Reverse<Nanos>>,
    /// Sum of depth times nanoseconds.
    area: u128,
    last: Nanos,
    max: u64,
    has_completions: bool,
}

/// Maximum number of requests in flight that are held.
const MAX_REQUESTS: usize = 1 << 20;

impl Depth {
    /// Adds an I/O, and returns the depth including it.
    pub(super) fn add(&mut self, io: &Io) -> u64 {
        self.advance(io.issued);
        if let Some(completed) = io.completed {
            self.has_completions = true;
            if self.under_way.len() < MAX_REQUESTS {
                self.under_way.push(Reverse(completed));
            }
        }
        let depth = self.under_way.len() as u64;
        self.max = self.max.max(depth);
        depth
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(Reverse(completed)) = self.under_way.peek().copied() {
            if completed > now {
                break;
            }
            self.pass(completed);
            self.under_way.pop();
        }
        self.pass(now);
    }

    fn pass(&mut self, now: Nanos) {
        self.area += u128::from((now - self.last).0) * self.under_way.len() as u128;
        self.last = self.last.max(now);
    }

    pub(super) fn end(&mut self, end: Nanos) -> Option<QueueDepth> {
        self.advance(end);
        self.has_completions.then(|| QueueDepth {
            mean: self.area as f64 / end.0.max(1) as f64,
            max: self.max,
        })
    }
}
