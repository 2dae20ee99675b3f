//! A latency histogram that represents every 64-bit value to within 0.4 %.
//!
//! Log-linear buckets: values below 256 have a bucket each; above that, every power of two is divided into 128 equal
//! parts. A bucket that begins at `v` is thus at most `v / 128` wide, and its middle, which is reported, differs by at
//! most `v / 256` (0.39 %) from any value in it. The largest 64-bit value has a bucket, so a latency of an hour is
//! recorded like one of 50 µs. Minimum, maximum and sum are exact.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::varint::{put, take, take_wide};

/// Binary logarithm of the number of buckets for each power of two.
const SUB_BITS: u32 = 7;
/// Values below this have a bucket of their own.
const LINEAR: u64 = 2 << SUB_BITS;
/// Number of buckets for all 64-bit values.
const BUCKETS: usize = ((64 - SUB_BITS as usize) << SUB_BITS) + (1 << SUB_BITS);

/// Counts of values (nanoseconds in a run, clock ticks inside the engine).
///
/// It stores the buckets from the smallest to the largest value with which it was built, and all 7,424 (58 KiB) as soon
/// as a value outside is recorded: a long run has thousands of windows, most of which span a few hundred buckets.
#[derive(Clone)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "String")
)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Number of the first bucket in `counts`.
    first: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Histogram({} values, {} to {})",
            self.count,
            self.min(),
            self.max
        )
    }
}

/// The bucket that `value` falls into.
#[inline(always)]
fn bucket_of(value: u64) -> usize {
    // Below LINEAR the shift is zero and the bucket number is the value itself. Above, the top SUB_BITS + 1 bits
    // select the bucket, and each further doubling adds 2^SUB_BITS.
    let shift = 63 - (value | (LINEAR - 1)).leading_zeros() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The smallest and the largest value of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return (bucket, bucket);
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let low = (bucket - (shift << SUB_BITS)) << shift;
    (low, low + ((1 << shift) - 1))
}

impl Histogram {
    /// An empty histogram.
    pub const fn new() -> Histogram {
        Histogram {
            counts: Vec::new(),
            first: 0,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Records one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        *self.slot(bucket_of(value)) += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Records `count` equal values.
    pub fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        *self.slot(bucket_of(value)) += count;
        self.count += count;
        self.sum += u128::from(value) * u128::from(count);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The count of a bucket; all buckets are stored from then on if this one was not.
    #[inline(always)]
    fn slot(&mut self, bucket: usize) -> &mut u64 {
        // One comparison covers both ends: a bucket before the first wraps around to a large index.
        if bucket.wrapping_sub(self.first) >= self.counts.len() {
            self.widen();
        }
        &mut self.counts[bucket - self.first]
    }

    /// Stores the buckets of all values.
    #[cold]
    fn widen(&mut self) {
        let mut counts = vec![0; BUCKETS];
        counts[self.first..][..self.counts.len()].copy_from_slice(&self.counts);
        self.counts = counts;
        self.first = 0;
    }

    /// Frees the memory of the buckets below the smallest and above the largest value.
    pub fn trim(&mut self) {
        let used = match self.count {
            0 => 0..0,
            _ => bucket_of(self.min) - self.first..bucket_of(self.max) - self.first + 1,
        };
        let first = self.first + used.start;
        self.counts = self.counts[used].to_vec();
        self.first = first;
    }

    /// The sum of these histograms.
    pub fn merged(parts: &[Histogram]) -> Histogram {
        let mut all = Histogram::new();
        parts.iter().for_each(|part| all.merge(part));
        all
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        for (low, _, count) in other.buckets() {
            *self.slot(bucket_of(low)) += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            let (least, most) = (bucket_of(self.min), bucket_of(self.max));
            self.counts[least - self.first..=most - self.first].fill(0);
        }
        self.count = 0;
        self.sum = 0;
        self.min = u64::MAX;
        self.max = 0;
    }

    /// The values multiplied by `factor`, as to convert clock ticks to nanoseconds. The count of a bucket goes to the
    /// bucket of the scaled middle, which at worst doubles the error of 0.39 %; minimum, maximum and mean stay exact.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Histogram {
        let scale = |value: u64| (value as f64 * factor).round() as u64;
        let mut scaled = Histogram::new();
        if self.count == 0 {
            return scaled;
        }
        scaled.min = scale(self.min);
        scaled.max = scale(self.max);
        for (low, high, count) in self.buckets() {
            let middle = scale(low + (high - low) / 2).clamp(scaled.min, scaled.max);
            *scaled.slot(bucket_of(middle)) += count;
        }
        scaled.count = self.count;
        scaled.sum = (self.sum as f64 * factor).round() as u128;
        scaled.trim();
        scaled
    }

    /// The histogram with 16 buckets per power of two instead of 128, for a short compact form: every value is within
    /// 3 %. Count, sum, minimum and maximum stay exact. A coarse histogram is not changed.
    #[must_use]
    pub fn coarse(&self) -> Histogram {
        let mut coarse = Histogram {
            counts: Vec::new(),
            first: 0,
            ..*self
        };
        for (low, _, count) in self.buckets() {
            let (middle, _) = bounds_of(bucket_of(low) & !7 | 4);
            *coarse.slot(bucket_of(middle.clamp(self.min, self.max))) += count;
        }
        coarse.trim();
        coarse
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Number of values recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest value, exact; 0 when empty.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest value, exact; 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean, exact; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The standard deviation, from the buckets' middles; 0 when empty.
    pub fn stddev(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self
            .buckets()
            .map(|(low, high, count)| {
                // A single value, or equal values, have a deviation of zero.
                let middle = (low + (high - low) / 2).clamp(self.min, self.max) as f64;
                count as f64 * (middle - mean).powi(2)
            })
            .sum();
        (squares / self.count as f64).sqrt()
    }

    /// The value that a share `quantile` (0 to 1) of all values does not exceed: the nearest-rank
    /// quantile, to within 0.39 %. 0 when empty.
    pub fn quantile(&self, quantile: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (low, high, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return (low + (high - low) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Number of values that are at most `value`, counting the whole bucket that `value` falls into.
    pub fn count_at_most(&self, value: u64) -> u64 {
        let last = bucket_of(value);
        self.buckets()
            .take_while(|(low, _, _)| bucket_of(*low) <= last)
            .map(|(_, _, count)| count)
            .sum()
    }

    /// Non-empty buckets, in ascending order: smallest value, largest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(at, &count)| {
            let (low, high) = bounds_of(self.first + at);
            (low, high, count)
        })
    }

    /// A compact form: count, sum, minimum and maximum as varints, and then for each non-empty bucket the distance from
    /// the previous one and the count.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.count);
        if self.count == 0 {
            return out;
        }
        put(&mut out, self.sum);
        put(&mut out, self.min);
        put(&mut out, self.max);
        let mut last = 0;
        for (low, _, count) in self.buckets() {
            let bucket = bucket_of(low);
            put(&mut out, (bucket - last) as u128);
            put(&mut out, count);
            last = bucket;
        }
        out
    }

    /// Reads what [`encode`](Histogram::encode) wrote.
    ///
    /// # Errors
    /// When the bytes end early, name a bucket that does not exist, or contradict themselves.
    pub fn decode(bytes: &[u8]) -> Result<Histogram, DecodeError> {
        let mut rest = bytes;
        let mut histogram = Histogram::new();
        histogram.count = take(&mut rest).ok_or(DecodeError)?;
        if histogram.count == 0 {
            return if rest.is_empty() {
                Ok(histogram)
            } else {
                Err(DecodeError)
            };
        }
        histogram.sum = take_wide(&mut rest).ok_or(DecodeError)?;
        histogram.min = take(&mut rest).ok_or(DecodeError)?;
        histogram.max = take(&mut rest).ok_or(DecodeError)?;
        if histogram.min > histogram.max {
            return Err(DecodeError);
        }
        histogram.first = bucket_of(histogram.min);
        histogram.counts = vec![0; bucket_of(histogram.max) - histogram.first + 1];
        let (mut bucket, mut total) = (0_usize, 0_u64);
        while !rest.is_empty() {
            let step =
                usize::try_from(take(&mut rest).ok_or(DecodeError)?).map_err(|_| DecodeError)?;
            let count = take(&mut rest).ok_or(DecodeError)?;
            bucket = bucket.checked_add(step).ok_or(DecodeError)?;
            let at = bucket.checked_sub(histogram.first).ok_or(DecodeError)?;
            *histogram.counts.get_mut(at).ok_or(DecodeError)? = count;
            total = total.checked_add(count).ok_or(DecodeError)?;
        }
        if total == histogram.count {
            Ok(histogram)
        } else {
            Err(DecodeError)
        }
    }
}

impl PartialEq for Histogram {
    /// Compares the recorded values, regardless of the stored empty buckets.
    fn eq(&self, other: &Histogram) -> bool {
        let figures = |h: &Histogram| (h.count, h.sum, h.min(), h.max);
        figures(self) == figures(other) && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

/// Error: a histogram's stored form is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored histogram is damaged")]
pub struct DecodeError;

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(self.encode()))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(serde::de::Error::custom)?;
        Histogram::decode(&bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_hour_is_far_below_the_largest_value() {
        let hour = 3_600_000_000_000;
        let mut h = Histogram::new();
        h.record(hour);
        h.record(u64::MAX);
        assert_eq!(h.count(), 2);
        assert!(h.quantile(0.5).abs_diff(hour) as f64 <= hour as f64 / 256.0);
        assert_eq!(h.max(), u64::MAX);
    }

    #[test]
    fn buckets_join_without_gap_or_overlap() {
        for bucket in 1..BUCKETS {
            assert_eq!(bounds_of(bucket - 1).1 + 1, bounds_of(bucket).0, "{bucket}");
        }
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
    }

    #[test]
    fn a_trimmed_histogram_is_small_and_continues() {
        let mut h = Histogram::new();
        h.record(1_000_000);
        h.record(1_100_000);
        let wide = h.clone();
        h.trim();
        assert!(h.counts.len() < 30, "{}", h.counts.len());
        assert_eq!(h, wide);
        h.record(5);
        h.record(u64::MAX);
        assert_eq!(h.count(), 4);
        assert_eq!(
            (h.min(), h.quantile(0.5), h.max()),
            (5, wide.quantile(0.0), u64::MAX)
        );
        let mut empty = Histogram::new();
        empty.trim();
        empty.record(7);
        assert_eq!(empty.quantile(1.0), 7);
    }

    #[test]
    fn figures_of_an_empty_histogram_are_zero() {
        let h = Histogram::new();
        assert_eq!((h.min(), h.max(), h.quantile(0.99)), (0, 0, 0));
        assert_eq!((h.mean(), h.stddev()), (0.0, 0.0));
    }

    #[test]
    fn damage_is_an_error_and_not_a_panic() {
        let mut h = Histogram::new();
        (0..1000).for_each(|v| h.record(v * v));
        let good = h.encode();
        assert_eq!(Histogram::decode(&good), Ok(h));
        for cut in 0..good.len() {
            assert_eq!(Histogram::decode(&good[..cut]), Err(DecodeError), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn every_value_is_within_0_4_percent_of_its_buckets_middle(value in any::<u64>()) {
            let (low, high) = bounds_of(bucket_of(value));
            prop_assert!(low <= value && value <= high);
            let middle = low + (high - low) / 2;
            prop_assert!(middle.abs_diff(value) as f64 <= value as f64 / 256.0);
        }

        #[test]
        fn quantiles_are_within_1_percent_of_the_sorted_values(
            mut values in prop::collection::vec(0_u64..10_000_000_000, 1..500),
            q in 0.0_f64..=1.0,
        ) {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let truth = values[rank - 1];
            prop_assert!(h.quantile(q).abs_diff(truth) as f64 <= truth as f64 * 0.01);
        }

        #[test]
        fn merging_is_recording_all(
            a in prop::collection::vec(any::<u64>(), 0..100),
            b in prop::collection::vec(any::<u64>(), 0..100),
        ) {
            let of = |values: &[u64]| {
                let mut h = Histogram::new();
                values.iter().for_each(|&v| h.record(v));
                h
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&merged, &of(&all));
            merged.clear();
            prop_assert_eq!(merged, Histogram::new());
        }

        #[test]
        fn the_compact_form_is_lossless(
            values in prop::collection::vec(any::<u64>(), 0..200),
        ) {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            let text = serde_json::to_string(&h).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
        }

        #[test]
        fn a_coarse_histogram_is_within_3_percent_and_coarsening_it_changes_nothing(
            values in prop::collection::vec(1_u64..1_000_000_000_000, 1..200),
            q in 0.0_f64..=1.0,
        ) {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            let coarse = h.coarse();
            prop_assert_eq!((coarse.count(), coarse.sum(), coarse.min(), coarse.max()), (h.count(), h.sum(), h.min(), h.max()));
            prop_assert!(coarse.quantile(q).abs_diff(h.quantile(q)) as f64 <= h.quantile(q) as f64 * 0.04 + 5.0);
            prop_assert_eq!(Histogram::decode(&coarse.encode()), Ok(coarse.clone()));
            prop_assert_eq!(coarse.coarse(), coarse);
        }

        #[test]
        fn decoding_noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Histogram::decode(&bytes);
        }

        #[test]
        fn scaling_keeps_the_error_under_1_percent(
            values in prop::collection::vec(1000_u64..1_000_000_000_000, 1..200),
            factor in 0.2_f64..2.0,
        ) {
            let mut ticks = Histogram::new();
            values.iter().for_each(|&v| ticks.record(v));
            let nanos = ticks.scaled(factor);
            prop_assert_eq!(nanos.count(), ticks.count());
            for q in [0.0, 0.5, 0.99, 1.0] {
                let truth = ticks.quantile(q) as f64 * factor;
                prop_assert!((nanos.quantile(q) as f64 - truth).abs() <= truth * 0.01 + 1.0);
            }
            // A scaled histogram can be stored: its minimum and maximum agree with its buckets.
            prop_assert_eq!(Histogram::decode(&nanos.encode()), Ok(nanos));
        }
    }
}
