//! Comparison of the throughput of a disk's zones, from the first to the last.

use crate::compare::{RatioInterval, ratio_of_intervals};
use crate::distribution::student_quantile;
use crate::interval::Interval;

/// Minimum number of zones for an estimate of their scatter.
pub const MIN_ZONES: usize = 16;
/// Divisor of the number of zones that gives the size of an end.
const END: usize = 8;
/// Probability that equal ends are reported as different.
const TAIL: f64 = 0.01;
/// Relative difference within which ends are equal, however little the zones scatter.
const EQUAL_ENDS: f64 = 0.02;
/// Minimum ratio of the second read to the first at which a position is cold.
const COLD_RATIO: f64 = 2.0;
/// The same ratio if the intervals of both rates are known.
const COLD_RATIO_WITH_INTERVALS: f64 = 1.5;

/// Comparison of the two ends of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskEnds {
    /// The geometric mean of the rates of the first eighth of the zones.
    pub first: f64,
    /// The geometric mean of the rates of the last eighth of the zones.
    pub last: f64,
    /// The last divided by the first, with its 99 % interval.
    pub ratio: RatioInterval,
    /// True if the ends differ by more than the zones scatter, and by 2 % at least.
    pub differ: bool,
}

/// Compares the ends of a disk by the rates of its zones, in the order of their positions.
///
/// The scatter of a zone's rate is estimated from neighbours: the mean square of successive
/// differences (von Neumann 1941) is not affected by a slope, which the test looks for. The zones
/// must have been read in an order that has nothing to do with their position: otherwise a disk
/// that gets slower with time would look like one that is slower at its end.
///
/// `None` with fewer than [`MIN_ZONES`] zones, or with a rate that is not above zero.
pub fn ends(rates: &[f64]) -> Option<DiskEnds> {
    if rates.len() < MIN_ZONES || !rates.iter().all(|rate| *rate > 0.0 && rate.is_finite()) {
        return None;
    }
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let steps = (logs.len() - 1) as f64;
    let squares: f64 = logs.windows(2).map(|two| (two[1] - two[0]).powi(2)).sum();
    let scatter = (squares / (2.0 * steps)).sqrt();
    let count = logs.len() / END;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&logs[..count]), mean(&logs[logs.len() - count..]));
    // The estimate is as precise as one from two thirds as many independent values.
    let deviation = student_quantile(TAIL, steps * 2.0 / 3.0);
    let half = deviation * scatter * (2.0 / count as f64).sqrt();
    let ratio = RatioInterval::of_logs(last - first, half)?;
    Some(DiskEnds {
        first: first.exp(),
        last: last.exp(),
        ratio,
        differ: ratio.shows_difference() && (last - first).abs() >= EQUAL_ENDS.ln_1p(),
    })
}

/// A rate, with its interval if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Mean rate.
    pub mean: f64,
    /// 95 % interval of the rate.
    pub interval: Option<Interval>,
}

/// True if a position was cold: its second read was far faster than its first. A slow position is as slow the second
/// time.
pub fn is_cold(first: Rate, again: Rate) -> bool {
    let far = first.mean > 0.0 && again.mean >= COLD_RATIO * first.mean;
    let ratio = first
        .interval
        .zip(again.interval)
        .and_then(|(first, again)| ratio_of_intervals(again, first));
    far && ratio.is_none_or(|ratio| ratio.low > COLD_RATIO_WITH_INTERVALS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::share;
    use crate::simulate::Rng;
    use proptest::prelude::*;

    fn zones(rng: &mut Rng, noise: f64, rate: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..64)
            .map(|zone| rate(f64::from(zone) / 63.0) * (noise * rng.normal()).exp())
            .collect()
    }

    #[test]
    fn even_disks_are_rarely_called_uneven() {
        let wrong = share(2000, 7, |rng| {
            ends(&zones(rng, 0.05, |_| 100.0)).unwrap().differ
        });
        assert!(wrong < 0.025, "{wrong}");
        // Occasionally a zone has a stall.
        let wrong = share(2000, 8, |rng| {
            let mut rates = zones(rng, 0.03, |_| 100.0);
            for rate in &mut rates {
                if rng.uniform() < 0.05 {
                    *rate *= 0.3;
                }
            }
            ends(&rates).unwrap().differ
        });
        assert!(wrong < 0.04, "{wrong}");
    }

    #[test]
    fn a_platter_s_slope_and_a_slow_end_are_found() {
        let slope = share(500, 9, |rng| {
            let ends = ends(&zones(rng, 0.05, |at| 200.0 * (1.0 - 0.45 * at))).unwrap();
            ends.differ && ends.last < ends.first
        });
        assert!(slope > 0.99, "{slope}");
        let step = share(500, 10, |rng| {
            ends(&zones(rng, 0.05, |at| if at > 0.8 { 85.0 } else { 100.0 }))
                .unwrap()
                .differ
        });
        assert!(step > 0.95, "{step}");
    }

    #[test]
    fn the_interval_covers_the_true_ratio() {
        let covered = share(2000, 11, |rng| {
            let ratio = ends(&zones(rng, 0.08, |at| if at > 0.5 { 80.0 } else { 100.0 }))
                .unwrap()
                .ratio;
            ratio.low <= 0.8 && 0.8 <= ratio.high
        });
        assert!(covered > 0.98, "{covered}");
    }

    #[test]
    fn a_difference_that_does_not_matter_is_none() {
        let rates: Vec<f64> = (0..64).map(|zone| 100.0 + f64::from(zone) * 0.01).collect();
        assert!(!ends(&rates).unwrap().differ);
        assert_eq!(ends(&[100.0; 15]), None);
        assert_eq!(ends(&[0.0; 64]), None);
    }

    #[test]
    fn cold_is_distinguished_from_slow() {
        let rate = |mean: f64, half: f64| Rate {
            mean,
            interval: Some(Interval {
                mean,
                low: mean - half,
                high: mean + half,
            }),
        };
        assert!(is_cold(rate(10.0, 1.0), rate(100.0, 5.0)));
        assert!(!is_cold(rate(10.0, 1.0), rate(10.5, 1.0)), "slow");
        assert!(!is_cold(rate(10.0, 8.0), rate(21.0, 8.0)), "not known");
        let plain = |mean| Rate {
            mean,
            interval: None,
        };
        assert!(is_cold(plain(10.0), plain(30.0)));
        assert!(!is_cold(plain(10.0), plain(15.0)) && !is_cold(plain(0.0), plain(15.0)));
    }

    proptest! {
        #[test]
        fn any_rates_are_answered_or_refused(rates in proptest::collection::vec(any::<f64>(), 0..80)) {
            if let Some(ends) = ends(&rates) {
                prop_assert!(ends.ratio.low <= ends.ratio.ratio && ends.ratio.ratio <= ends.ratio.high);
            }
        }
    }
}
