//! Exponential buckets of schema 6, as in Prometheus' native histograms.
//!
//! Bucket `i` holds the values above `2^((i - 1) / 64)` and up to `2^(i / 64)`. A percentile reported as the
//! geometric mean of its bucket's bounds errs by at most 0.54 %. OTLP's exponential histogram of scale 6 has the same
//! buckets under the index `i - 1`. Histograms are merged by adding counts of equal buckets.

use std::collections::BTreeMap;

/// Buckets in each power of two.
const PER_DOUBLING: i32 = 64;
/// The lowest bucket, which also holds zero and all values below it. In milliseconds it ends below a nanosecond.
pub const MIN_BUCKET: i16 = -20 * PER_DOUBLING as i16;
/// The highest bucket, which also holds all values above it. In milliseconds it begins at 34 years.
pub const MAX_BUCKET: i16 = 40 * PER_DOUBLING as i16;

/// Upper bounds of the buckets between 1 and 2, as the bits of a double's fraction.
static FRACTIONS: [u64; PER_DOUBLING as usize] = fractions();

/// Leading bits of a double's fraction, by which a bucket is looked up. A step is narrower than any bucket, so that at
/// most one bound lies in a step.
const STEP_BITS: u32 = 7;
const STEP: u32 = f64::MANTISSA_DIGITS - 1 - STEP_BITS;
/// The first bucket that reaches into each step.
static STEPS: [u8; 1 << STEP_BITS] = steps();

const fn steps() -> [u8; 1 << STEP_BITS] {
    let bounds = fractions();
    let mut steps = [0; 1 << STEP_BITS];
    let (mut step, mut bucket) = (0, 0);
    while step < steps.len() {
        while bounds[bucket] < (step as u64) << STEP {
            bucket += 1;
        }
        steps[step] = bucket as u8;
        step += 1;
    }
    steps
}

/// 2^(i/64) for i in 1..=64 by repeated square roots. `const` evaluation has no square root, hence Newton's method in
/// integers.
const fn fractions() -> [u64; PER_DOUBLING as usize] {
    // 2^(1/64) in fixed point with 62 bits below the point, by six square roots of 2.
    let one: u128 = 1 << 62;
    let mut root = one << 1;
    let mut step = 0;
    while step < 6 {
        root = square_root(root << 62);
        step += 1;
    }
    let mut bounds = [0; PER_DOUBLING as usize];
    let (mut power, mut index) = (one, 0);
    while index < bounds.len() {
        power = (power * root) >> 62;
        // The fraction of a double has 52 bits. The last bound, 2, is beyond every fraction.
        bounds[index] = if index + 1 == bounds.len() {
            u64::MAX
        } else {
            ((power - one) >> 10) as u64
        };
        index += 1;
    }
    bounds
}

const fn square_root(square: u128) -> u128 {
    let (mut low, mut high) = (0_u128, 1_u128 << 64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle * middle <= square {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Bucket of a value that is finite and not negative.
pub fn bucket(value: f64) -> i16 {
    // Minus zero is zero.
    let bits = value.abs().to_bits();
    // Subnormal numbers and zero have the exponent −1023: the lowest bucket.
    let exponent = (bits >> 52) as i32 - 1023;
    let fraction = bits & ((1 << 52) - 1);
    if exponent < i32::from(MIN_BUCKET) / PER_DOUBLING {
        return MIN_BUCKET;
    }
    if exponent >= i32::from(MAX_BUCKET) / PER_DOUBLING {
        return MAX_BUCKET;
    }
    // A power of two is the upper bound of its bucket.
    let within = match fraction {
        0 => 0,
        _ => {
            let first = STEPS[(fraction >> STEP) as usize];
            i32::from(first) + i32::from(FRACTIONS[usize::from(first)] < fraction) + 1
        }
    };
    (exponent * PER_DOUBLING + within) as i16
}

/// Upper bound of a bucket.
pub fn upper(bucket: i16) -> f64 {
    (f64::from(bucket) / f64::from(PER_DOUBLING)).exp2()
}

/// Counts of events by bucket of the histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BucketCounts {
    counts: BTreeMap<i16, f64>,
}

impl BucketCounts {
    /// Adds a count to a bucket.
    pub fn add(&mut self, bucket: i16, count: f64) {
        *self.counts.entry(bucket).or_default() += count;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &BucketCounts) {
        for (bucket, count) in &other.counts {
            self.add(*bucket, *count);
        }
    }

    /// Number of values.
    pub fn count(&self) -> f64 {
        self.counts.values().sum()
    }

    /// Buckets and their counts, the lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = (i16, f64)> {
        self.counts.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// The value below which a share of all values lies (nearest rank), as the geometric mean of the bounds of its
    /// bucket; `None` without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.count();
        let rank = (share * total).max(f64::MIN_POSITIVE);
        let mut below = 0.0;
        let mut found = None;
        for (bucket, count) in self.buckets().filter(|(_, count)| *count > 0.0) {
            found = Some(bucket);
            below += count;
            // A sum of fractional counts may miss the total by a rounding.
            if below >= rank * (1.0 - 1e-12) {
                break;
            }
        }
        found.map(|bucket| match bucket {
            MIN_BUCKET => 0.0,
            bucket => upper(bucket) * (-0.5 / f64::from(PER_DOUBLING)).exp2(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_two_are_upper_bounds_and_outliers_go_to_the_ends() {
        for (value, expected) in [
            (1.0, 0),
            (2.0, 64),
            (0.5, -64),
            (1.000_001, 1),
            (1.999_999, 64),
            (0.0, MIN_BUCKET),
            (-0.0, MIN_BUCKET),
            (1e-300, MIN_BUCKET),
            (f64::MAX, MAX_BUCKET),
            (2.0_f64.powi(40), MAX_BUCKET),
        ] {
            assert_eq!(bucket(value), expected, "{value}");
        }
    }

    #[test]
    fn percentiles_are_within_half_a_bucket() {
        let mut histogram = BucketCounts::default();
        for value in 1..=1000 {
            histogram.add(bucket(f64::from(value)), 1.0);
        }
        for (share, truth) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(share).unwrap();
            assert!((found / truth - 1.0).abs() < 0.0055, "{share}: {found}");
        }
        assert_eq!(BucketCounts::default().quantile(0.5), None);
    }

    #[test]
    fn each_bound_is_the_last_of_its_bucket() {
        for (index, bound) in FRACTIONS.iter().enumerate().take(63) {
            let value = |fraction: u64| f64::from_bits(1023 << 52 | fraction);
            assert_eq!(bucket(value(*bound)), index as i16 + 1);
            assert_eq!(bucket(value(*bound + 1)), index as i16 + 2);
        }
    }

    proptest! {
        #[test]
        fn a_value_lies_within_its_bucket(value in 1e-5..1e9_f64) {
            let index = bucket(value);
            prop_assert!(value <= upper(index) * (1.0 + 1e-12));
            prop_assert!(value > upper(index - 1) * (1.0 - 1e-12));
        }
    }
}
