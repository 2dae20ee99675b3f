//! Means of things that were each measured a few times.

use crate::distribution::student_quantile;
use crate::interval::Interval;

/// From so many values of its own a group that scatters more than the others is judged by itself.
const OWN: usize = 3;
/// With a variance so many times the usual one it says nothing of the others. Of three values each,
/// one group in 250 reaches that by chance.
const WILD: f64 = 8.0;

/// The geometric mean of each group of positive values with its 95 % interval.
///
/// A few values know little of their own scatter: with two of them Student's t is 12.7. So the
/// scatter, as a share of the value, is taken from all groups together; a group of three and more
/// that scatters more than that keeps its own, and if it is far more does not speak for the others.
/// What all groups have in common, such as a slow day, is part of the scatter. `None` for a group without values or with one that is not positive and finite,
/// and for all where no group has two.
pub fn means(groups: &[Vec<f64>]) -> Vec<Option<Interval>> {
    let logs: Vec<Option<Logs>> = groups.iter().map(|group| Logs::of(group)).collect();
    let usual = usual_variance(logs.iter().flatten());
    let calm = |logs: &&Logs| logs.own().is_none_or(|own| own <= WILD * usual);
    let known = || logs.iter().flatten().filter(calm);
    let degrees: usize = known().map(|logs| logs.count - 1).sum();
    let pooled = known().map(|logs| logs.squares).sum::<f64>() / degrees as f64;
    let interval = |logs: &Logs| {
        let own = logs.own().filter(|own| *own > pooled);
        let (variance, degrees) = own.map_or((pooled, degrees), |own| (own, logs.count - 1));
        let error = (variance / logs.count as f64).sqrt();
        let half = student_quantile(0.05, degrees as f64) * error;
        let interval = Interval {
            mean: logs.mean.exp(),
            low: (logs.mean - half).exp(),
            high: (logs.mean + half).exp(),
        };
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    };
    let or_none = |logs: &Option<Logs>| logs.as_ref().filter(|_| degrees > 0).and_then(interval);
    logs.iter().map(or_none).collect()
}

/// The variance of most groups, which a few that scatter wildly do not change: the median of those
/// that can be judged by themselves. Infinite where these are too few to call one of them wild.
fn usual_variance<'a>(groups: impl Iterator<Item = &'a Logs>) -> f64 {
    let mut own: Vec<f64> = groups.filter_map(Logs::own).collect();
    own.sort_by(f64::total_cmp);
    match own.get(own.len() / 2) {
        Some(usual) if own.len() >= OWN => *usual,
        _ => f64::INFINITY,
    }
}

/// The logarithms of a group.
struct Logs {
    count: usize,
    mean: f64,
    /// The sum of their squared distances from the mean.
    squares: f64,
}

impl Logs {
    fn of(group: &[f64]) -> Option<Logs> {
        let sensible = group.iter().all(|value| *value > 0.0 && value.is_finite());
        if group.is_empty() || !sensible {
            return None;
        }
        let count = group.len();
        let mean = group.iter().map(|value| value.ln()).sum::<f64>() / count as f64;
        let squares = group.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        Some(Logs {
            count,
            mean,
            squares,
        })
    }

    /// The variance by this group alone, where it has values enough.
    fn own(&self) -> Option<f64> {
        (self.count >= OWN).then(|| self.squares / (self.count as f64 - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Rng;
    use proptest::prelude::*;

    #[test]
    fn the_interval_covers_the_truth_95_times_in_100() {
        let mut rng = Rng::new(5);
        let (mut covered, mut asked) = (0, 0);
        for _ in 0..1000 {
            // Some were measured once, some twice, some five times.
            let groups: Vec<Vec<f64>> = [1, 1, 2, 2, 5, 5]
                .iter()
                .map(|count| {
                    (0..*count)
                        .map(|_| 100.0 * (0.05 * rng.normal()).exp())
                        .collect()
                })
                .collect();
            for interval in means(&groups) {
                asked += 1;
                covered += usize::from(interval.unwrap().contains(100.0));
            }
        }
        let share = f64::from(covered as u32) / f64::from(asked as u32);
        assert!((0.935..0.97).contains(&share), "{share}");
    }

    #[test]
    fn one_measured_once_is_as_uncertain_as_the_others_say() {
        let groups = [vec![100.0], vec![90.0, 110.0], vec![100.0, 101.0, 99.0]];
        let got = means(&groups);
        let width = |at: usize| got[at].unwrap().half_width_fraction();
        assert!(width(0) > width(1) && width(1) > width(2));
        assert_eq!(means(&[vec![100.0], vec![90.0]]), [None, None]);
        assert_eq!(means(&[vec![], vec![-1.0, 2.0], vec![f64::NAN]]), [None; 3]);
    }

    #[test]
    fn one_that_scatters_keeps_its_own_scatter() {
        let calm = vec![100.0, 101.0, 99.0, 100.0, 100.0];
        let mut groups = vec![calm; 20];
        groups.push(vec![50.0, 200.0, 100.0, 80.0, 130.0]);
        let got = means(&groups);
        assert!(
            got[20].unwrap().half_width_fraction() > 10.0 * got[0].unwrap().half_width_fraction()
        );
    }

    proptest! {
        #[test]
        fn any_input_is_answered(
            groups in prop::collection::vec(prop::collection::vec(any::<f64>(), 0..5), 0..6)
        ) {
            let got = means(&groups);
            prop_assert_eq!(got.len(), groups.len());
            for interval in got.into_iter().flatten() {
                prop_assert!(interval.contains(interval.mean));
            }
        }
    }
}
