//! Growth of a rate with the number of members.

use crate::compare::RatioInterval;

/// Minimum share of proportional growth: below it more members add nothing.
const MIN_GROWTH_SHARE: f64 = 0.1;

/// A rate with a number of members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of members.
    pub members: usize,
    /// The rate, in any unit.
    pub value: f64,
    /// The 95 % half width as a share of the value; `None` if unknown.
    pub half_width: Option<f64>,
}

/// A ratio with its 95 % interval, if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// Ratio of two values.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` where a half width that it takes is unknown.
    pub interval: Option<RatioInterval>,
}

/// The number of members beyond which more are shown to add nothing: the largest number measured brings less than a
/// tenth of proportional growth, at the upper bound of the 95 % interval, and no number in between is shown to bring
/// more.
///
/// `None` if no number is shown to be the knee: the rate still grows, the measurements are too imprecise (or without a
/// half width) to exclude growth, or fewer than two numbers were measured. If a number is given more than once, the
/// first counts.
pub fn knee(points: &[Point]) -> Option<usize> {
    let rates = rates(points);
    let (last, before) = rates.split_last()?;
    let is_flat_from = |at: &usize| {
        let from = &before[*at];
        let between = before[*at + 1..].iter();
        from.gain_to(last)
            .is_some_and(|gain| gain.high < MIN_GROWTH_SHARE)
            && !between.into_iter().any(|to| adds(from, to))
    };
    (0..before.len())
        .find(is_flat_from)
        .map(|at| before[at].members)
}

/// True if more members are shown to increase the rate.
fn adds(from: &Rate, to: &Rate) -> bool {
    from.gain_to(to)
        .is_none_or(|gain| gain.low > MIN_GROWTH_SHARE)
}

/// Mean ratio of the rate of odd numbers of members to the mean of their even neighbours: 0.9 means that odd numbers
/// lose 10 %. The mean of the neighbours is arithmetic, so that neither proportional growth nor a plateau looks like
/// an effect; a bend of the curve at an odd number raises its ratio, so that a loss is hidden rather than invented.
///
/// `None` if no odd number was measured together with both its neighbours.
pub fn odd_against_even(points: &[Point]) -> Option<RatioEstimate> {
    let rates = rates(points);
    let at = |members: usize| rates.iter().position(|rate| rate.members == members);
    // Derivative of the sum of the logarithms by a relative change of each rate.
    let mut weights = vec![0.0; rates.len()];
    let (mut sum, mut count) = (0.0, 0.0);
    for (odd, rate) in rates.iter().enumerate().filter(|(_, r)| r.members % 2 == 1) {
        let both = (rate.members.checked_sub(1), rate.members.checked_add(1));
        let (Some(less), Some(more)) = (both.0.and_then(at), both.1.and_then(at)) else {
            continue;
        };
        let share = 1.0 / (1.0 + (rates[more].log - rates[less].log).exp());
        sum += rate.log - rates[less].log + (2.0 * share).ln();
        weights[odd] += 1.0;
        weights[less] -= share;
        weights[more] -= 1.0 - share;
        count += 1.0;
    }
    let used = weights
        .iter()
        .zip(&rates)
        .filter(|(weight, _)| **weight != 0.0);
    let variance: Option<f64> = used
        .map(|(weight, rate)| Some((weight / count).powi(2) * rate.variance?))
        .sum();
    RatioEstimate::of(sum / count, variance)
}

/// A point as logarithms.
struct Rate {
    members: usize,
    log: f64,
    /// The variance of the logarithm.
    variance: Option<f64>,
}

impl Rate {
    /// The point; `None` if the value is not positive and finite, or there are no members.
    fn of(point: &Point) -> Option<Rate> {
        let sensible = point.members > 0 && point.value > 0.0 && point.value.is_finite();
        let half = point
            .half_width
            .filter(|half| half.is_finite() && *half >= 0.0);
        sensible.then(|| Rate {
            members: point.members,
            log: point.value.ln(),
            variance: half.map(|half| (half / NORMAL).powi(2)),
        })
    }

    /// Gain from more members, as a share of proportional growth, with its 95 % interval. `None` if a half width is
    /// unknown.
    fn gain_to(&self, to: &Rate) -> Option<GainBounds> {
        let ratio =
            RatioEstimate::of(to.log - self.log, add(self.variance, to.variance))?.interval?;
        let proportion = to.members as f64 / self.members as f64 - 1.0;
        Some(GainBounds {
            low: (ratio.low - 1.0) / proportion,
            high: (ratio.high - 1.0) / proportion,
        })
    }
}

/// Bounds of the 95 % interval of a gain, as a share of proportional growth.
struct GainBounds {
    low: f64,
    high: f64,
}

/// The 95 % half width of a normal value in standard deviations.
const NORMAL: f64 = 1.96;

impl RatioEstimate {
    /// The ratio with this logarithm and variance; `None` if it is not finite.
    fn of(log: f64, variance: Option<f64>) -> Option<RatioEstimate> {
        let ratio = log.exp();
        let interval = |v: f64| RatioInterval::of_logs(log, NORMAL * v.sqrt());
        ratio.is_finite().then(|| RatioEstimate {
            ratio,
            interval: variance.and_then(interval),
        })
    }
}

fn add(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? + b?)
}

/// The valid points, ordered by members, each number once.
fn rates(points: &[Point]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = points.iter().filter_map(Rate::of).collect();
    rates.sort_by_key(|rate| rate.members);
    rates.dedup_by_key(|rate| rate.members);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{error, share};
    use proptest::prelude::*;

    /// Points with a half width of 2 %.
    fn points(values: &[(usize, f64)]) -> Vec<Point> {
        let point = |(members, value): &(usize, f64)| Point {
            members: *members,
            value: *value,
            half_width: Some(0.02),
        };
        values.iter().map(point).collect()
    }

    #[test]
    fn a_plateau_has_a_knee() {
        let flat = points(&[(1, 100.0), (2, 199.0), (4, 310.0), (8, 312.0)]);
        assert_eq!(knee(&flat), Some(4));
        let falls = points(&[(2, 200.0), (3, 290.0), (4, 310.0), (5, 312.0), (8, 280.0)]);
        assert_eq!(knee(&falls), Some(4));
    }

    #[test]
    fn growth_and_coarse_points_have_none() {
        assert_eq!(
            knee(&points(&[(1, 100.0), (2, 199.0), (4, 390.0), (8, 700.0)])),
            None
        );
        let mut coarse = points(&[(4, 310.0), (8, 312.0)]);
        assert_eq!(knee(&coarse), Some(4));
        coarse[1].half_width = Some(0.3);
        assert_eq!(knee(&coarse), None);
        coarse[1].half_width = None;
        assert_eq!(knee(&coarse), None);
        assert_eq!(knee(&coarse[..1]), None);
        assert_eq!(knee(&[]), None);
    }

    #[test]
    fn neither_growth_nor_plateau_is_an_effect_of_odd_numbers() {
        for values in [[200.0, 300.0, 400.0], [300.0; 3]] {
            let numbers: Vec<(usize, f64)> = (2..5).zip(values).collect();
            let got = odd_against_even(&points(&numbers)).unwrap();
            assert!((got.ratio - 1.0).abs() < 1e-12);
            assert!(!got.interval.unwrap().shows_difference());
        }
    }

    #[test]
    fn a_loss_of_odd_numbers_is_shown() {
        let numbers = [(2, 200.0), (3, 270.0), (4, 400.0), (5, 450.0), (6, 600.0)];
        let got = odd_against_even(&points(&numbers)).unwrap();
        assert!((got.ratio - 0.9).abs() < 1e-12 && got.interval.unwrap().high < 1.0);
        assert_eq!(odd_against_even(&points(&numbers[1..3])), None);
        assert_eq!(odd_against_even(&points(&[(1, 100.0), (2, 200.0)])), None);
    }

    #[test]
    fn the_interval_of_odd_numbers_covers() {
        let trials = 1000;
        let covered = share(trials, 41, |rng| {
            let mut noisy = |members: usize| {
                let loss = if members % 2 == 1 { 0.95 } else { 1.0 };
                let value = 100.0 * members as f64 * loss * (0.02 / NORMAL * rng.normal()).exp();
                (members, value)
            };
            let numbers: Vec<(usize, f64)> = (2..=8).map(&mut noisy).collect();
            let interval = odd_against_even(&points(&numbers))
                .unwrap()
                .interval
                .unwrap();
            interval.low <= 0.95 && 0.95 <= interval.high
        });
        assert!((covered - 0.95).abs() <= error(0.95, trials), "{covered}");
    }

    #[test]
    fn a_knee_is_rarely_seen_where_the_rate_grows() {
        let seen = share(500, 42, |rng| {
            // The last doubling brings 20 % of proportional growth.
            let truth = [(2, 200.0), (4, 350.0), (8, 420.0)];
            let noisy = truth.map(|(n, v)| (n, v * (0.02 / NORMAL * rng.normal()).exp()));
            knee(&points(&noisy)).is_some()
        });
        assert!(seen <= 0.025 + error(0.025, 500), "{seen}");
    }

    proptest! {
        #[test]
        fn any_points_have_an_answer(
            points in prop::collection::vec(
                (any::<usize>(), any::<f64>(), any::<Option<f64>>()),
                0..8,
            ),
            few in prop::collection::vec((0usize..9, any::<f64>()), 0..9)
        ) {
            let any = points.into_iter().map(|(members, value, half_width)| {
                Point { members, value, half_width }
            });
            let few = few.into_iter().map(|(members, value)| {
                Point { members, value, half_width: Some(0.01) }
            });
            for points in [any.collect::<Vec<_>>(), few.collect()] {
                if let Some(members) = knee(&points) {
                    prop_assert!(points.iter().any(|point| point.members == members));
                }
                if let Some(share) = odd_against_even(&points) {
                    prop_assert!(share.ratio.is_finite());
                }
            }
        }
    }
}
