//! Drift of the machine while many layouts are measured: one layout, the baseline, is measured repeatedly between the
//! others.

use crate::compare::RatioInterval;
use crate::distribution::student_quantile;

/// Drift of a baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Ratio of the last value to the first on the fitted line, with its 95 % interval: 1.03 is a rise of 3 %. `None`
    /// with fewer than three points, or if all were measured at one time.
    pub change: Option<RatioInterval>,
    /// The largest difference between two consecutive points as a share of the earlier one: -0.2 is a fall of 20 %.
    pub jump: f64,
}

/// Drift of a series of times (seconds) and values (in any unit), in any order. Points whose value is not
/// positive or not finite, or whose time is not finite, are left out; `None` if fewer than two remain.
///
/// The line is fitted to the logarithms by least squares, with Student's t for the interval: the noise of builds is
/// independent. A machine whose speed wanders or jumps does not fit a line; its interval is wide, and [`Drift::jump`]
/// shows the jump.
pub fn assess(points: &[(f64, f64)]) -> Option<Drift> {
    let sensible =
        |(time, value): &(f64, f64)| time.is_finite() && value.is_finite() && *value > 0.0;
    let mut points: Vec<(f64, f64)> = points.iter().copied().filter(sensible).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let jumps = points.windows(2).map(|pair| pair[1].1 / pair[0].1 - 1.0);
    let jump = jumps.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    Some(Drift {
        change: change(&points),
        jump,
    })
}

/// The last over the first of points in order of time.
fn change(points: &[(f64, f64)]) -> Option<RatioInterval> {
    let (first, last) = (points.first()?.0, points.last()?.0);
    let span = last - first;
    if points.len() < 3 || !(span > 0.0 && span.is_finite()) {
        return None;
    }
    let count = points.len() as f64;
    // As shares of the span, times need no squares of large numbers.
    let times: Vec<f64> = points
        .iter()
        .map(|(time, _)| (time - first) / span)
        .collect();
    let logs: Vec<f64> = points.iter().map(|(_, value)| value.ln()).collect();
    let time = times.iter().sum::<f64>() / count;
    let log = logs.iter().sum::<f64>() / count;
    let squares: f64 = times.iter().map(|t| (t - time).powi(2)).sum();
    let pairs = times.iter().zip(&logs);
    let slope = pairs
        .clone()
        .map(|(t, y)| (t - time) * (y - log))
        .sum::<f64>()
        / squares;
    let left = |(t, y): (&f64, &f64)| (y - log - slope * (t - time)).powi(2);
    let degrees = count - 2.0;
    let error = (pairs.map(left).sum::<f64>() / degrees / squares).sqrt();
    RatioInterval::of_logs(slope, student_quantile(0.05, degrees) * error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{error, share};
    use proptest::prelude::*;

    #[test]
    fn a_straight_fall_is_found_exactly() {
        let points: Vec<(f64, f64)> = (0..5)
            .map(|t| (f64::from(t) * 60.0, 500.0 * 0.9_f64.powi(t)))
            .collect();
        let drift = assess(&points).unwrap();
        let change = drift.change.unwrap();
        assert!((change.ratio - 0.9_f64.powi(4)).abs() < 1e-9);
        assert!((change.low - change.high).abs() < 1e-6 && change.shows_difference());
        assert!((drift.jump + 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_order_of_the_points_does_not_matter() {
        let points = [(0.0, 10.0), (5.0, 12.0), (9.0, 11.0), (20.0, 13.0)];
        let mut turned = points;
        turned.reverse();
        assert_eq!(assess(&points), assess(&turned));
    }

    #[test]
    fn too_few_have_no_change() {
        assert_eq!(assess(&[(0.0, 1.0)]), None);
        let two = assess(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN)]).unwrap();
        assert_eq!((two.change, two.jump), (None, 1.0));
        let at_once = assess(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).unwrap();
        assert_eq!(at_once.change, None);
    }

    #[test]
    fn the_interval_covers() {
        let trials = 1000;
        for count in [3, 6] {
            let covered = share(trials, 21, |rng| {
                let point = |at: usize| {
                    let time = at as f64 + 0.3 * rng.uniform();
                    (time, (0.02 * time + 0.03 * rng.normal()).exp())
                };
                let points: Vec<(f64, f64)> = (0..count).map(point).collect();
                let truth = (0.02 * (points[count - 1].0 - points[0].0)).exp();
                let change = assess(&points).unwrap().change.unwrap();
                change.low <= truth && truth <= change.high
            });
            assert!(
                (covered - 0.95).abs() <= error(0.95, trials),
                "{count}: {covered}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_series_has_an_answer(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..12)) {
            if let Some(change) = assess(&points).and_then(|drift| drift.change) {
                prop_assert!(0.0 <= change.low && change.low <= change.ratio);
                prop_assert!(change.ratio <= change.high && change.high.is_finite());
            }
        }
    }
}
