//! Positions of workloads with extended options: several files, an offset, different sizes, other orders and
//! distributions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use record::{
    Bytes, Direction, JobOptions, Pattern, RandomDistribution, SizeShare, Stride, Workload,
    ZoneShare,
};

use super::append::AppendPointers;
use super::permutation::Permutation;
use super::position::position_in;
use super::runs::Runs;
use super::skew::SkewedRanks;
use super::zone_turns::{ZoneRules, ZoneTurns};
use crate::random::{Random, derive_seed};

/// Generator of positions in files of equal size. Clones share the position of a sequential thread.
#[derive(Clone)]
pub(crate) struct ExtendedPositions {
    files: u64,
    /// Start of the span in each file.
    start: u64,
    /// Length of the span in each file, in bytes.
    length: u64,
    alignments: Alignments,
    draw: Draw,
    /// Random requests that continue others.
    runs: Option<Runs>,
    /// Zones to which writes are appended.
    appended: Option<AppendPointers>,
}

/// Alignment of positions, in bytes: the smallest size of reads and that of writes, unless others are given, as in fio
/// without `ba` (HOWTO, blockalign). With one alignment for both, writes larger than the smallest read would cross two
/// of their own blocks, which costs more on RAID 5, remote volumes and flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alignments {
    read: u64,
    write: u64,
}

impl Alignments {
    /// The alignments of a workload.
    pub(crate) fn of(workload: &Workload, details: &JobOptions) -> Alignments {
        let alignment = |align: Option<Bytes>, sizes: &[SizeShare]| {
            let named = sizes.iter().map(|share| share.size).min();
            align.or(named).unwrap_or(workload.block).0.max(1)
        };
        let read = alignment(details.read_align, &details.read_sizes);
        let write = alignment(details.write_align, &details.write_sizes);
        // A direction that is not used does not affect the other one.
        Alignments {
            read: if workload.reads() { read } else { write },
            write: if workload.writes() { write } else { read },
        }
    }

    /// The alignment of a direction.
    fn of_direction(self, direction: Direction) -> u64 {
        match direction {
            Direction::Read => self.read,
            _ => self.write,
        }
    }

    /// The smaller alignment: the size of the blocks for tracking drawn and frequent positions.
    fn smallest(self) -> u64 {
        self.read.min(self.write)
    }
}

#[derive(Clone)]
enum Draw {
    /// A cursor for reads and one for writes, which advance separately as in fio.
    Sequential(Arc<Mutex<[Cursor; 2]>>),
    Uniform,
    Zoned(Vec<Zone>),
    /// Positions in one zone after another.
    InTurns(Arc<Mutex<ZoneTurns>>),
    Once {
        issued: Arc<AtomicU64>,
        permutation: Permutation,
        seed: u64,
    },
    Skewed {
        skew: SkewedRanks,
        permutation: Permutation,
        seed: u64,
    },
}

/// Blocks of random positions, for random numbers of at most `bound`.
#[derive(Clone, Copy)]
struct Zone {
    bound: u64,
    first: u64,
    blocks: u64,
}

/// Zones with `shares` of `blocks` blocks.
fn zones(shares: &[ZoneShare], blocks: u64) -> Vec<Zone> {
    let (mut access, mut size) = (0.0, 0.0);
    // The tolerance is for shares of whole blocks, which rounding may reduce.
    let at = |share: f64| ((share * blocks as f64 + 1e-6) as u64).min(blocks - 1);
    let mut zones: Vec<Zone> = shares
        .iter()
        .map(|share| {
            let first = at(size);
            access += share.access;
            size += share.size;
            Zone {
                bound: (access * u64::MAX as f64) as u64,
                first,
                blocks: (at(size) - first).max(1),
            }
        })
        .collect();
    // Rounding must not leave numbers or blocks without a zone.
    if let Some(last) = zones.last_mut() {
        last.bound = u64::MAX;
        last.blocks = blocks - last.first;
    }
    zones
}

/// Position of a sequential direction.
#[derive(Clone, Default)]
struct Cursor {
    turn: usize,
    /// Offset in each file, in bytes from the span's start.
    at: Vec<u64>,
    stride: Option<Stride>,
    /// Start of the zone, and the bytes transferred in it, for a stride with zones.
    zone: u64,
    moved: u64,
}

impl Cursor {
    fn next(&mut self, length: u64, bytes: u64) -> (u64, u64) {
        let files = self.at.len();
        let file = self.turn % files;
        self.turn += 1;
        let mut position = self.at[file];
        match self.stride {
            Some(Stride::Add(add)) if position > 0 => position = stepped(position, add, length),
            Some(Stride::Zones { size, range, skip }) => {
                if self.moved >= size.0 {
                    self.moved = 0;
                    self.zone += range.0 + skip.0;
                    position = self.zone;
                }
                if position + bytes > self.zone + range.0 {
                    position = self.zone;
                }
                self.moved += bytes;
            }
            _ => {}
        }
        if position + bytes > length {
            position = 0;
            self.zone = 0;
        }
        self.at[file] = position + bytes;
        (file as u64, position)
    }
}

/// The offset `add` bytes after the end of the last request. As in fio, an offset beyond the end of the span becomes
/// its start, and one before its start is counted from its end.
fn stepped(position: u64, add: i64, length: u64) -> u64 {
    let from_end = || length.saturating_sub(add.unsigned_abs());
    match position.checked_add_signed(add) {
        Some(next) if next < length => next,
        _ if add > 0 => 0,
        _ => from_end(),
    }
}

impl ExtendedPositions {
    /// Positions in a span of `span` bytes in each file, aligned to `alignments`.
    pub(crate) fn new(
        pattern: Pattern,
        details: &JobOptions,
        span: u64,
        alignments: Alignments,
        seed: u64,
    ) -> ExtendedPositions {
        let files = u64::from(details.files.max(1));
        let blocks = files * (span / alignments.smallest()).max(1);
        let draw = match (pattern, details.spread, details.stride) {
            (Pattern::Sequential, _, stride) => {
                let cursor = Cursor {
                    at: vec![0; files as usize],
                    stride,
                    ..Cursor::default()
                };
                Draw::Sequential(Arc::new(Mutex::new([cursor.clone(), cursor])))
            }
            (Pattern::Random, spread, Some(Stride::Zones { size, range, skip })) => {
                Draw::InTurns(Arc::new(Mutex::new(ZoneTurns::new(ZoneRules {
                    size: size.0,
                    range: range.0,
                    skip: skip.0,
                    once: spread == RandomDistribution::Once,
                    seed,
                }))))
            }
            (Pattern::Random, ..) if !details.zones.is_empty() => {
                Draw::Zoned(zones(&details.zones, blocks))
            }
            (Pattern::Random, RandomDistribution::Once, _) => Draw::Once {
                issued: Arc::new(AtomicU64::new(0)),
                permutation: Permutation::new(blocks),
                seed,
            },
            (Pattern::Random, spread, _) => match SkewedRanks::of(spread, blocks) {
                None => Draw::Uniform,
                Some(skew) => Draw::Skewed {
                    skew,
                    permutation: Permutation::new(blocks),
                    seed,
                },
            },
        };
        ExtendedPositions {
            files,
            start: details.offset.0,
            length: span,
            alignments,
            draw,
            runs: details.sequential_runs.map(Runs::new),
            appended: details.write_zones.map(AppendPointers::new),
        }
    }

    /// The position of the next request.
    pub(crate) fn next(&mut self, direction: Direction, bytes: u64, random: &mut Random) -> u64 {
        let continued = self
            .runs
            .as_ref()
            .and_then(|runs| runs.position(direction, bytes, self.length, random));
        let (file, mut position) = match continued {
            Some(position) => (0, position),
            None => self.drawn(direction, bytes, random),
        };
        if let Some(appended) = &self.appended
            && direction != Direction::Read
        {
            position = appended.position(position, bytes, self.length);
        }
        if let Some(runs) = &self.runs {
            runs.issued(direction, position, bytes);
        }
        position_in(file, self.start + position)
    }

    /// The file and the position of a request that does not continue another.
    fn drawn(&self, direction: Direction, bytes: u64, random: &mut Random) -> (u64, u64) {
        let alignment = self.alignments.of_direction(direction);
        match &self.draw {
            Draw::Sequential(cursors) => {
                let mut cursors = cursors.lock().unwrap_or_else(PoisonError::into_inner);
                let cursor = &mut cursors[usize::from(direction != Direction::Read)];
                cursor.next(self.length, bytes)
            }
            Draw::Uniform => {
                let room = self.length.saturating_sub(bytes) / alignment + 1;
                (random.below(self.files), random.below(room) * alignment)
            }
            Draw::InTurns(turns) => {
                let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
                (0, turns.next(self.length, bytes, alignment, random))
            }
            Draw::Zoned(zones) => {
                let number = random.next();
                let zone = zones.iter().find(|zone| number <= zone.bound);
                let block = zone.map_or(0, |zone| zone.first + random.below(zone.blocks));
                self.block(block, alignment, bytes)
            }
            Draw::Once {
                issued,
                permutation,
                seed,
            } => {
                let number = issued.fetch_add(1, Relaxed);
                let blocks = self.files * (self.length / self.alignments.smallest()).max(1);
                let round = derive_seed(*seed, number / blocks);
                self.block(
                    permutation.position(number % blocks, round),
                    alignment,
                    bytes,
                )
            }
            Draw::Skewed {
                skew,
                permutation,
                seed,
            } => self.block(
                permutation.position(skew.draw(random), *seed),
                alignment,
                bytes,
            ),
        }
    }

    /// The file and the position of block `block` over all files, where a request of `bytes` bytes fits. A request
    /// with a larger alignment gets the aligned position that contains the block, so that reads and writes share the
    /// frequent positions.
    fn block(&self, block: u64, alignment: u64, bytes: u64) -> (u64, u64) {
        let last = self.length.saturating_sub(bytes) / alignment;
        let within = block / self.files * self.alignments.smallest() / alignment;
        (block % self.files, within.min(last) * alignment)
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_file;
    use super::*;
    use proptest::prelude::*;
    use record::Bytes;

    fn positions(
        details: &JobOptions,
        pattern: Pattern,
        span: u64,
        alignment: u64,
    ) -> ExtendedPositions {
        let alignments = Alignments {
            read: alignment,
            write: alignment,
        };
        ExtendedPositions::new(pattern, details, span, alignments, 7)
    }

    #[test]
    fn sequential_files_take_turns_and_reads_and_writes_go_on_their_own() {
        let details = JobOptions {
            files: 2,
            offset: Bytes(1000),
            ..JobOptions::default()
        };
        let mut positions = positions(&details, Pattern::Sequential, 250, 100);
        let mut random = Random::new(1);
        let mut next = |direction| in_file(positions.next(direction, 100, &mut random));
        let seen: Vec<_> = (0..6).map(|_| next(Direction::Read)).collect();
        assert_eq!(
            seen,
            [
                (0, 1000),
                (1, 1000),
                (0, 1100),
                (1, 1100),
                (0, 1000),
                (1, 1000)
            ]
        );
        assert_eq!(next(Direction::Write), (0, 1000));
    }

    fn sequence(stride: Stride, length: u64, bytes: u64, count: usize) -> Vec<u64> {
        let details = JobOptions {
            stride: Some(stride),
            ..JobOptions::default()
        };
        let mut positions = positions(&details, Pattern::Sequential, length, bytes);
        let mut random = Random::new(1);
        let mut next = || in_file(positions.next(Direction::Read, bytes, &mut random)).1;
        (0..count).map(|_| next()).collect()
    }

    /// Compared with fio 3.33 with `rw=read:-8k` and `rw=read:8k` and blocks of 4k: `--debug=io` prints the positions.
    #[test]
    fn strides_go_forwards_and_backwards_and_round() {
        assert_eq!(
            sequence(Stride::Add(-8), 32, 4, 7),
            [0, 24, 20, 16, 12, 8, 4]
        );
        assert_eq!(sequence(Stride::Add(8), 32, 4, 5), [0, 12, 24, 0, 12]);
    }

    #[test]
    fn strided_zones_are_skipped_between() {
        let stride = |size, range, skip| Stride::Zones {
            size: Bytes(size),
            range: Bytes(range),
            skip: Bytes(skip),
        };
        assert_eq!(
            sequence(stride(8, 8, 16), 56, 4, 8),
            [0, 4, 24, 28, 48, 52, 0, 4]
        );
        // Half of each zone, and each zone twice.
        assert_eq!(sequence(stride(4, 8, 0), 16, 4, 3), [0, 8, 0]);
        assert_eq!(sequence(stride(16, 8, 8), 64, 4, 6), [0, 4, 0, 4, 16, 20]);
    }

    #[test]
    fn zones_have_their_shares_of_the_requests() {
        let zone = |access, size| ZoneShare { access, size };
        let details = JobOptions {
            zones: vec![zone(0.5, 0.05), zone(0.3, 0.15), zone(0.2, 0.8)],
            ..JobOptions::default()
        };
        let mut positions = positions(&details, Pattern::Random, 1000, 1);
        let mut random = Random::new(1);
        let mut seen = [0_u32; 3];
        for _ in 0..10_000 {
            let at = in_file(positions.next(Direction::Read, 1, &mut random)).1;
            seen[usize::from(at >= 50) + usize::from(at >= 200)] += 1;
        }
        // Binomial: a standard deviation of at most 50.
        for (seen, share) in seen.into_iter().zip([5000, 3000, 2000]) {
            assert!(seen.abs_diff(share) < 300, "{seen} of {share}");
        }
    }

    #[test]
    fn positions_lie_at_multiples_of_the_alignment() {
        let details = JobOptions {
            read_sizes: vec![SizeShare {
                size: Bytes(512),
                share: 1.0,
            }],
            read_align: Some(Bytes(4096)),
            ..JobOptions::default()
        };
        let workload = Workload {
            read_fraction: 1.0,
            ..crate::tally::tests::workload()
        };
        let alignments = Alignments::of(&workload, &details);
        let mut positions =
            ExtendedPositions::new(Pattern::Random, &details, 1 << 20, alignments, 7);
        let mut random = Random::new(1);
        let mut next = || in_file(positions.next(Direction::Read, 512, &mut random)).1;
        assert!((0..1000).all(|_| next().is_multiple_of(4096)));
    }

    #[test]
    fn once_means_once_over_all_files_and_then_in_another_order() {
        let details = JobOptions {
            files: 3,
            spread: RandomDistribution::Once,
            ..JobOptions::default()
        };
        let mut positions = positions(&details, Pattern::Random, 100, 10);
        let mut random = Random::new(1);
        let mut round = || -> Vec<u64> {
            let mut next = || positions.next(Direction::Read, 10, &mut random);
            (0..30).map(|_| next()).collect()
        };
        let (first, second) = (round(), round());
        assert_ne!(first, second);
        for mut seen in [first, second] {
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 30);
        }
    }

    #[test]
    fn a_skewed_job_repeats_a_few_positions() {
        let details = JobOptions {
            spread: RandomDistribution::Zipf(1.2),
            ..JobOptions::default()
        };
        let mut positions = positions(&details, Pattern::Random, 1 << 30, 4096);
        let mut random = Random::new(1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            let position = positions.next(Direction::Read, 4096, &mut random);
            *seen.entry(position).or_insert(0_u32) += 1;
        }
        let most = seen.values().max().unwrap();
        // By Zipf's law the first of 262,144 ranks gets 19 % at an exponent of 1.2.
        assert!((1700..2200).contains(most), "{most}");
    }

    /// A job with `bs=4k,16k`: with the alignment of reads for both, three of four writes would cross two of their
    /// blocks.
    #[test]
    fn reads_and_writes_are_multiples_of_their_own_smallest_size() {
        let share = |kib| SizeShare {
            size: Bytes::kib(kib),
            share: 1.0,
        };
        for spread in [
            RandomDistribution::Uniform,
            RandomDistribution::Once,
            RandomDistribution::Zipf(0.9),
            RandomDistribution::Pareto(0.3),
        ] {
            let details = JobOptions {
                read_sizes: vec![share(4)],
                write_sizes: vec![share(64), share(16)],
                files: 2,
                spread,
                ..JobOptions::default()
            };
            let workload = Workload {
                read_fraction: 0.5,
                ..crate::tally::tests::workload()
            };
            let alignments = Alignments::of(&workload, &details);
            let mut positions =
                ExtendedPositions::new(Pattern::Random, &details, 1 << 20, alignments, 7);
            let mut random = Random::new(1);
            let mut draw = |direction, bytes| -> Vec<u64> {
                let mut next = || in_file(positions.next(direction, bytes, &mut random)).1;
                (0..2000).map(|_| next()).collect()
            };
            let (reads, writes) = (draw(Direction::Read, 4096), draw(Direction::Write, 16384));
            assert!(
                writes.iter().all(|position| position.is_multiple_of(16384)),
                "{spread:?}"
            );
            assert!(reads.iter().all(|position| position.is_multiple_of(4096)));
            let between = |position: &&u64| !position.is_multiple_of(16384);
            let share = reads.iter().filter(between).count() as f64 / 2000.0;
            assert!((0.6..0.9).contains(&share), "{spread:?}: {share}");
        }
    }

    proptest! {
        #[test]
        fn no_request_reaches_past_its_span(
            alignments in 8_u64..5000,
            files in 0_u32..5,
            offset in 0_u64..10_000,
            sizes in prop::collection::vec(1_u64..8, 20),
            spread in prop::sample::select(&[
                RandomDistribution::Uniform,
                RandomDistribution::Once,
                RandomDistribution::Zipf(0.9),
                RandomDistribution::Pareto(0.2),
            ][..]),
            sequential in any::<bool>(),
        ) {
            let details = JobOptions { files, offset: Bytes(offset), spread, ..JobOptions::default() };
            let pattern = if sequential { Pattern::Sequential } else { Pattern::Random };
            let mut positions = positions(&details, pattern, alignments * 512, 512);
            let mut random = Random::new(alignments);
            for size in sizes {
                let bytes = size * 512;
                let (file, position) = in_file(positions.next(Direction::Write, bytes, &mut random));
                prop_assert!(file < u64::from(files.max(1)));
                prop_assert!(position >= offset && position + bytes <= offset + alignments * 512);
            }
        }
    }
}
