//! Blocks that are fetched at their first use.

use std::collections::HashMap;

use record::Nanos;

use super::Random;
use super::bucket::Bucket;
use super::request::{Request, RequestKind};
use crate::spec::VolumeSpec;

/// Number of known fetches above which completed ones are forgotten.
const MAX_FETCHES: usize = 4096;

/// Blocks that are cold, and those that are being fetched.
#[derive(Clone, Debug)]
pub(super) struct ColdMap {
    spec: crate::spec::ColdBlocks,
    size: u64,
    seed: u64,
    /// A bit for each block, set while it is cold; empty if there were never cold blocks.
    bits: Vec<u64>,
    left: u64,
    fetching: HashMap<u64, Nanos>,
    /// Limit on the bytes a second of all fetches together; `None` for no limit.
    rate: Option<Bucket>,
}

impl ColdMap {
    pub(super) fn new(spec: &VolumeSpec, seed: u64) -> ColdMap {
        let mut map = ColdMap {
            spec: spec.cold,
            size: spec.size.0,
            seed,
            bits: Vec::new(),
            left: 0,
            fetching: HashMap::new(),
            rate: spec.cold.rate.map(|rate| Bucket::cap(rate.0 as f64)),
        };
        if spec.cold.fraction > 0.0 {
            map.choose_cold_blocks();
        }
        map
    }

    /// Chooses the cold blocks at random.
    fn choose_cold_blocks(&mut self) {
        let blocks = self.size.div_ceil(self.spec.block.0);
        self.bits = vec![0; blocks.div_ceil(64) as usize];
        let mut random = Random::of(self.seed, u64::MAX);
        for block in 0..blocks {
            if random.uniform() < self.spec.fraction {
                self.bits[(block / 64) as usize] |= 1 << (block % 64);
                self.left += 1;
            }
        }
    }

    /// Number of blocks that are still cold.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Time at which all blocks that this request needs are fetched, if it starts at `start`.
    pub(super) fn ready_at(&mut self, start: Nanos, request: &Request) -> Nanos {
        let mut ready = start;
        if self.bits.is_empty() || request.length == 0 || request.kind == RequestKind::Flush {
            return ready;
        }
        let block = self.spec.block.0;
        let last = (request.offset + request.length - 1) / block;
        for number in request.offset / block..=last {
            ready = ready.max(self.block_ready_at(start, request, number));
        }
        self.drop_finished_fetches(start);
        ready
    }

    fn block_ready_at(&mut self, start: Nanos, request: &Request, number: u64) -> Nanos {
        match (request.kind, self.covers(request, number)) {
            (RequestKind::Write | RequestKind::Zero | RequestKind::Trim, true) => {
                self.warm(number);
                self.fetching.remove(&number);
                start
            }
            (RequestKind::Trim, false) => start,
            _ if self.warm(number) => {
                let begins = self.fetch(start);
                let ready = Nanos(begins.0.saturating_add(self.fetch_time(number).0));
                self.fetching.insert(number, ready);
                ready
            }
            _ => self.fetching.get(&number).copied().unwrap_or(start),
        }
    }

    /// True if the request spans all of this block; the last block ends with the volume.
    fn covers(&self, request: &Request, number: u64) -> bool {
        let from = number * self.spec.block.0;
        let to = (from + self.spec.block.0).min(self.size);
        request.offset <= from && request.offset + request.length >= to
    }

    /// Makes a block warm; true if it was cold.
    fn warm(&mut self, number: u64) -> bool {
        let bit = 1 << (number % 64);
        let Some(word) = self.bits.get_mut((number / 64) as usize) else {
            return false;
        };
        let was = *word & bit != 0;
        *word &= !bit;
        self.left -= u64::from(was);
        was
    }

    /// Starts the next fetch as soon as the limit on all fetches allows it.
    fn fetch(&mut self, start: Nanos) -> Nanos {
        let bytes = self.spec.block.0 as f64;
        let Some(rate) = &mut self.rate else {
            return start;
        };
        let begins = rate.earliest(start, bytes);
        rate.take(begins, bytes);
        begins
    }

    /// Duration of the fetch of this block: a fixed random number of the block, whenever and in whatever order blocks
    /// are fetched.
    fn fetch_time(&self, number: u64) -> Nanos {
        let spread = (self.spec.max - self.spec.min).0 + 1;
        self.spec.min + Nanos(Random::of(self.seed, number).below(spread))
    }

    fn drop_finished_fetches(&mut self, now: Nanos) {
        if self.fetching.len() > MAX_FETCHES {
            self.fetching.retain(|_, ready| *ready > now);
        }
    }
}
