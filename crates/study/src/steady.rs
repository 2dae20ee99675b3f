//! Steadiness of a series: whether it has one level, and where that level begins.

use crate::interval::MIN_SLICES;
use crate::level::find_step;
use crate::noise::{MAX_BATCHES, Noise, ScaledSeries, batch_means, mean, ones};
use crate::residual::{residual_of_levels, residual_of_line};

/// Minimum change that is reported, as a share of the mean: in a long enough series any change is significant.
const MIN_CHANGE: f64 = 0.05;
/// Significance level of a change. Two shapes are tried.
const TAIL: f64 = 0.01;
/// Significance level of a warm-up. It is small, because the end of the warm-up is chosen to make it as distinct as
/// possible.
const WARMUP_TAIL: f64 = 0.003;
/// Minimum effect of a warm-up on the mean, as a share, to be left out.
const WARMUP_WORTH: f64 = 0.001;

/// Result of the test for one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The series has one level, within the noise.
    Level,
    /// The series rises or falls over its whole length.
    Drift,
    /// The series rises and then falls, or the other way round.
    Bend,
    /// The series changes from one level to another (for a lower one, see [`crate::level`]).
    Step,
    /// The series is too short, or a value is not finite.
    TooFew,
}

/// Steadiness of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// True if nothing contradicts a single level.
    pub steady: bool,
    /// The change from the first slice to the last by a fitted straight line, as a share of the mean: -0.2 for a fall
    /// by a fifth.
    pub drift_fraction: f64,
    /// Probability of a drift this large by noise alone.
    pub drift_chance: f64,
    /// Reason for the judgement.
    pub reason: Reason,
}

/// Judges whether `slices`, without any warm-up (see [`warmup_end`]), have one level.
///
/// A straight line and a parabola are fitted. Either makes the series unsteady if it changes by more than 5 % of the
/// mean and noise with the memory of this series gives that less than once in 100.
pub fn assess(slices: &[f64]) -> Steadiness {
    judge(slices).unwrap_or(Steadiness {
        steady: false,
        drift_fraction: 0.0,
        drift_chance: 1.0,
        reason: Reason::TooFew,
    })
}

fn judge(slices: &[f64]) -> Option<Steadiness> {
    if slices.len() < MIN_SLICES {
        return None;
    }
    let scaled = ScaledSeries::new(slices)?;
    let (batches, _) = batch_means(&scaled.values);
    let (line, parabola) = shapes(batches.len());
    let fraction = |change: f64| {
        if change == 0.0 {
            0.0
        } else {
            change * scaled.unit / scaled.mean.abs()
        }
    };
    let noise = Noise::learn(
        &batches,
        &[ones(batches.len()), line.clone(), parabola.clone()],
    );
    let change = |shape: &[f64]| {
        let contrast = contrast(shape);
        let change: f64 = contrast.iter().zip(&batches).map(|(c, x)| c * x).sum();
        // Without noise any change is significant.
        let certain = if change == 0.0 { 1.0 } else { 0.0 };
        (
            fraction(change),
            noise
                .as_ref()
                .map_or(certain, |noise| noise.tail(&contrast, change)),
        )
    };
    let (drift_fraction, drift_chance) = change(&line);
    let (bend_fraction, bend_chance) = change(&parabola);
    let real = |fraction: f64, chance: f64| fraction.abs() > MIN_CHANGE && chance < TAIL;
    let reason = if find_step(slices).is_some() {
        Reason::Step
    } else if real(drift_fraction, drift_chance) {
        Reason::Drift
    } else if real(bend_fraction, bend_chance) {
        Reason::Bend
    } else {
        Reason::Level
    };
    Some(Steadiness {
        steady: reason == Reason::Level,
        drift_fraction,
        drift_chance,
        reason,
    })
}

/// A straight line and a parabola, each rising by one from its lowest point to its highest, with
/// mean zero and independent of each other.
fn shapes(count: usize) -> (Vec<f64>, Vec<f64>) {
    let line: Vec<f64> = (0..count)
        .map(|t| (t as f64 + 0.5) / count as f64 - 0.5)
        .collect();
    let squares: Vec<f64> = line.iter().map(|x| 4.0 * x * x).collect();
    let middle = mean(&squares);
    let parabola = squares.iter().map(|x| x - middle).collect();
    (line, parabola)
}

/// The weights that give the least-squares coefficient of a shape.
fn contrast(shape: &[f64]) -> Vec<f64> {
    let squares: f64 = shape.iter().map(|x| x * x).sum();
    shape.iter().map(|x| x / squares).collect()
}

/// The number of slices at the start that are warm-up and should be left out; zero if there is no warm-up, or if the
/// series has not settled within its first third.
///
/// The series is cut where two levels fit it best (least squares). The part before the cut is left out if it differs
/// from the level after it by more than the wander of the rest explains, with the memory of the rest, and if a
/// straight line explains it no better. The remainder is judged in the same way, until it begins at its own level: a
/// ramp is removed in steps. Bias and coverage of the mean of the remainder are simulated in the tests. It needs more
/// than [`MIN_SLICES`] values, and leaves at least as many.
///
/// MSER-5 (White, Cobb and Spratt 2000), which leaves out groups of five values, needs several groups: it does not
/// detect a burst in three seconds, where a throttle that grants its first slice twice adds 3 %.
///
/// A high level that drops early looks the same. Call [`crate::level::find_drop`] on the whole series first: a drop
/// that it finds is no warm-up.
pub fn warmup_end(slices: &[f64]) -> usize {
    settled_from(slices, |_| true).unwrap_or(0)
}

/// End of the burst at the start of a series: the burst that a cap lets through before it limits. Like [`warmup_end`],
/// but a slow start is kept.
pub fn burst_end(slices: &[f64]) -> usize {
    settled_from(slices, |excess| excess > 0.0).unwrap_or(0)
}

/// The first slice at the level of the rest, if the mean before it differs by an excess that `counts`.
fn settled_from(slices: &[f64], counts: fn(f64) -> bool) -> Option<usize> {
    let scaled = ScaledSeries::new(slices)?;
    let length = slices.len().div_ceil(MAX_BATCHES).max(1);
    // Values at the end that do not fill a batch are left out: the start is what matters here.
    let series: Vec<f64> = scaled.values.chunks_exact(length).map(mean).collect();
    let latest = (slices.len() / 3).min(slices.len().checked_sub(MIN_SLICES)?) / length;
    let far = scaled.mean / scaled.unit;
    let mut end = 0;
    while let Some(more) = leading(&series[end..], latest - end, far, counts) {
        end += more;
    }
    Some(end * length)
}

/// The length of a first part that is not at the level of the rest, less than `most`. `far` is the distance of zero
/// from the mean of the whole series.
fn leading(series: &[f64], most: usize, far: f64, counts: fn(f64) -> bool) -> Option<usize> {
    let fit = |end: &usize| residual_of_levels(series, *end);
    let end = (1..=most).min_by(|a, b| fit(a).total_cmp(&fit(b)))?;
    let (first, rest) = series.split_at(end);
    let excess = mean(first) - mean(rest);
    let moves = excess.abs() * end as f64 / series.len() as f64;
    // A change as late as `most` means that the series never settled (White 1997).
    let is_warmup = end < most
        && counts(excess)
        && moves > WARMUP_WORTH * (far + mean(rest)).abs()
        && fit(&end) < residual_of_line(series)
        && !is_chance(end, rest, excess);
    is_warmup.then_some(end)
}

/// True if noise with the memory of `rest` explains that the mean of the `count` values before it differs by `excess`.
/// The noise is estimated from the rest, since the warm-up itself is no measure of it.
fn is_chance(count: usize, rest: &[f64], excess: f64) -> bool {
    // Without noise in the rest any difference is significant.
    Noise::learn(rest, &[ones(rest.len())]).is_some_and(|noise| {
        let mut contrast = vec![1.0 / count as f64; count];
        contrast.resize(count + rest.len(), -1.0 / rest.len() as f64);
        noise.tail(&contrast, excess) >= WARMUP_TAIL
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_series_is_steady() {
        let steadiness = assess(&[40.0; 80]);
        assert!(steadiness.steady);
        assert_eq!(
            (steadiness.drift_fraction, steadiness.reason),
            (0.0, Reason::Level)
        );
        assert_eq!(warmup_end(&[40.0; 80]), 0);
    }

    #[test]
    fn a_drift_without_noise_is_measured_exactly() {
        let series: Vec<f64> = (0..80)
            .map(|t| 120.0 - 40.0 * (f64::from(t) + 0.5) / 80.0)
            .collect();
        let steadiness = assess(&series);
        assert_eq!(steadiness.reason, Reason::Drift);
        assert!((steadiness.drift_fraction + 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_slow_first_second_is_warmup() {
        let series: Vec<f64> = (0..80)
            .map(|t| if t < 10 { 50.0 } else { f64::from(100 + t % 3) })
            .collect();
        assert_eq!(warmup_end(&series), 10);
        assert!(assess(&series[10..]).steady);
    }

    #[test]
    fn too_few_or_not_finite_is_not_steady() {
        for series in [
            vec![],
            vec![1.0; 19],
            vec![f64::NAN; 40],
            vec![f64::INFINITY; 40],
        ] {
            assert_eq!(assess(&series).reason, Reason::TooFew);
            assert!(!assess(&series).steady);
            assert_eq!(warmup_end(&series), 0);
        }
    }

    #[test]
    fn nothing_at_all_is_steady() {
        assert!(assess(&[0.0; 80]).steady);
    }
}
