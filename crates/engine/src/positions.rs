//! Positions of requests: file and offset.

mod append;
mod extended;
mod permutation;
mod position;
mod runs;
mod skew;
mod zone_turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use record::{Direction, Pattern, Workload};

use crate::random::{Random, derive_seed};
use extended::{Alignments, ExtendedPositions};
pub(crate) use position::{in_file, position_in};

/// Generator of the positions of a thread's requests. Clones share the position of a sequential thread, as for the
/// workers of one thread.
#[derive(Clone)]
pub(crate) struct PositionGenerator {
    block: u64,
    /// The first block of this thread's part.
    first: u64,
    /// Number of blocks of that part.
    blocks: u64,
    /// Number of requests so far, of a sequential thread.
    issued: Option<Arc<AtomicU64>>,
    /// Extended options, if a workload has more than a pattern.
    detailed: Option<ExtendedPositions>,
}

impl PositionGenerator {
    /// Positions of thread `thread` of a workload in the first `span` bytes.
    pub(crate) fn of(workload: &Workload, span: u64, thread: u32, seed: u64) -> PositionGenerator {
        let block = workload.block.0;
        let plain = PositionGenerator::new(workload.pattern, span, block, thread, workload.threads);
        let seed = derive_seed(seed, u64::from(thread));
        PositionGenerator {
            detailed: workload.details.as_ref().map(|details| {
                let alignments = Alignments::of(workload, details);
                ExtendedPositions::new(workload.pattern, details, span, alignments, seed)
            }),
            ..plain
        }
    }

    /// Positions of thread `thread` of `threads` in a span of `span` bytes, in requests of `block` bytes.
    /// Random threads share the span; each sequential one has a part of it.
    pub(crate) fn new(
        pattern: Pattern,
        span: u64,
        block: u64,
        thread: u32,
        threads: u32,
    ) -> PositionGenerator {
        let all = span / block;
        match pattern {
            Pattern::Random => PositionGenerator {
                block,
                first: 0,
                blocks: all,
                issued: None,
                detailed: None,
            },
            Pattern::Sequential => {
                let start = |thread: u32| all * u64::from(thread) / u64::from(threads);
                PositionGenerator {
                    block,
                    first: start(thread),
                    blocks: start(thread + 1) - start(thread),
                    issued: Some(Arc::new(AtomicU64::new(0))),
                    detailed: None,
                }
            }
        }
    }

    /// The position of the next request; in the first file it equals the offset, in bytes.
    #[inline(always)]
    pub(crate) fn next(&mut self, direction: Direction, bytes: u64, random: &mut Random) -> u64 {
        if let Some(detailed) = &mut self.detailed {
            return detailed.next(direction, bytes, random);
        }
        let position = match &self.issued {
            None => random.below(self.blocks),
            Some(issued) => issued.fetch_add(1, Relaxed) % self.blocks,
        };
        (self.first + position) * self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequential_positions_wrap_around() {
        let mut random = Random::new(1);
        let mut positions = PositionGenerator::new(Pattern::Sequential, 10_000, 4096, 0, 1);
        let offsets: Vec<u64> = (0..5)
            .map(|_| positions.next(Direction::Read, 4096, &mut random))
            .collect();
        assert_eq!(offsets, [0, 4096, 0, 4096, 0]);
    }

    proptest! {
        #[test]
        fn a_request_never_reaches_past_the_span(
            span in 4096_u64..10_000_000,
            block in 1_u64..1024,
            threads in 1_u32..4,
            seed in any::<u64>(),
        ) {
            let mut random = Random::new(seed);
            for pattern in [Pattern::Random, Pattern::Sequential] {
                for thread in 0..threads {
                    let mut positions = PositionGenerator::new(pattern, span, block, thread, threads);
                    for _ in 0..50 {
                        let offset = positions.next(Direction::Read, block, &mut random);
                        prop_assert!(offset.is_multiple_of(block) && offset + block <= span);
                    }
                }
            }
        }

        #[test]
        fn sequential_threads_cover_the_span_once(
            blocks in 8_u64..200,
            threads in 1_u32..8,
        ) {
            let mut random = Random::new(0);
            let mut seen = Vec::new();
            for thread in 0..threads {
                let mut positions = PositionGenerator::new(Pattern::Sequential, blocks * 512, 512, thread, threads);
                seen.extend((0..positions.blocks).map(|_| positions.next(Direction::Read, 512, &mut random) / 512));
            }
            prop_assert_eq!(seen, (0..blocks).collect::<Vec<_>>());
        }
    }
}
