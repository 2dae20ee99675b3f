//! Change of level between two segments of one series, before and after a moment.
//!
//! The values are those of equal time slots (minutes, for example), not of requests: a thousand requests of one bad
//! minute are one bad minute. Consecutive slots may be autocorrelated ([`crate::noise`]).

use crate::compare::RatioInterval;
use crate::energy::{self, SampleSplit};
use crate::noise::{Noise, mean, ones};

/// Minimum number of slots on either side. With three against three no p is below 0.1.
pub const MIN_SLOTS: usize = 10;

/// Difference of the values after a moment from those before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Probability that a value after exceeds one before (ties count half): Mann and Whitney's U as a share, 0.5
    /// without a difference.
    pub superiority: f64,
    /// Geometric mean after divided by that before, with its 95 % interval.
    pub ratio: RatioInterval,
    /// Ratio of the 90th percentiles after and before; a wider spread raises it.
    pub upper: f64,
    /// Probability of at least as large a difference, of level or of distribution, by chance.
    pub p: f64,
}

impl Shift {
    /// The larger of the changes of the level and of the 90th percentile, as the logarithm of a ratio.
    pub fn size(&self) -> f64 {
        let (level, upper) = (self.ratio.ratio.ln(), self.upper.ln());
        if level.abs() >= upper.abs() {
            level
        } else {
            upper
        }
    }

    /// True if p is at most `level` and the difference at least `least` (a ratio above 1).
    pub fn shows(&self, level: f64, least: f64) -> bool {
        self.p <= level && self.size().abs() >= least.ln()
    }
}

/// Compares positive values of slots in order of time. Other values (zero, negative, not finite) are left out.
///
/// Two tests, each at twice its p (Bonferroni): Mann–Whitney's, with a variance of the ranks that includes their
/// autocorrelation; and one by energy distance ([`energy::two_sample`]), for changes other than a shift of the whole:
/// a wider spread, or a change of only some values. `None` if a side has fewer than [`MIN_SLOTS`].
pub fn shift(before: &[f64], after: &[f64]) -> Option<Shift> {
    let (before, after) = (logs(before), logs(after));
    if before.len() < MIN_SLOTS || after.len() < MIN_SLOTS {
        return None;
    }
    let split = before.len();
    let together = [before, after].concat();
    let ranks = ranks(&together);
    let of_ranks = step_effect(&ranks, split, &[]);
    let of_logs = step_effect(&together, split, &[])?;
    let rise = mean(&ranks[split..]) - mean(&ranks[..split]);
    let by_rank = of_ranks.map_or(1.0, |effect| effect.p);
    // Permutations cannot give a smaller p than the ranks already have.
    let by_distance = match by_rank <= energy::MIN_P {
        true => 1.0,
        false => energy::two_sample(&together, SampleSplit { split }),
    };
    Some(Shift {
        superiority: 0.5 + rise / together.len() as f64,
        ratio: of_logs.ratio()?,
        upper: (upper(&together[split..]) - upper(&together[..split])).exp(),
        p: (2.0 * by_rank.min(by_distance)).min(1.0),
    })
}

/// Compares values at equal load: pairs of (load, value) before and after, in order of time. Only slots whose load
/// occurs on both sides count, and the value's dependence on the load within them is removed.
///
/// `None` if the loads of the two sides overlap in fewer than [`MIN_SLOTS`] slots of either side: then a change of the
/// curve cannot be distinguished from a movement along it.
pub fn shift_at_equal_load(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<StepEffect> {
    let logs = |pairs: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let sensible = |(x, y): &&(f64, f64)| *x > 0.0 && *y > 0.0 && (x * y).is_finite();
        let pairs = pairs.iter().filter(sensible);
        pairs.map(|(x, y)| (x.ln(), y.ln())).collect()
    };
    let (before, after) = (logs(before), logs(after));
    let (low, high) = overlap(&before, &after)?;
    let within = |pairs: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
        let inside = |(x, _): &(f64, f64)| (low..=high).contains(x);
        pairs.into_iter().filter(inside).collect()
    };
    let (before, after) = (within(before), within(after));
    if before.len() < MIN_SLOTS || after.len() < MIN_SLOTS {
        return None;
    }
    let split = before.len();
    let together = [before, after].concat();
    let (loads, values): (Vec<f64>, Vec<f64>) = together.into_iter().unzip();
    step_effect(&values, split, &[loads])
}

/// Logarithms of the positive values.
pub(crate) fn logs(values: &[f64]) -> Vec<f64> {
    let sensible = values.iter().filter(|x| x.is_finite() && **x > 0.0);
    sensible.map(|x| x.ln()).collect()
}

/// 90th percentile of a sample that is not empty.
pub(crate) fn upper(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * 9 / 10]
}

/// Range of loads that occur on both sides, without the extreme 5 % of each.
fn overlap(before: &[(f64, f64)], after: &[(f64, f64)]) -> Option<(f64, f64)> {
    let range = |pairs: &[(f64, f64)]| -> Option<(f64, f64)> {
        let mut loads: Vec<f64> = pairs.iter().map(|(x, _)| *x).collect();
        loads.sort_by(f64::total_cmp);
        let edge = loads.len() / 20;
        Some((*loads.get(edge)?, *loads.get(loads.len() - 1 - edge)?))
    };
    let (one, other) = (range(before)?, range(after)?);
    let both = (one.0.max(other.0), one.1.min(other.1));
    (both.0 <= both.1).then_some(both)
}

/// Effect of a step in a series of logarithms or ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepEffect {
    /// Level after less level before.
    pub size: f64,
    /// Half of its 95 % interval.
    pub half_width: f64,
    /// Half of its 68 % interval: a standard error that is not inflated by few data.
    pub(crate) error: f64,
    /// Probability of at least as large an effect under noise with the memory of the series.
    pub p: f64,
}

impl StepEffect {
    /// The effect on logarithms as a ratio.
    pub fn ratio(&self) -> Option<RatioInterval> {
        RatioInterval::of_logs(self.size, self.half_width)
    }
}

/// Effect of a step at `split`, with the linear effect of the covariates removed. If step and covariates fit the
/// series exactly, there is no noise: the effect is exact. `None` if the covariates explain the step.
pub(crate) fn step_effect(
    values: &[f64],
    split: usize,
    covariates: &[Vec<f64>],
) -> Option<StepEffect> {
    let step: Vec<f64> = (0..values.len())
        .map(|t| f64::from(u8::from(t >= split)))
        .collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for shape in std::iter::once(&ones(values.len())).chain(covariates) {
        let rest = without(shape, &basis);
        // A constant load does not show how the values depend on it.
        if dot(&rest, &rest) > 1e-12 * dot(shape, shape) {
            basis.push(rest);
        }
    }
    let rest = without(&step, &basis);
    let weight = dot(&rest, &step);
    if weight <= 1e-9 * values.len() as f64 {
        return None;
    }
    let contrast: Vec<f64> = rest.iter().map(|c| c / weight).collect();
    let size = dot(&contrast, values);
    let exact = StepEffect {
        size,
        half_width: 0.0,
        error: 0.0,
        p: if size.abs() > 1e-9 { 0.0 } else { 1.0 },
    };
    basis.push(step);
    let effect = Noise::learn(values, &basis).map(|noise| StepEffect {
        size,
        half_width: noise.half_width(&contrast, 0.05),
        error: noise.half_width(&contrast, 0.317),
        p: noise.tail(&contrast, size),
    });
    Some(effect.unwrap_or(exact))
}

/// Probability of at least as large a jump at `split` under noise with the memory of the series. Under noise that
/// wanders far, which no short series excludes, levels differ by chance, but rarely in one step: if only a sudden step
/// counts, this test is more powerful than [`step_effect`], which compares levels.
pub(crate) fn jump_tail(values: &[f64], split: usize) -> f64 {
    let step = (0..values.len()).map(|t| f64::from(u8::from(t >= split)));
    match Noise::learn(values, &[ones(values.len()), step.collect()]) {
        Some(noise) => noise.tail_of_last(),
        // Without noise any difference is exact.
        None => f64::from(u8::from(values.first() == values.last())),
    }
}

/// The part of `shape` that is orthogonal to each of `basis`; these are orthogonal to each other.
fn without(shape: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    let mut rest = shape.to_vec();
    for other in basis {
        let share = dot(&rest, other) / dot(other, other);
        for (value, part) in rest.iter_mut().zip(other) {
            *value -= share * part;
        }
    }
    rest
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Rank of each value, from 1; equal values share the mean of their ranks.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let equal = order[from..].iter();
        let count = equal
            .take_while(|at| values[**at] == values[order[from]])
            .count();
        for at in &order[from..from + count] {
            ranks[*at] = from as f64 + 0.5 * (count as f64 + 1.0);
        }
        from += count;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::share;
    use crate::simulate::{Rng, StationaryProcess};

    fn noisy(rng: &mut Rng, level: f64, spread: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| level * (spread * rng.normal()).exp())
            .collect()
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }

    #[test]
    fn few_or_none_are_not_compared() {
        assert_eq!(shift(&[1.0; 3], &[2.0; 3]), None);
        assert_eq!(shift(&[], &[2.0; 30]), None);
        assert_eq!(shift(&[0.0; 30], &[2.0; 30]), None);
        assert_eq!(shift(&[f64::NAN; 30], &[2.0; 30]), None);
    }

    #[test]
    fn a_rise_is_found_with_its_size() {
        let mut rng = Rng::new(1);
        let got = shift(
            &noisy(&mut rng, 20.0, 0.1, 30),
            &noisy(&mut rng, 26.0, 0.1, 30),
        )
        .unwrap();
        assert!(
            got.p < 0.001 && got.size() > 0.0 && got.superiority > 0.9,
            "{got:?}"
        );
        assert!(
            got.ratio.low < 1.3 && 1.3 < got.ratio.high && got.ratio.low > 1.1,
            "{got:?}"
        );
    }

    #[test]
    fn constant_series_are_exact() {
        let got = shift(&[2.0; 12], &[3.0; 12]).unwrap();
        assert!(
            (got.ratio.ratio - 1.5).abs() < 1e-12 && got.superiority == 1.0 && got.p < 0.01,
            "{got:?}"
        );
        let same = shift(&[2.0; 12], &[2.0; 12]).unwrap();
        assert_eq!((same.p, same.superiority), (1.0, 0.5));
    }

    #[test]
    fn most_values_far_worse_is_a_rise_though_ranks_do_not_show_it() {
        // Kayenta accepted such a release: three of ten values were lower than before.
        let found = share(200, 3, |rng| {
            let before = noisy(rng, 20.0, 0.1, 10);
            let after: Vec<f64> = (0..10)
                .map(|at| {
                    let level = if at % 3 == 2 { 15.0 } else { 2000.0 };
                    level * (0.1 * rng.normal()).exp()
                })
                .collect();
            shift(&before, &after).is_some_and(|got| got.shows(0.05, 10.0) && got.size() > 0.0)
        });
        assert!(found >= 0.95, "{found}");
    }

    #[test]
    fn a_changed_spread_is_a_change() {
        let found = share(100, 4, |rng| {
            let (before, after) = (noisy(rng, 20.0, 0.05, 30), noisy(rng, 20.0, 0.6, 30));
            shift(&before, &after).is_some_and(|got| got.shows(0.01, 1.5) && got.size() > 0.0)
        });
        assert!(found >= 0.95, "{found}");
    }

    #[test]
    fn one_value_that_stands_out_is_none() {
        let found = share(100, 5, |rng| {
            let before = noisy(rng, 20.0, 0.1, 30);
            let mut after = noisy(rng, 20.0, 0.1, 30);
            after[12] *= 1000.0;
            shift(&before, &after).is_some_and(|got| got.p < 0.01)
        });
        assert!(found <= 0.03, "{found}");
    }

    #[test]
    fn memory_alone_is_no_change() {
        for (memory, most) in [(0.0, 0.02), (0.5, 0.03), (0.8, 0.08)] {
            let found = share(300, 6, |rng| {
                let series = StationaryProcess::Ar(memory).series(rng, 60);
                shift(&series[..30], &series[30..]).is_some_and(|got| got.p < 0.01)
            });
            assert!(found <= most, "{memory}: {found}");
        }
    }

    #[test]
    fn a_curve_that_is_moved_along_is_not_a_shift_at_equal_load() {
        let curve =
            |load: f64, rng: &mut Rng| (load, 5.0 * load.sqrt() * (0.05 * rng.normal()).exp());
        let loads = |low: f64, rng: &mut Rng| -> Vec<f64> {
            (0..40).map(|_| low + 100.0 * rng.uniform()).collect()
        };
        let false_alarms = share(200, 7, |rng| {
            let before: Vec<_> = loads(100.0, rng)
                .into_iter()
                .map(|x| curve(x, rng))
                .collect();
            let after: Vec<_> = loads(140.0, rng)
                .into_iter()
                .map(|x| curve(x, rng))
                .collect();
            shift_at_equal_load(&before, &after).is_some_and(|got| got.p < 0.01)
        });
        assert!(false_alarms <= 0.03, "{false_alarms}");
        let found = share(200, 8, |rng| {
            let before: Vec<_> = loads(100.0, rng)
                .into_iter()
                .map(|x| curve(x, rng))
                .collect();
            let moved = |x: f64, rng: &mut Rng| (x, 1.3 * curve(x, rng).1);
            let after: Vec<_> = loads(140.0, rng)
                .into_iter()
                .map(|x| moved(x, rng))
                .collect();
            shift_at_equal_load(&before, &after).is_some_and(|got| got.p < 0.01)
        });
        assert!(found >= 0.97, "{found}");
    }

    #[test]
    fn loads_that_do_not_overlap_are_not_compared() {
        let pairs = |load: f64| -> Vec<(f64, f64)> {
            (0..30).map(|t| (load + f64::from(t), 5.0)).collect()
        };
        assert_eq!(shift_at_equal_load(&pairs(100.0), &pairs(200.0)), None);
    }
}
