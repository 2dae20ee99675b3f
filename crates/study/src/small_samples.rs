//! Means of groups with a few measurements each.

use std::collections::BTreeMap;

use crate::distribution::student_quantile;
use crate::interval::Interval;

/// Minimum number of values from which a group with more scatter than the others is judged by its own.
const MIN_OWN_VALUES: usize = 3;
/// Multiple of the usual variance from which a group is excluded from the pooled variance. One in 250 groups of three
/// values reaches it by chance.
const OUTLYING_VARIANCE_RATIO: f64 = 8.0;
/// Number of times that groups and blocks are fitted alternately; each round reduces the error to a fraction.
const ROUNDS: usize = 50;

/// The geometric mean of each group of positive values with its 95 % interval.
///
/// A few values know little of their own scatter: with two of them Student's t is 12.7. So the
/// scatter, as a share of the value, is taken from all groups together; a group of three and more
/// that scatters more than that keeps its own, and if it is far more does not speak for the others.
/// An effect that all groups share, such as a slow day, is part of the scatter. `None` for a group without values or
/// with one that is not positive and finite, and for all where no group has two.
pub fn means(groups: &[Vec<f64>]) -> Vec<Option<Interval>> {
    means_with(groups, 0)
}

/// Like [`means`], for values that were measured in blocks, each given with its block. The common effect of a block is
/// removed: the means are those of an average block, and can be compared even if groups were measured in different
/// blocks.
///
/// The logarithms are fitted by least squares as the sum of a group effect and a block effect.
pub fn means_of_blocks(groups: &[Vec<(usize, f64)>]) -> Vec<Option<Interval>> {
    let mut blocks: BTreeMap<usize, f64> = BTreeMap::new();
    for (block, value) in groups.iter().flatten() {
        if *value > 0.0 && value.is_finite() {
            blocks.insert(*block, 0.0);
        }
    }
    for _ in 0..ROUNDS {
        fit_blocks(groups, &mut blocks);
    }
    let common = |block: &usize| blocks.get(block).copied().unwrap_or(0.0).exp();
    let without = |group: &Vec<(usize, f64)>| {
        let values = group.iter().map(|(block, value)| value / common(block));
        values.collect::<Vec<f64>>()
    };
    let groups: Vec<Vec<f64>> = groups.iter().map(without).collect();
    means_with(&groups, blocks.len().saturating_sub(1))
}

/// Fits the effect of each block to the values minus the effects of the groups, and shifts it to zero on average.
fn fit_blocks(groups: &[Vec<(usize, f64)>], blocks: &mut BTreeMap<usize, f64>) {
    let mut left: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for group in groups {
        let known = group.iter().filter_map(|(block, value)| {
            let log = value.ln();
            log.is_finite()
                .then(|| Some((*block, log, log - blocks.get(block)?)))?
        });
        let known: Vec<(usize, f64, f64)> = known.collect();
        let own = known.iter().map(|one| one.2).sum::<f64>() / known.len() as f64;
        for (block, log, _) in known {
            let sum = left.entry(block).or_default();
            *sum = (sum.0 + log - own, sum.1 + 1.0);
        }
    }
    let effects = || {
        left.iter()
            .map(|(block, (sum, count))| (*block, sum / count))
    };
    let centre = effects().map(|(_, effect)| effect).sum::<f64>() / left.len() as f64;
    blocks.extend(effects().map(|(block, effect)| (block, effect - centre)));
}

/// The means; `lost` degrees of freedom are already used.
fn means_with(groups: &[Vec<f64>], lost: usize) -> Vec<Option<Interval>> {
    let logs: Vec<Option<Logs>> = groups.iter().map(|group| Logs::of(group)).collect();
    let usual = usual_variance(logs.iter().flatten());
    let calm = |logs: &&Logs| {
        logs.own()
            .is_none_or(|own| own <= OUTLYING_VARIANCE_RATIO * usual)
    };
    let known = || logs.iter().flatten().filter(calm);
    let repeated: usize = known().map(|logs| logs.count - 1).sum();
    let degrees = repeated.saturating_sub(lost);
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

/// The variance of most groups, on which a few with a wild scatter have no effect: the median of those that can be
/// judged by themselves. Infinite if there are too few of these.
fn usual_variance<'a>(groups: impl Iterator<Item = &'a Logs>) -> f64 {
    let mut own: Vec<f64> = groups.filter_map(Logs::own).collect();
    own.sort_by(f64::total_cmp);
    match own.get(own.len() / 2) {
        Some(usual) if own.len() >= MIN_OWN_VALUES => *usual,
        _ => f64::INFINITY,
    }
}

/// The logarithms of a group.
struct Logs {
    count: usize,
    mean: f64,
    /// The sum of their squared deviations from the mean.
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

    /// The variance of this group alone, if it has enough values.
    fn own(&self) -> Option<f64> {
        (self.count >= MIN_OWN_VALUES).then(|| self.squares / (self.count as f64 - 1.0))
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
            // Groups with one, two and five measurements.
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
    fn the_common_part_of_blocks_is_taken_out() {
        // The rate rises by a tenth with each block; the second group is 20 % faster than the first, and was measured
        // in early blocks only.
        let day = [1.0, 1.1, 1.21, 1.331];
        let all = |rate: f64, blocks: usize| {
            let day = day.iter().take(blocks).enumerate();
            day.map(|(block, day)| (block, rate * day))
                .collect::<Vec<_>>()
        };
        let got = means_of_blocks(&[all(100.0, 4), all(120.0, 1), all(90.0, 2), vec![]]);
        let mean = |at: usize| got[at].unwrap().mean;
        assert!((mean(1) / mean(0) - 1.2).abs() < 1e-9 && (mean(2) / mean(0) - 0.9).abs() < 1e-9);
        assert!(got[0].unwrap().half_width_fraction() < 1e-6 && got[3].is_none());
    }

    #[test]
    fn with_blocks_the_ratio_of_two_groups_is_covered() {
        let mut rng = Rng::new(8);
        let mut covered = 0;
        for _ in 0..1000 {
            let day: Vec<f64> = (0..4).map(|_| (0.2 * rng.normal()).exp()).collect();
            let groups: Vec<Vec<(usize, f64)>> = [4, 4, 3, 2, 1]
                .iter()
                .map(|count| {
                    let cell = |block: usize| (block, day[block] * (0.03 * rng.normal()).exp());
                    (0..*count).map(cell).collect()
                })
                .collect();
            let got = means_of_blocks(&groups);
            let ratio =
                crate::compare::ratio_of_intervals(got[0].unwrap(), got[1].unwrap()).unwrap();
            covered += usize::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
        }
        assert!((930..985).contains(&covered), "{covered}");
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
            let numbered = |group: &Vec<f64>| group.iter().copied().enumerate().collect::<Vec<_>>();
            let of_blocks = means_of_blocks(&groups.iter().map(numbered).collect::<Vec<_>>());
            let got = means(&groups);
            prop_assert_eq!((got.len(), of_blocks.len()), (groups.len(), groups.len()));
            for interval in got.into_iter().chain(of_blocks).flatten() {
                prop_assert!(interval.contains(interval.mean));
            }
        }
    }
}
