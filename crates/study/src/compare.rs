//! Comparison of two runs.

use crate::interval::{Interval, mean_interval};

/// The ratio of two means with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The first mean over the second.
    pub ratio: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl RatioInterval {
    /// The ratio whose logarithm is `mean` ± `half`; `None` if a bound is not finite.
    pub(crate) fn of_logs(mean: f64, half: f64) -> Option<Self> {
        let ratio = Self {
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        };
        (ratio.low.is_finite() && ratio.high.is_finite()).then_some(ratio)
    }

    /// The ratio with an additional, independent uncertainty: `half` is half of the interval of its logarithm.
    pub(crate) fn widened(self, half: f64) -> Self {
        let wider = |own: f64| own.hypot(half).copysign(own).exp();
        Self {
            ratio: self.ratio,
            low: self.ratio * wider((self.low / self.ratio).ln()),
            high: self.ratio * wider((self.high / self.ratio).ln()),
        }
    }

    /// True if the interval excludes 1. Where it does not, no difference is shown, which is not the same as no
    /// difference.
    pub fn shows_difference(&self) -> bool {
        self.high < 1.0 || self.low > 1.0
    }
}

/// The ratio of the mean of `a` to that of `b`, two independent series of counts in slices of equal
/// length.
///
/// `None` if either has no [`mean_interval`], if a mean is not positive, or if the interval of `b` reaches zero: then
/// the ratio has no bound.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<RatioInterval> {
    ratio_of_intervals(mean_interval(a)?, mean_interval(b)?)
}

/// The ratio of two means that are known by their 95 % intervals, for runs whose slices were not
/// kept. See [`ratio`] for when there is none.
///
/// This is the method of variance estimates recovery (Donner and Zou 2012), which for symmetric
/// intervals is Fieller's theorem with each mean's own t quantile.
pub fn ratio_of_intervals(a: Interval, b: Interval) -> Option<RatioInterval> {
    if !(a.mean > 0.0 && b.mean > 0.0 && b.low > 0.0) {
        return None;
    }
    // Relative to the means the formulas need no squares of large numbers.
    let (down, up) = (1.0 - a.low / a.mean, a.high / a.mean - 1.0);
    let (below, above) = (1.0 - b.low / b.mean, b.high / b.mean - 1.0);
    if above >= 1.0 || above.is_nan() {
        return None;
    }
    let low = (1.0
        - (1.0 - (1.0 - down * down) * (1.0 - above * above))
            .max(0.0)
            .sqrt())
        / (1.0 - above * above);
    let high = (1.0
        + (1.0 - (1.0 - up * up) * (1.0 - below * below))
            .max(0.0)
            .sqrt())
        / (1.0 - below * below);
    let ratio = a.mean / b.mean;
    let result = RatioInterval {
        ratio,
        // A rate is never negative, however wide the interval.
        low: (ratio * low).max(0.0),
        high: ratio * high,
    };
    (result.low.is_finite() && result.high.is_finite()).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_fieller() {
        let a = Interval::around(110.0, 4.0);
        let b = Interval::around(100.0, 3.0);
        let got = ratio_of_intervals(a, b).unwrap();
        // The roots of (110 - 100 r)^2 = 4^2 + 3^2 r^2.
        for root in [got.low, got.high] {
            assert!(((110.0 - 100.0 * root).powi(2) - 16.0 - 9.0 * root * root).abs() < 1e-6);
        }
        assert!(got.low < 1.1 && 1.1 < got.high && got.shows_difference());
    }

    #[test]
    fn swapping_the_runs_inverts_the_ratio() {
        let a = Interval::around(90.0, 5.0);
        let b = Interval::around(100.0, 20.0);
        let (one, other) = (
            ratio_of_intervals(a, b).unwrap(),
            ratio_of_intervals(b, a).unwrap(),
        );
        assert!((one.low * other.high - 1.0).abs() < 1e-12);
        assert!((one.high * other.low - 1.0).abs() < 1e-12);
        assert!(!one.shows_difference());
    }

    #[test]
    fn no_ratio_to_what_may_be_nothing() {
        let sure = Interval::around(90.0, 5.0);
        assert_eq!(ratio_of_intervals(sure, Interval::around(10.0, 10.0)), None);
        assert_eq!(ratio_of_intervals(sure, Interval::around(0.0, 0.0)), None);
        assert_eq!(ratio_of_intervals(Interval::around(0.0, 0.0), sure), None);
        assert_eq!(ratio(&[1.0; 40], &[0.0; 40]), None);
    }

    #[test]
    fn constant_runs_have_an_exact_ratio() {
        let got = ratio(&[30.0; 40], &[20.0; 50]).unwrap();
        assert_eq!((got.low, got.ratio, got.high), (1.5, 1.5, 1.5));
    }
}
