//! Rate of zeroing a disk over time, in a bounded number of slices of equal length.

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use study::interval::{Interval, mean_interval};

/// Length of a slice at first.
const SLICE: Nanos = Nanos(100_000_000);
/// Number of slices at which pairs of slices are merged into slices of twice the length. It is even, so that no slice
/// remains unpaired.
const MAX_SLICES: usize = 1024;

/// Bytes zeroed in each slice of time. Pauses between a kill and the next start are not included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Pace {
    /// Length of a slice.
    slice: Nanos,
    /// Bytes zeroed in each slice.
    slices: Vec<u64>,
    /// All bytes zeroed, including those in incomplete slices.
    bytes: Bytes,
    /// Duration of zeroing.
    took: Nanos,
}

impl Pace {
    /// Rate of a disk of which nothing is zeroed yet.
    pub(crate) fn new() -> Pace {
        Pace {
            slice: SLICE,
            slices: Vec::new(),
            bytes: Bytes(0),
            took: Nanos(0),
        }
    }

    /// Duration of zeroing, without the pauses between a kill and the next start.
    pub(crate) fn elapsed(&self) -> Nanos {
        self.took
    }

    /// Mean rate in bytes a second; 0 where nothing was zeroed.
    pub(crate) fn mean(&self) -> f64 {
        match self.took.as_secs_f64() {
            seconds if seconds > 0.0 => self.bytes.0 as f64 / seconds,
            _ => 0.0,
        }
    }

    /// Rate in bytes a second with its 95 % interval; `None` where there are too few slices.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let seconds = self.slice.as_secs_f64();
        let slices: Vec<f64> = self.slices.iter().map(|&b| b as f64 / seconds).collect();
        mean_interval(&slices)
    }

    /// Merges pairs of slices into slices of twice the length.
    fn fold(&mut self) {
        self.slices = self
            .slices
            .chunks(2)
            .map(|pair| pair.iter().sum())
            .collect();
        self.slice = Nanos(self.slice.0 * 2);
    }
}

/// Recorder that adds the slices of one start to a [`Pace`]. The pause before the start and the incomplete last slice
/// are left out.
#[derive(Debug)]
pub(crate) struct PaceRecorder {
    /// Duration of zeroing before this start.
    before: Nanos,
    /// Time of this start, on the caller's clock.
    began: Nanos,
    /// End of the current slice, on the caller's clock.
    ends: Nanos,
    /// Bytes zeroed so far in the current slice.
    filling: u64,
}

impl PaceRecorder {
    /// Recorder that continues a pace at `now`, on any monotonic clock.
    pub(crate) fn start(pace: &Pace, now: Nanos) -> PaceRecorder {
        PaceRecorder {
            before: pace.took,
            began: now,
            ends: now + pace.slice,
            filling: 0,
        }
    }

    /// Adds bytes whose write completed at `now`.
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

    /// Pace of a disk that completes `count` requests of 1 MiB, one each `gap`.
    fn steady(gap: Nanos, count: u64) -> Pace {
        let mut pace = Pace::new();
        let mut recorder = PaceRecorder::start(&pace, Nanos(77));
        for request in 1..=count {
            recorder.done(&mut pace, Nanos(77 + gap.0 * request), Bytes::MIB);
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
            // The first slice lacks the request that was in flight at its start.
            assert!(interval.half_width_fraction() < 0.03, "{interval:?}");
        }
    }

    #[test]
    fn a_pause_between_two_starts_does_not_count() {
        let mut pace = steady(Nanos(10_000_000), 1_000);
        let alone = pace.interval().unwrap();
        let mut recorder = PaceRecorder::start(&pace, Nanos::from_secs(1_000_000));
        for request in 1..=1_000_u64 {
            let now = Nanos::from_secs(1_000_000) + Nanos(10_000_000 * request);
            recorder.done(&mut pace, now, Bytes::MIB);
        }
        let both = pace.interval().unwrap();
        assert!((both.mean / alone.mean - 1.0).abs() < 0.01, "{both:?}");
        assert_eq!(pace.elapsed(), Nanos::from_secs(20));
    }

    #[test]
    fn a_stall_is_in_it() {
        let mut pace = Pace::new();
        let mut recorder = PaceRecorder::start(&pace, Nanos(0));
        recorder.done(&mut pace, Nanos(1), Bytes::MIB);
        recorder.done(&mut pace, Nanos::from_secs(4), Bytes::MIB);
        assert_eq!(pace.slices.len(), 40);
        assert_eq!(pace.slices.iter().sum::<u64>(), 1 << 20);
        assert!(pace.interval().unwrap().mean < 300_000.0);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_counted_twice(gaps in prop::collection::vec(0..500_000_000_u64, 1..3000)) {
            let mut pace = Pace::new();
            let mut recorder = PaceRecorder::start(&pace, Nanos(0));
            let mut now = Nanos(0);
            for gap in &gaps {
                now += Nanos(*gap);
                recorder.done(&mut pace, now, Bytes(1));
            }
            prop_assert_eq!(pace.slices.iter().sum::<u64>() + recorder.filling, gaps.len() as u64);
            prop_assert!(pace.slices.len() < MAX_SLICES);
            prop_assert_eq!(pace.took, now);
        }
    }
}
