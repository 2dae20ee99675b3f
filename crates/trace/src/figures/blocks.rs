//! Counts the blocks that a trace accesses, and how often. Beyond a maximum, they are counted in a sample chosen by a
//! hash of the block's offset, which has every access of a block or none (Waldspurger et al., SHARDS, FAST 2015).

use std::collections::HashMap;

use record::Bytes;
use record::random::mix;

use crate::io::{DeviceIndex, Io};

/// Size of a block in bytes.
const BLOCK: u64 = 4096;
/// Maximum number of blocks held: the first 4 GiB accessed are counted exactly.
const MAX_BLOCKS: usize = 1 << 20;
/// Shares of the accessed blocks, the hottest first, for which the share of accesses is reported.
const HOT_SHARES: [f64; 3] = [0.01, 0.05, 0.2];

/// Access counts of blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    counts: HashMap<(DeviceIndex, u64), u32>,
    /// A block is in the sample if its hash ends with this number of zero bits.
    zeros: u32,
    most: usize,
}

/// Share of the I/O that goes to the hottest blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Skew {
    /// The hottest share of the accessed blocks.
    pub(crate) hottest: f64,
    /// Share of the accesses that go to them.
    pub(crate) accesses: f64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            counts: HashMap::new(),
            zeros: 0,
            most: MAX_BLOCKS,
        }
    }
}

impl Blocks {
    /// Counts with another maximum number of blocks held.
    #[cfg(test)]
    pub(super) fn with_most(most: usize) -> Blocks {
        Blocks {
            most,
            ..Blocks::default()
        }
    }

    pub(super) fn add(&mut self, io: &Io) {
        if io.length == Bytes(0) {
            return;
        }
        let first = io.offset.0 / BLOCK;
        let last = io.offset.0.saturating_add(io.length.0 - 1) / BLOCK;
        // A damaged length must not make this run for hours.
        for block in first..=last.min(first + (1 << 20)) {
            let key = (io.device, block);
            if self.is_in_sample(key) {
                let count = self.counts.entry(key).or_default();
                *count = count.saturating_add(1);
            }
        }
        while self.counts.len() > self.most {
            self.zeros += 1;
            let zeros = self.zeros;
            self.counts
                .retain(|key, _| hash(*key).trailing_zeros() >= zeros);
        }
    }

    fn is_in_sample(&self, key: (DeviceIndex, u64)) -> bool {
        self.zeros == 0 || hash(key).trailing_zeros() >= self.zeros
    }

    pub(super) fn distinct(&self) -> Bytes {
        Bytes(((self.counts.len() as u64) << self.zeros).saturating_mul(BLOCK))
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.zeros > 0
    }

    pub(super) fn skew(&self) -> Vec<Skew> {
        let mut counts: Vec<u32> = self.counts.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if all == 0 {
            return Vec::new();
        }
        let share = |hottest: f64| {
            let blocks = (counts.len() as f64 * hottest).ceil() as usize;
            let hot: u64 = counts[..blocks].iter().map(|count| u64::from(*count)).sum();
            Skew {
                hottest,
                accesses: hot as f64 / all as f64,
            }
        };
        HOT_SHARES.into_iter().map(share).collect()
    }
}

fn hash((device, block): (DeviceIndex, u64)) -> u64 {
    mix(block ^ u64::from(device.0) << 48)
}
