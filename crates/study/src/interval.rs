//! The mean of an autocorrelated series, with its confidence interval.

use crate::noise::{Noise, ScaledSeries, batch_means, ones};

/// Minimum length of a series: with fewer values its autocorrelation cannot be estimated.
pub const MIN_SLICES: usize = 20;

/// Nominal probability that the noise exceeds the half width. It is below 5 %, because the grid of the noise is coarse
/// and real series are not normal; by simulation it gives a coverage of 95 %.
const TAIL_PROBABILITY: f64 = 0.045;

/// A mean and the bounds of its 95 % interval, in the unit of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the series.
    pub mean: f64,
    /// The lower bound; it may be negative with few data.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// The interval `mean` ± `half_width`.
    pub(crate) fn around(mean: f64, half_width: f64) -> Self {
        Self {
            mean,
            low: mean - half_width,
            high: mean + half_width,
        }
    }

    /// Half the width of the interval as a share of the mean: 0.03 is "within 3 %". Infinite if the mean is zero and
    /// the width is not.
    pub fn half_width_fraction(&self) -> f64 {
        let half = 0.5 * (self.high - self.low);
        if half == 0.0 {
            0.0
        } else {
            half / self.mean.abs()
        }
    }

    /// True if `value` lies within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The mean of a stationary series (counts in slices of equal length, in time order) with its 95 %
/// interval.
///
/// Consecutive slices may be autocorrelated. The series is averaged in at most 100 batches, and the remaining
/// autocorrelation of the batch means is estimated by restricted likelihood over a grid. The interval is the mixture
/// of Student t intervals over the grid, so that it is wider if the series is too short to show its autocorrelation.
/// Simulated coverage is in the tests.
///
/// `None` with fewer than [`MIN_SLICES`] values, or if one is not finite. No method can detect an autocorrelation as
/// long as the series itself: if regimes last a third of the series or more (a rate that changes every second,
/// measured for three), the coverage is below 95 %.
pub fn mean_interval(slices: &[f64]) -> Option<Interval> {
    if slices.len() < MIN_SLICES {
        return None;
    }
    let scaled = ScaledSeries::new(slices)?;
    let (batches, _) = batch_means(&scaled.values);
    let count = batches.len();
    // A constant series has no noise: its mean is exact.
    let half_width = Noise::learn(&batches, &[ones(count)]).map_or(0.0, |noise| {
        noise.half_width(&vec![1.0 / count as f64; count], TAIL_PROBABILITY)
    });
    Some(Interval::around(scaled.mean, scaled.unit * half_width))
        .filter(|i| i.low.is_finite() && i.high.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_constant_series_has_no_width() {
        assert_eq!(
            mean_interval(&[40.0; 30]),
            Some(Interval {
                mean: 40.0,
                low: 40.0,
                high: 40.0
            })
        );
        assert_eq!(
            mean_interval(&[0.0; 30]).map(|i| i.half_width_fraction()),
            Some(0.0)
        );
    }

    #[test]
    fn too_few_or_not_finite_is_none() {
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[1.0; MIN_SLICES - 1]), None);
        let mut series = vec![1.0; 40];
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            series[7] = bad;
            assert_eq!(mean_interval(&series), None);
        }
    }

    #[test]
    fn memory_widens_the_interval() {
        let scattered: Vec<f64> = (0..80).map(|t| f64::from(100 + (t * 37) % 11)).collect();
        let mut sorted = scattered.clone();
        sorted.sort_by(f64::total_cmp);
        let width = |series: &[f64]| mean_interval(series).unwrap().half_width_fraction();
        assert!(width(&sorted) > 3.0 * width(&scattered));
    }

    proptest! {
        #[test]
        fn contains_its_mean_and_scales(
            series in proptest::collection::vec(0.0..1e6f64, 20..120),
            scale in 1e-6..1e6f64,
        ) {
            let interval = mean_interval(&series).unwrap();
            prop_assert!(interval.contains(interval.mean));
            let scaled: Vec<f64> = series.iter().map(|x| x * scale).collect();
            let other = mean_interval(&scaled).unwrap();
            let close = |a: f64, b: f64| (a * scale - b).abs() <= 1e-6 * scale * interval.high.abs();
            prop_assert!(close(interval.mean, other.mean));
            prop_assert!(close(interval.low, other.low) && close(interval.high, other.high));
        }

        #[test]
        fn any_input_is_answered_or_refused(series in proptest::collection::vec(any::<f64>(), 0..60)) {
            if let Some(interval) = mean_interval(&series) {
                prop_assert!(interval.contains(interval.mean));
                prop_assert!(interval.low.is_finite() && interval.high.is_finite());
            }
            crate::steady::assess(&series);
            crate::steady::warmup_end(&series);
            crate::level::find_drop(&series);
            crate::compare::ratio(&series, &series);
        }

        #[test]
        fn few_distinct_values_are_answered(series in proptest::collection::vec(0u8..3, 20..90)) {
            let series: Vec<f64> = series.into_iter().map(f64::from).collect();
            let interval = mean_interval(&series).unwrap();
            prop_assert!(interval.contains(interval.mean));
            prop_assert!(crate::steady::assess(&series).drift_fraction.is_finite());
            crate::steady::warmup_end(&series);
            crate::level::find_drop(&series);
        }
    }
}
