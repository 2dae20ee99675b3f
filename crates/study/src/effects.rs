//! Effects of factors, from pairs of layouts that differ in only one.

use std::collections::BTreeMap;

use crate::compare::RatioInterval;
use crate::distribution::student_quantile;

/// Minimum number of pairs for an estimate of how much pairs differ.
const MIN_PAIRS: usize = 3;

/// Two layouts that differ in one factor alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Layout with the reference setting.
    pub from: usize,
    /// Layout with the other setting.
    pub to: usize,
    /// The values of `from` and of `to` in each block in which both were measured.
    pub blocks: Vec<(f64, f64)>,
}

/// Effect of a setting instead of another, all else equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SettingEffect {
    /// Number of pairs that were used.
    pub pairs: usize,
    /// The mean ratio of `to` to `from`.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` where neither pairs nor blocks repeat often enough.
    pub interval: Option<RatioInterval>,
    /// The smallest ratio of a pair.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl SettingEffect {
    /// True if the interval excludes 1. Where it does not, no difference is shown, which is not the same as
    /// no difference.
    pub fn is_shown(&self) -> bool {
        self.interval
            .is_some_and(|interval| interval.shows_difference())
    }
}

/// The effect of a setting, from all pairs that differ in it alone. Give the pairs of two settings at
/// a time. Blocks in which a value is not positive and finite are left out, and pairs without a block;
/// `None` if no pair remains.
///
/// With three pairs or more the interval is Student's over the pairs: it is wide if the effect of the factor differs
/// between pairs, and predicts a similar pair. With fewer it is over the blocks, and only describes these pairs. Pairs
/// that share a layout are not independent, since the error of that layout is in both; they are averaged first and
/// count as one.
pub fn effect(pairs: &[Pair]) -> Option<SettingEffect> {
    let pairs: Vec<(&Pair, Vec<f64>)> = pairs
        .iter()
        .map(|pair| (pair, logs(pair)))
        .filter(|(_, logs)| !logs.is_empty())
        .collect();
    let means: Vec<f64> = pairs.iter().map(|(_, logs)| mean(logs)).collect();
    let least = means.iter().copied().min_by(f64::total_cmp)?;
    let most = means.iter().copied().max_by(f64::total_cmp)?;
    let groups = groups(&pairs);
    let (centre, half) = if groups.len() >= MIN_PAIRS {
        over_values(&groups)
    } else {
        (mean(&means), over_blocks(&pairs))
    };
    let interval = half.and_then(|half| RatioInterval::of_logs(centre, half));
    Some(SettingEffect {
        pairs: pairs.len(),
        ratio: centre.exp(),
        interval,
        least: least.exp(),
        most: most.exp(),
    })
}

/// The logarithms of the ratios of a pair.
fn logs(pair: &Pair) -> Vec<f64> {
    let sensible = |value: f64| value > 0.0 && value.is_finite();
    let both = pair
        .blocks
        .iter()
        .filter(|(a, b)| sensible(*a) && sensible(*b));
    both.map(|(from, to)| to.ln() - from.ln()).collect()
}

/// Means of the pairs; pairs that share a layout, directly or through others, are averaged.
fn groups(pairs: &[(&Pair, Vec<f64>)]) -> Vec<f64> {
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, (pair, _)) in pairs.iter().enumerate() {
        let known = [pair.from, pair.to].map(|layout| group_of.get(&layout).copied());
        for old in known.into_iter().flatten() {
            for group in group_of.values_mut().filter(|group| **group == old) {
                *group = at;
            }
        }
        group_of.insert(pair.from, at);
        group_of.insert(pair.to, at);
    }
    let mut groups: BTreeMap<Option<&usize>, Vec<f64>> = BTreeMap::new();
    for (pair, logs) in pairs {
        groups
            .entry(group_of.get(&pair.from))
            .or_default()
            .push(mean(logs));
    }
    groups.values().map(|means| mean(means)).collect()
}

/// The mean of independent values, and half of its interval.
fn over_values(values: &[f64]) -> (f64, Option<f64>) {
    let (centre, count) = (mean(values), values.len() as f64);
    let error = (squares(values) / (count - 1.0) / count).sqrt();
    (centre, Some(student_quantile(0.05, count - 1.0) * error))
}

/// Half of the interval of the mean of the pairs, from the variation of each between blocks. `None` if none was
/// measured in two blocks.
fn over_blocks(pairs: &[(&Pair, Vec<f64>)]) -> Option<f64> {
    let degrees: f64 = pairs.iter().map(|(_, logs)| logs.len() as f64 - 1.0).sum();
    if degrees < 1.0 {
        return None;
    }
    let variance = pairs.iter().map(|(_, logs)| squares(logs)).sum::<f64>() / degrees;
    let counts: f64 = pairs.iter().map(|(_, logs)| 1.0 / logs.len() as f64).sum();
    let error = (variance * counts).sqrt() / pairs.len() as f64;
    Some(student_quantile(0.05, degrees) * error)
}

/// The arithmetic mean.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of squares around the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|x| (x - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{error, share};
    use crate::simulate::Rng;
    use proptest::prelude::*;

    fn pair(from: usize, to: usize, blocks: &[(f64, f64)]) -> Pair {
        Pair {
            from,
            to,
            blocks: blocks.to_vec(),
        }
    }

    #[test]
    fn the_mean_is_that_of_the_ratios() {
        let pairs = [
            pair(0, 1, &[(100.0, 110.0), (200.0, 220.0)]),
            pair(2, 3, &[(10.0, 12.1)]),
        ];
        let got = effect(&pairs).unwrap();
        assert!((got.ratio - (1.1_f64 * 1.21).sqrt()).abs() < 1e-12);
        assert!((got.least - 1.1).abs() < 1e-12 && (got.most - 1.21).abs() < 1e-12);
        assert_eq!(got.pairs, 2);
    }

    #[test]
    fn one_pair_in_one_block_has_no_interval() {
        let got = effect(&[pair(0, 1, &[(1.0, 2.0), (0.0, 3.0), (f64::NAN, 1.0)])]).unwrap();
        assert_eq!((got.interval, got.is_shown()), (None, false));
        assert_eq!(effect(&[pair(0, 1, &[])]), None);
        assert_eq!(effect(&[]), None);
    }

    #[test]
    fn pairs_of_one_layout_count_once() {
        // Three chunk sizes against the same fourth: one group, so that the interval is over the blocks.
        let blocks = [(100.0, 103.0), (101.0, 102.0)];
        let shared = [
            pair(0, 1, &blocks),
            pair(0, 2, &blocks),
            pair(0, 3, &blocks),
        ];
        let pairs: Vec<(&Pair, Vec<f64>)> = shared.iter().map(|p| (p, logs(p))).collect();
        assert_eq!(groups(&pairs).len(), 1);
        // Two groups that a later pair joins.
        let linked = [
            pair(0, 1, &blocks),
            pair(2, 3, &blocks),
            pair(1, 2, &blocks),
        ];
        let pairs: Vec<(&Pair, Vec<f64>)> = linked.iter().map(|p| (p, logs(p))).collect();
        assert_eq!(groups(&pairs).len(), 1);
    }

    /// Pairs with a mean effect of 3 % that differ by `spread`, over `blocks` blocks of one drift.
    fn simulated(rng: &mut Rng, pairs: usize, blocks: usize, spread: f64) -> Vec<Pair> {
        let drift: Vec<f64> = (0..blocks).map(|_| 0.1 * rng.normal()).collect();
        let one = |at: usize| {
            let effect = 0.03 + spread * rng.normal();
            let mut cell = |mean: f64, drift: f64| (mean + drift + 0.03 * rng.normal()).exp();
            let both = drift
                .iter()
                .map(|drift| (cell(0.0, *drift), cell(effect, *drift)));
            Pair {
                from: 2 * at,
                to: 2 * at + 1,
                blocks: both.collect(),
            }
        };
        (0..pairs).map(one).collect()
    }

    #[test]
    fn the_interval_covers() {
        let trials = 1000;
        for (pairs, blocks, spread) in [(1, 5, 0.0), (2, 2, 0.0), (3, 1, 0.02), (12, 3, 0.02)] {
            let covered = share(trials, 31, |rng| {
                let got = effect(&simulated(rng, pairs, blocks, spread)).unwrap();
                let interval = got.interval.unwrap();
                interval.low <= 0.03_f64.exp() && 0.03_f64.exp() <= interval.high
            });
            let off = (covered - 0.95).abs();
            assert!(
                off <= error(0.95, trials),
                "{pairs} pairs, {blocks} blocks: {covered}"
            );
        }
    }

    #[test]
    fn a_clear_effect_is_shown() {
        let shown = share(200, 32, |rng| {
            effect(&simulated(rng, 12, 5, 0.0)).unwrap().is_shown()
        });
        assert!(shown > 0.95, "{shown}");
    }

    proptest! {
        #[test]
        fn any_pairs_have_an_answer(
            pairs in prop::collection::vec(
                (0usize..6, 0usize..6, prop::collection::vec((any::<f64>(), any::<f64>()), 0..4)),
                0..8,
            )
        ) {
            let pairs: Vec<Pair> = pairs
                .into_iter()
                .map(|(from, to, blocks)| Pair { from, to, blocks })
                .collect();
            if let Some(got) = effect(&pairs) {
                prop_assert!(got.least <= got.most && got.pairs <= pairs.len());
                if let Some(interval) = got.interval {
                    prop_assert!(interval.low <= got.ratio && got.ratio <= interval.high);
                    prop_assert!(interval.high.is_finite());
                }
            }
        }
    }
}
