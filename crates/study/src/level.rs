//! A level followed by a lower one: the sign of spent burst credit.

use crate::interval::Interval;
use crate::noise::{Noise, ScaledSeries, batch_means, mean, ones};
use crate::plateau::without_outliers;
use crate::residual::{residual_of_levels, residual_of_line};

/// Minimum length of a series: a shorter one cannot distinguish a lasting drop from a rate that jumps about every
/// second.
pub const MIN_SLICES: usize = 70;
/// Minimum drop that is reported, as a fraction of the level before.
const MIN_DROP: f64 = 0.1;
/// Maximum probability of as large a drop under noise with the memory of the series. It is small, because the position
/// of the drop was chosen to make it as large as possible.
const TAIL_PROBABILITY: f64 = 5e-4;

/// A drop from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelDrop {
    /// The first slice of the lower level.
    pub at: usize,
    /// The level before the drop, per slice.
    pub before: Interval,
    /// The level after the drop, per slice.
    pub after: Interval,
}

/// The drop in `slices`: two levels, the second at least a tenth lower and held to the end, each for at least an
/// eighth of the series; `None` without one.
///
/// A dip that recovers, a trend, and noise with the memory of the series are no drop. The position is exact to a slice
/// up to 100 slices, to a hundredth of the series beyond. `None` also with fewer than [`MIN_SLICES`] values, if one is
/// not finite, and if the second level is zero: that is a stall.
pub fn find_drop(slices: &[f64]) -> Option<LevelDrop> {
    find_drop_where(slices, |_| true)
}

/// Like [`find_drop`], with a condition on the first slice of the lower level. It is tested before the noise is
/// estimated, which takes the most time.
pub(crate) fn find_drop_where(
    slices: &[f64],
    is_wanted: impl Fn(usize) -> bool,
) -> Option<LevelDrop> {
    let step = if slices.len() < MIN_SLICES {
        None
    } else {
        find_step_where(slices, is_wanted)
    };
    step.filter(|step| {
        let stalled = slices[step.at..].iter().all(|x| *x <= 0.0);
        step.after.mean < step.before.mean && !stalled
    })
}

/// A step from one level to another, up or down, in at least half of [`MIN_SLICES`]: a weaker test than [`find_drop`],
/// enough for a doubt.
pub(crate) fn find_step(slices: &[f64]) -> Option<LevelDrop> {
    find_step_where(slices, |_| true)
}

fn find_step_where(slices: &[f64], is_wanted: impl Fn(usize) -> bool) -> Option<LevelDrop> {
    if slices.len() < MIN_SLICES / 2 {
        return None;
    }
    let scaled = ScaledSeries::new(slices)?;
    let (mut batches, length) = batch_means(&scaled.values);
    let count = batches.len();
    let split = best_split(&batches);
    // A full token bucket doubles the first slice. A single such slice looks like a step of a wandering series, and
    // would make the two levels look like wander too.
    let (first, second) = batches.split_at_mut(split);
    for level in [first, second] {
        let calm = without_outliers(level, 1.0 / scaled.unit, 1);
        level.copy_from_slice(&calm);
    }
    let (first, second) = batches.split_at(split);
    let (before, after) = (mean(first), mean(second));
    let level = |x: f64| scaled.mean + scaled.unit * x;
    let higher = level(before).abs().max(level(after).abs());
    if (before - after).abs() * scaled.unit <= MIN_DROP * higher || !holds(first, second) {
        return None;
    }
    let at = slices.len() - (count - split) * length;
    if residual_of_line(&batches) <= residual_of_levels(&batches, split) || !is_wanted(at) {
        return None;
    }
    let weights = |early: f64, late: f64| -> Vec<f64> {
        (0..count)
            .map(|t| if t < split { early } else { late })
            .collect()
    };
    let (early, late) = (1.0 / split as f64, 1.0 / (count - split) as f64);
    // Two levels without any remaining noise are certain.
    let noise = Noise::learn(&batches, &[ones(count), weights(0.0, 1.0)]);
    if noise
        .as_ref()
        .is_some_and(|noise| noise.tail(&weights(early, -late), before - after) > TAIL_PROBABILITY)
    {
        return None;
    }
    let interval = |mean: f64, contrast: Vec<f64>| {
        let half_width = noise
            .as_ref()
            .map_or(0.0, |noise| noise.half_width(&contrast, 0.05));
        Interval::around(level(mean), scaled.unit * half_width)
    };
    Some(LevelDrop {
        at,
        before: interval(before, weights(early, 0.0)),
        after: interval(after, weights(0.0, late)),
    })
}

/// True if every third of either part is on its side of the midpoint. A dip that recovers has thirds on the wrong
/// side.
fn holds(first: &[f64], second: &[f64]) -> bool {
    let (before, after) = (mean(first), mean(second));
    let middle = 0.5 * (before + after);
    let above = |third: f64| (third > middle) == (before > middle);
    thirds(first).all(above) && !thirds(second).any(above)
}

/// The split into two levels with the smallest sum of squares, each at least an eighth of the series long.
fn best_split(series: &[f64]) -> usize {
    let edge = series.len() / 8;
    let total: f64 = series.iter().sum();
    let mut first = 0.0;
    let mut best = (edge, f64::NEG_INFINITY);
    for (t, x) in series.iter().enumerate() {
        if (edge..=series.len() - edge).contains(&t) {
            let second = total - first;
            let between = first * first / t as f64 + second * second / (series.len() - t) as f64;
            if between > best.1 {
                best = (t, between);
            }
        }
        first += x;
    }
    best.0
}

/// The means of the three parts of a series.
fn thirds(series: &[f64]) -> impl Iterator<Item = f64> {
    series.chunks(series.len().div_ceil(3)).map(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series with a little scatter around a level that depends on the slice.
    fn series(level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..80)
            .map(|t| level(t) * (1.0 + 0.01 * ((t * 37 % 11) as f64 - 5.0) / 5.0))
            .collect()
    }

    #[test]
    fn finds_the_slice_and_both_levels() {
        let step = find_drop(&series(|t| if t < 55 { 300.0 } else { 100.0 })).unwrap();
        assert_eq!(step.at, 55);
        assert!(step.before.contains(300.0) && step.after.contains(100.0));
    }

    #[test]
    fn two_exact_levels_are_two_levels() {
        let step = find_drop(&[vec![300.0; 50], vec![100.0; 30]].concat()).unwrap();
        assert_eq!(
            (step.at, step.before.mean.round(), step.after.mean.round()),
            (50, 300.0, 100.0)
        );
    }

    #[test]
    fn one_slice_that_is_alone_does_not_hide_the_drop() {
        // Seen on a throttled device: the first grant was doubled, and one slice has both levels.
        let mut seen = [vec![200.0; 40], vec![40.0; 60]].concat();
        (seen[0], seen[39]) = (400.0, 48.0);
        let step = find_drop(&seen).unwrap();
        assert!((39..=40).contains(&step.at), "{}", step.at);
        assert!(
            (step.before.mean - 200.0).abs() < 5.0,
            "{}",
            step.before.mean
        );
        assert!((step.after.mean - 40.0).abs() < 1.0, "{}", step.after.mean);
    }

    #[test]
    fn neither_dip_nor_trend_nor_rise_nor_stall_is_a_drop() {
        assert_eq!(
            find_drop(&series(|t| if (30..42).contains(&t) {
                20.0
            } else {
                300.0
            })),
            None
        );
        assert_eq!(find_drop(&series(|t| 300.0 - 2.0 * t as f64)), None);
        assert_eq!(
            find_drop(&series(|t| if t < 40 { 100.0 } else { 300.0 })),
            None
        );
        assert_eq!(
            find_drop(&series(|t| if t < 40 { 300.0 } else { 0.0 })),
            None
        );
    }

    #[test]
    fn place_in_a_long_series_is_within_a_hundredth() {
        let long: Vec<f64> = (0..36_037)
            .map(|t| if t < 20_000 { 300.0 } else { 200.0 } + (t % 7) as f64)
            .collect();
        let step = find_drop(&long).unwrap();
        assert!(step.at.abs_diff(20_000) <= 361, "{}", step.at);
    }

    #[test]
    fn too_few_is_none() {
        let short = [vec![300.0; 40], vec![100.0; MIN_SLICES - 41]].concat();
        assert_eq!(find_drop(&short), None);
    }
}
