//! Ranges that contain a check's mismatches. md reports only their number, so they lie between the positions of two
//! polls between which it grew.

use linux::md::sync::Sectors;
use record::{Bytes, Ranges};

use super::drive::ScrubProgress;

/// Maximum number of ranges; above it, the nearest ones are joined.
const MAX_RANGES: usize = 256;
/// Maximum length that md compares at once, in any order, in sectors: 16 MiB is more than RAID 1 and 10 have in flight
/// (`RESYNC_DEPTH` and `RESYNC_WINDOW` in linux, drivers/md).
const IN_FLIGHT: u64 = (16 << 20) / 512;

/// The ranges of a check's positions, in sectors, in which its count of mismatches grew.
#[derive(Clone, Debug)]
pub(crate) struct MismatchRanges {
    list: Ranges,
    /// Distance from md's position within which md may be comparing, in sectors.
    margin: u64,
    /// Position after which new mismatches lie.
    low: u64,
    /// Count at the last poll.
    seen: u64,
    /// Start of a range whose end is the position at the next poll.
    open: Option<u64>,
}

impl MismatchRanges {
    /// Ranges of a check that begins at `from`, where `seen` sectors were found before in the ranges `before`. `cache`
    /// is the size of the stripe cache for one member, if there is one.
    pub(crate) fn new(from: u64, seen: u64, before: Ranges, cache: Bytes) -> MismatchRanges {
        MismatchRanges {
            list: before,
            margin: IN_FLIGHT.saturating_add(Sectors::of(cache).0),
            low: from,
            seen,
            open: None,
        }
    }

    /// Takes the progress of the check.
    pub(crate) fn take(&mut self, at: &ScrubProgress) {
        if at.mismatches_seen < self.seen {
            // The check goes back to its last stop, and counts the mismatches since then again.
            self.open = None;
            self.seen = at.mismatches_seen;
            self.low = at.done.0;
        }
        // Direct comparison may continue from a position before md's.
        let surely = at.live.0.saturating_sub(self.margin).max(at.done.0);
        self.low = self.low.min(surely);
        // md reached this position after the last increase was counted.
        if let Some(start) = self.open.take() {
            self.add(start, at);
        }
        if at.mismatches_seen > self.seen {
            self.seen = at.mismatches_seen;
            self.open = Some(self.low);
        }
        self.low = self.low.max(at.done.0);
        self.low = self.low.max(at.live.0.saturating_sub(self.margin));
    }

    /// Takes the progress at the end of the check.
    pub(crate) fn end(&mut self, at: &ScrubProgress) {
        self.take(at);
        if let Some(start) = self.open.take() {
            self.add(start, at);
        }
    }

    fn add(&mut self, start: u64, at: &ScrubProgress) {
        let end = at.live.max(at.done).0.saturating_add(self.margin);
        let end = if at.of.0 > 0 { end.min(at.of.0) } else { end };
        self.list.insert(start..end);
        while self.list.count() > MAX_RANGES {
            let ranges: Vec<_> = self.list.iter().collect();
            let gaps = ranges.windows(2).map(|pair| pair[0].end..pair[1].start);
            let Some(gap) = gaps.min_by_key(|gap| gap.end - gap.start) else {
                return;
            };
            self.list.insert(gap);
        }
    }

    /// The ranges so far, including an open one, which ends at md's current position.
    pub(crate) fn list(&self, at: &ScrubProgress) -> Ranges {
        let mut all = self.clone();
        all.end(at);
        all.list
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use proptest::prelude::*;

    const END: u64 = 400 * IN_FLIGHT;

    fn at(live: u64, done: u64, seen: u64) -> ScrubProgress {
        ScrubProgress {
            live: Sectors(live),
            done: Sectors(done),
            of: Sectors(END),
            mismatches_seen: seen,
            ..ScrubProgress::default()
        }
    }

    #[test]
    fn a_range_is_around_where_the_count_grew_and_begins_after_what_was_done() {
        let mut ranges = MismatchRanges::new(0, 8, Ranges::new(), Bytes(0));
        let far = 10 * IN_FLIGHT;
        for counts in [
            at(far, far, 8),
            at(far + 10, far, 16),
            at(far + 20, far, 16),
        ] {
            ranges.take(&counts);
        }
        let list = ranges.list(&at(END / 2, far, 16));
        assert_eq!(list, Ranges::from(far..far + 20 + IN_FLIGHT));
    }

    #[test]
    fn ranges_are_bounded_in_number_and_by_the_end() {
        let mut ranges = MismatchRanges::new(0, 0, Ranges::new(), Bytes(0));
        for step in 0..1200 {
            let place = step * 100 * IN_FLIGHT / 3;
            ranges.take(&at(place, place, step / 3));
        }
        let mut last = at(0, 0, 1000);
        last.of = Sectors(1);
        ranges.end(&last);
        assert!(ranges.list.count() <= MAX_RANGES, "{}", ranges.list.count());
    }

    #[test]
    fn ranges_that_are_searched_again_are_listed_where_they_are_found_then() {
        let far = 10 * IN_FLIGHT;
        for found_again in [true, false] {
            let mut ranges = MismatchRanges::new(0, 0, Ranges::new(), Bytes(0));
            // It is found at full speed; then the check goes back to its last stop.
            ranges.take(&at(far, 0, 8));
            ranges.take(&at(0, 0, 0));
            let place = if found_again { far } else { 5 * far };
            ranges.take(&at(place, place, 0));
            ranges.take(&at(place + 128, place + 128, 8));
            let list = ranges.list(&at(place + 256, place + 256, 8));
            assert!(list.contains(&(place..place + 128)), "{list:?}");
        }
    }

    proptest! {
        /// A simulation of md: it begins positions in order, has some in flight, and completes these in any order.
        #[test]
        fn every_mismatch_lies_in_a_range(
            steps in prop::collection::vec((0_u64..3 * IN_FLIGHT, 0_u64..IN_FLIGHT, any::<bool>()), 1..40),
            drains in 2_usize..9,
        ) {
            let mut ranges = MismatchRanges::new(0, 0, Ranges::new(), Bytes(0));
            let (mut current, mut done, mut found) = (0_u64, 0, Vec::<u64>::new());
            for (index, (ahead, back, finds)) in steps.iter().enumerate() {
                let live = current;
                current += ahead;
                if *finds {
                    // Any position in flight may be the mismatch.
                    found.push(current.saturating_sub(*back).max(done));
                }
                if index % drains == 0 {
                    done = current;
                    ranges.take(&at(done, done, found.len() as u64));
                } else {
                    ranges.take(&at(live, done, found.len() as u64));
                }
            }
            let list = ranges.list(&at(current, done, found.len() as u64));
            for place in found.iter().filter(|place| **place < END) {
                let held = list.iter().any(|range| range.start <= *place && *place <= range.end);
                prop_assert!(held, "{place} is not in {list:?}");
            }
        }
    }
}
