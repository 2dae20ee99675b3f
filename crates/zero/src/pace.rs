//! Pace of a disk, in slices of equal length, of which there are never too many to keep.

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use study::interval::{Interval, mean_interval};

/// Length of a slice at first.
const SLICE: Nanos = Nanos(100_000_000);
/// Number of slices at which each two become one of twice the length. Even, so that none is left over.
const MAX_SLICES: usize = 1024;

/// Bytes in slices of time. Pauses between a kill and the next start are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Pace {
    /// Length of a slice.
    slice: Nanos,
    /// Bytes that were done in each slice.
    slices: Vec<u64>,
    /// All bytes that were done, also those in no slice.
    bytes: Bytes,
    /// Time that zeroing took.
    took: Nanos,
}

impl Pace {
    /// Pace of a disk of which nothing is zeroed yet.
    pub(crate) fn new() -> Pace {
        Pace {
            slice: SLICE,
            slices: Vec::new(),
            bytes: Bytes(0),
            took: Nanos(0),
        }
    }

    /// Time that zeroing took, without the pauses between a kill and the next start.
    pub(crate) fn elapsed(&self) -> Nanos {
        self.took
    }

    /// The mean number of bytes a second, without a statement on how sure it is; 0 when nothing was
    /// done.
    pub(crate) fn mean(&self) -> f64 {
        match self.took.as_secs_f64() {
            seconds if seconds > 0.0 => self.bytes.0 as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Bytes a second with the 95 % interval; `None` where it was over too soon to tell.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let seconds = self.slice.as_secs_f64();
        let slices: Vec<f64> = self.slices.iter().map(|&b| b as f64 / seconds).collect();
        mean_interval(&slices)
    }

    /// Joins each two slices into one of twice the length.
    fn fold(&mut self) {
        self.slices = self
            .slices
            .chunks(2)
            .map(|pair| pair.iter().sum())
            .collect();
        self.slice = Nanos(self.slice.0 * 2);
    }
}

/// Fills a [`Pace`] from a start on: the pause before it, and the slice in which it ends, which is
/// not a whole one, are left out.
#[derive(Debug)]
pub(crate) struct PaceRecorder {
    /// Time that zeroing took before this start.
    before: Nanos,
    /// Time of this start, on the caller's clock.
    began: Nanos,
    /// End of the slice that is being filled, on that clock.
    ends: Nanos,
    /// Bytes done so far in that slice.
    filling: u64,
}

impl PaceRecorder {
    /// Goes on with a pace at `now`, on any clock that does not go back.
    pub(crate) fn start(pace: &Pace, now: Nanos) -> PaceRecorder {
        PaceRecorder {
            before: pace.took,
            began: now,
            ends: now + pace.slice,
            filling: 0,
        }
    }

    /// Notes bytes that were done by `now`.
    pub(crate) fn done(&mut self, pace: &mut Pace, now: Nanos, bytes: Bytes) {
        while now >= self.ends {
            pace.slices.push(std::mem::take(&mut self.filling));
            if pace.slices.len() == MAX_SLICES {
                pace.fold();
            }
            self.ends += pace.slice;
        }
        self.filling += bytes.0;
        pace.bytes += bytes;
        pace.took = self.before + (now - self.began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A disk that does a mebibyte each `gap` for so many requests.
    fn steady(gap: Nanos, count: u64) -> Pace {
        let mut pace = Pace::new();
        let mut clocked = PaceRecorder::start(&pace, Nanos(77));
        for request in 1..=count {
            clocked.done(&mut pace, Nanos(77 + gap.0 * request), Bytes::MIB);
        }
        pace
    }

    #[test]
    fn a_steady_disk_has_its_rate_however_long_it_takes() {
        for count in [1_000, 30_000, 300_000] {
            let pace = steady(Nanos(5_000_000), count);
            let truth = 200.0 * 1_048_576.0;
            assert!(pace.slices.len() <= MAX_SLICES);
            assert!((pace.mean() / truth - 1.0).abs() < 1e-9);
            let interval = pace.interval().unwrap();
            assert!((interval.mean / truth - 1.0).abs() < 0.01, "{interval:?}");
            // The first slice lacks the request that was under way.
            assert!(interval.half_width_fraction() < 0.03, "{interval:?}");
        }
    }

    #[test]
    fn a_pause_between_two_starts_does_not_count() {
        let mut pace = steady(Nanos(10_000_000), 1_000);
        let alone = pace.interval().unwrap();
        let mut clocked = PaceRecorder::start(&pace, Nanos::from_secs(1_000_000));
        for request in 1..=1_000_u64 {
            let now = Nanos::from_secs(1_000_000) + Nanos(10_000_000 * request);
            clocked.done(&mut pace, now, Bytes::MIB);
        }
        let both = pace.interval().unwrap();
        assert!((both.mean / alone.mean - 1.0).abs() < 0.01, "{both:?}");
        assert_eq!(pace.elapsed(), Nanos::from_secs(20));
    }

    #[test]
    fn a_stall_is_in_it() {
        let mut pace = Pace::new();
        let mut clocked = PaceRecorder::start(&pace, Nanos(0));
        clocked.done(&mut pace, Nanos(1), Bytes::MIB);
        clocked.done(&mut pace, Nanos::from_secs(4), Bytes::MIB);
        assert_eq!(pace.slices.len(), 40);
        assert_eq!(pace.slices.iter().sum::<u64>(), 1 << 20);
        assert!(pace.interval().unwrap().mean < 300_000.0);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_counted_twice(gaps in prop::collection::vec(0..500_000_000_u64, 1..3000)) {
            let mut pace = Pace::new();
            let mut clocked = PaceRecorder::start(&pace, Nanos(0));
            let mut now = Nanos(0);
            for gap in &gaps {
                now += Nanos(*gap);
                clocked.done(&mut pace, now, Bytes(1));
            }
            prop_assert_eq!(pace.slices.iter().sum::<u64>() + clocked.filling, gaps.len() as u64);
            prop_assert!(pace.slices.len() < MAX_SLICES);
            prop_assert_eq!(pace.took, now);
        }
    }
}
