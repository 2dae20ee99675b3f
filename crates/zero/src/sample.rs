//! Samples of a disk's places: the time of the first write compared with the second, and whether they read as zeros.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linux::Root;
use linux::block::Devices;
use linux::diskstats::{Counter, DiskStats};
use reader::IdleGap;
use record::{Bytes, Nanos, Ranges};
use serde::{Deserialize, Serialize};
use study::effects::{Pair, SettingEffect, effect};

use super::place::{ClaimedDisk, whole};

/// Size of a place that is written twice, and of the parts at both ends of the disk that are read back.
pub(crate) const PLACE: Bytes = Bytes::MIB;
/// Size of a random place that is read back, and of a read request.
const READ: Bytes = reader::REQUEST_SIZE_BESIDE_FOREGROUND;
/// Maximum number of places in a sample.
const MAX_PLACES: u64 = 64;
/// Minimum number of places on the disk for each one in the sample.
const PLACES_PER_SAMPLE: u64 = 4;
/// Number of places in a group. A group is written once and then again before the next group: a change on the disk or
/// of other load while the sample is taken affects both passes alike.
pub(crate) const PLACES_PER_TURN: usize = 8;

/// Random, distinct, aligned places of `size` bytes within the ranges `of`, in random order. At most one in
/// [`PLACES_PER_SAMPLE`] places is taken, so that the sample of a small disk is not the whole disk.
pub(crate) fn places(of: &Ranges, size: Bytes, seed: u64) -> Vec<Range<u64>> {
    let whole: Vec<Range<u64>> = of
        .iter()
        .map(|range| range.start.div_ceil(size.0)..range.end / size.0)
        .filter(|places| !places.is_empty())
        .collect();
    let there: u64 = whole.iter().map(|places| places.end - places.start).sum();
    let wanted = MAX_PLACES.min(there / PLACES_PER_SAMPLE) as usize;
    let mut seen = BTreeSet::new();
    (0..)
        .map(|draw| engine::derive_seed(seed, draw) % there.max(1))
        .filter(|at| seen.insert(*at))
        .take(wanted)
        .filter_map(|at| nth(&whole, at))
        .map(|place| place * size.0..(place + 1) * size.0)
        .collect()
}

/// The number at position `at` in the concatenation of the ranges.
fn nth(ranges: &[Range<u64>], mut at: u64) -> Option<u64> {
    for range in ranges {
        let count = range.end - range.start;
        if at < count {
            return Some(range.start + at);
        }
        at -= count;
    }
    None
}

/// Times of writing places for the first time and, a moment later, again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DoubleWriteTimes {
    /// Times of the first and the second write of each place, by group.
    pub groups: Vec<Vec<(Nanos, Nanos)>>,
}

impl DoubleWriteTimes {
    /// Number of places that were written twice.
    pub(crate) fn places(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Time of the first write divided by that of the second. A group counts as one value: places that were written one
    /// after the other are not independent. `None` where there is no group.
    pub(crate) fn penalty(&self) -> Option<SettingEffect> {
        let blocks = self.groups.iter().map(|group| {
            let mean = |pick: fn(&(Nanos, Nanos)) -> Nanos| {
                let logs = group.iter().map(|both| pick(both).as_secs_f64().ln());
                (logs.sum::<f64>() / group.len() as f64).exp()
            };
            (mean(|both| both.1), mean(|both| both.0))
        });
        effect(&[Pair {
            from: 2,
            to: 1,
            blocks: blocks.collect(),
        }])
    }
}

/// Result of reading a sample of places.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReadBack {
    /// Number of places read.
    pub places: usize,
    /// The ranges that did not read as zeros.
    pub not_zero: Ranges,
    /// The ranges that could not be read.
    pub unreadable: Ranges,
    /// The kernel's error of the first range that could not be read.
    pub why: Option<String>,
}

impl ReadBack {
    /// True if the whole sample could be read and is zero.
    pub(crate) fn is_well(&self) -> bool {
        self.not_zero.is_empty() && self.unreadable.is_empty()
    }

    /// Records the result of reading a range: true where it is zero, or the error.
    pub(crate) fn take(&mut self, range: Range<u64>, is_zero: io::Result<bool>) {
        match is_zero {
            Ok(true) => {}
            Ok(false) => self.not_zero.insert(range),
            Err(error) => {
                self.unreadable.insert(range);
                self.why.get_or_insert(error.to_string());
            }
        }
    }
}

/// Reads a sample of ranges that should be zero: random places, and both ends. It is read before or after the zeroing,
/// without a limit of the rate. Each read waits for an idle gap of the disk, so that a foreground request waits for at
/// most one read. `None` if a signal arrived.
pub(crate) fn read_back(
    place: &ClaimedDisk,
    zeroed: &Ranges,
    seed: u64,
    root: &Root,
    interrupt: &AtomicBool,
) -> Option<ReadBack> {
    let mut asked = places(zeroed, READ, seed);
    let first = zeroed.iter().next();
    asked.extend(first.map(|range| range.start..range.end.min(range.start + PLACE.0)));
    let last = zeroed.iter().next_back();
    asked.extend(last.map(|range| range.start.max(range.end.saturating_sub(PLACE.0))..range.end));
    let counter = counter(place, root);
    let counters = || counter.as_ref()?.read().ok();
    let is_zero = |range: &Range<u64>| place.is_zero(range.clone());
    read_in_gaps(&asked, counters, is_zero, interrupt)
}

/// Reads ranges in pieces, each in an idle gap of the disk with these counters; `None` if a signal arrived.
fn read_in_gaps(
    asked: &[Range<u64>],
    mut counters: impl FnMut() -> Option<DiskStats>,
    mut is_zero: impl FnMut(&Range<u64>) -> io::Result<bool>,
    interrupt: &AtomicBool,
) -> Option<ReadBack> {
    let mut back = ReadBack {
        places: asked.len(),
        ..ReadBack::default()
    };
    let mut idle_gap = IdleGap::default();
    for range in asked.iter().flat_map(|range| pieces(range.clone(), READ)) {
        if interrupt.load(Relaxed) {
            return None;
        }
        let (read, _) = idle_gap.read(Some(Duration::ZERO), &mut counters, || is_zero(&range));
        back.take(range, read);
    }
    Some(back)
}

/// Counters of the disk that the place lies on; `None` where the kernel does not count.
fn counter(place: &ClaimedDisk, root: &Root) -> Option<Counter> {
    let devices = Devices::read(root).ok()?;
    Counter::if_counted(root, whole(devices.get(place.number)?, &devices))
}

/// A range, divided into pieces of this size.
pub(crate) fn pieces(range: Range<u64>, size: Bytes) -> Vec<Range<u64>> {
    Ranges::from(range).blocks(size).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use crate::place::on_file;
    use proptest::prelude::*;
    use reader::Buffer;

    /// Times of double writes of which the first takes `penalty` times as long as the second, with random variation.
    fn write_times(penalty: f64) -> DoubleWriteTimes {
        let time = |at: u64, factor: f64| {
            let scatter = (engine::derive_seed(9, at) % 1000) as f64 / 5000.0;
            Nanos((2e6 * factor * (1.0 + scatter)) as u64)
        };
        let group = |group: u64| {
            let places = (0..PLACES_PER_TURN as u64).map(|place| group * 100 + place);
            places
                .map(|place| (time(place, penalty), time(place + 50, 1.0)))
                .collect()
        };
        DoubleWriteTimes {
            groups: (0..8).map(group).collect(),
        }
    }

    #[test]
    fn what_is_not_zero_is_found_at_both_ends_and_what_cannot_be_read_is_told() {
        let size = Bytes(40 * PLACE.0 + 512);
        let place = on_file(size);
        let all = Ranges::all(size);
        let root = Root::under(std::path::Path::new("/no/such"));
        let signal = AtomicBool::new(false);
        let read_back = || super::read_back(&place, &all, 5, &root, &signal);
        let back = read_back().unwrap();
        assert_eq!((back.places, back.is_well()), (66, true));
        for at in [0, size.0 - 1] {
            let written = place.direct.try_clone().unwrap();
            let block = at / 512 * 512;
            let mut memory = Buffer::new(1, 512);
            memory.part_mut(0).fill(7);
            written.write_all_at(memory.part(0), block).unwrap();
            let back = read_back().unwrap();
            assert!(!back.is_well() && back.not_zero.contains(&(at..at + 1)));
            memory.part_mut(0).fill(0);
            written.write_all_at(memory.part(0), block).unwrap();
        }
        place.direct.set_len(0).unwrap();
        let back = read_back().unwrap();
        assert!(back.unreadable.contains(&(0..PLACE.0)) && back.why.is_some());
        signal.store(true, Relaxed);
        assert_eq!(read_back(), None);
    }

    #[test]
    fn each_piece_waits_for_an_idle_gap_and_a_signal_ends_it() {
        let signal = AtomicBool::new(false);
        let asked = [0..READ.0, READ.0..3 * READ.0];
        let polls = std::cell::Cell::new(0);
        let busy = || {
            polls.set(polls.get() + 1);
            Some(DiskStats {
                in_flight: 1,
                ..DiskStats::default()
            })
        };
        let mut reads = Vec::new();
        let began = std::time::Instant::now();
        let back = read_in_gaps(
            &asked,
            busy,
            |range| {
                reads.push((range.clone(), polls.take()));
                std::thread::sleep(Duration::from_millis(4));
                Ok(true)
            },
            &signal,
        );
        assert!(back.unwrap().is_well());
        let ranges: Vec<Range<u64>> = reads.iter().map(|read| read.0.clone()).collect();
        assert_eq!(ranges, pieces(0..3 * READ.0, READ));
        assert!(reads.iter().all(|read| read.1 >= 2), "{reads:?}");
        // On a disk that is never idle, each read waits for 25 times the duration of a read; before the first read that
        // duration is not known.
        assert!(began.elapsed() >= 2 * Duration::from_millis(100));
        let mut read = 0;
        let stopped = read_in_gaps(
            &asked,
            || None,
            |_| {
                read += 1;
                signal.store(true, Relaxed);
                Ok(true)
            },
            &signal,
        );
        assert_eq!((stopped, read), (None, 1));
    }

    #[test]
    fn a_penalty_is_found_and_none_is_not() {
        let found = write_times(3.0).penalty().unwrap();
        let interval = found.interval.unwrap();
        assert!(interval.low > 2.7 && interval.high < 3.3, "{found:?}");
        let none = write_times(1.0).penalty().unwrap();
        assert!(none.interval.unwrap().low < 1.02, "{none:?}");
        assert!(none.interval.unwrap().high > 0.98, "{none:?}");
        assert_eq!(DoubleWriteTimes::default().penalty(), None);
    }

    proptest! {
        #[test]
        fn places_are_whole_apart_and_inside(
            ranges in prop::collection::vec((0..1_u64 << 30, 0..1_u64 << 28), 0..5),
            seed: u64,
        ) {
            let of: Ranges = ranges.iter().map(|(start, len)| *start..start + len).collect();
            let places = places(&of, PLACE, seed);
            let all: Ranges = places.iter().cloned().collect();
            prop_assert_eq!(all.total().0, places.len() as u64 * PLACE.0);
            prop_assert!(places.iter().all(|place| of.contains(place)));
            prop_assert!(places.iter().all(|place| place.start % PLACE.0 == 0));
            let whole = |range: Range<u64>| (range.end / PLACE.0).saturating_sub(range.start.div_ceil(PLACE.0));
            let there: u64 = of.iter().map(whole).sum();
            prop_assert_eq!(places.len() as u64, MAX_PLACES.min(there / PLACES_PER_SAMPLE));
        }
    }
}
