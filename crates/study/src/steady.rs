//! Steadiness of a series: whether it has one level, and where that level begins.

use crate::interval::LEAST_SLICES;
use crate::level::{find_step, residual_of_levels, residual_of_line};
use crate::noise::{Noise, Scaled, batch_means, mean, ones};

/// A change smaller than this, as a fraction of the mean, is not worth a finding even where it is
/// certain: a long enough series makes any change certain.
const WORTH_NAMING: f64 = 0.05;
/// Probability that noise alone looks like a change. Two shapes are tried, and a warm-up.
const TAIL: f64 = 0.01;
/// A warm-up that differs from the rest by less than this fraction may as well stay in.
const WARMUP_WORTH: f64 = 0.03;
/// Squared errors within this factor of the least are the same for want of data: their estimates
/// rest on a dozen batches.
const NEARLY: f64 = 2.5;
/// The batch of the warm-up rule, in slices.
const WARMUP_BATCH: usize = 5;

/// Reason for which a series is steady or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One level, as far as the noise lets one tell.
    Level,
    /// It rises or falls over the whole series.
    Drift,
    /// It rises and falls again, or the other way round.
    Bend,
    /// It changes from one level to another (where to a lower one, see [`crate::level`]).
    Step,
    /// Too short, or not finite: nothing can be said.
    TooFew,
}

/// Steadiness of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Nothing speaks against one level.
    pub steady: bool,
    /// The change from the first slice to the last that a straight line gives, as a fraction of the
    /// mean: -0.2 for a fall by a fifth.
    pub drift_fraction: f64,
    /// Probability that noise alone gives a drift this large.
    pub drift_chance: f64,
    /// Reason.
    pub reason: Reason,
}

/// Judges whether `slices`, with any warm-up left out (see [`warmup_end`]), keep one level.
///
/// A straight line and a parabola are fitted. Either makes the series unsteady if it moves by more
/// than 5 % of the mean and noise with the memory of this series gives that less than once in 100.
pub fn assess(slices: &[f64]) -> Steadiness {
    judge(slices).unwrap_or(Steadiness {
        steady: false,
        drift_fraction: 0.0,
        drift_chance: 1.0,
        reason: Reason::TooFew,
    })
}

fn judge(slices: &[f64]) -> Option<Steadiness> {
    if slices.len() < LEAST_SLICES {
        return None;
    }
    let scaled = Scaled::new(slices)?;
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
        // Without noise any change is certain.
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
    let real = |fraction: f64, chance: f64| fraction.abs() > WORTH_NAMING && chance < TAIL;
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

/// Number of slices at the start that are warm-up and best left out; zero where there is no warm-up, or where
/// the series has not settled within its first third.
///
/// MSER-5 (White 1997; White, Cobb and Spratt 2000): of the means of five slices, leave out as many as make
/// the standard error of what remains least. On a steady series that rule leaves out something by chance, so
/// what it would leave out must also differ from the rest by more than noise with the memory of the rest
/// explains, and a straight line must not explain it better.
///
/// A high level that drops early looks the same. Ask [`crate::level::find_drop`] of the whole series first:
/// what it finds is no warm-up.
pub fn warmup_end(slices: &[f64]) -> usize {
    find_warmup(slices).unwrap_or(0)
}

fn find_warmup(slices: &[f64]) -> Option<usize> {
    if slices.len() < 2 * LEAST_SLICES {
        return None;
    }
    let scaled = Scaled::new(slices)?;
    let (series, length) = batch_means(&scaled.values);
    let stride = WARMUP_BATCH.div_ceil(length);
    let groups: Vec<f64> = series.chunks_exact(stride).map(mean).collect();
    let latest = groups.len() / 3;
    let errors: Vec<f64> = (0..=latest)
        .map(|start| squared_error(&groups[start..]))
        .collect();
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    // Where in a flat valley of errors the least one lies is a matter of chance; the earliest that is
    // nearly as small keeps the most data.
    let end = errors.iter().position(|error| *error <= NEARLY * least)?;
    // No small error within the first third means that the series never settled (White 1997).
    if end == 0 || end == latest {
        return None;
    }
    let end = end * stride;
    let (first, rest) = series.split_at(end);
    let difference = mean(first) - mean(rest);
    let level = scaled.mean + scaled.unit * mean(rest);
    if difference.abs() * scaled.unit <= WARMUP_WORTH * level.abs()
        || residual_of_line(&series) <= residual_of_levels(&series, end)
    {
        return None;
    }
    // The noise is that of the rest: the warm-up itself is no measure of it.
    let noise = Noise::learn(rest, &[ones(rest.len())]);
    let mut contrast = vec![1.0 / end as f64; end];
    contrast.extend(vec![-1.0 / rest.len() as f64; rest.len()]);
    let by_chance = noise.is_some_and(|noise| noise.tail(&contrast, difference) >= TAIL);
    (!by_chance).then_some(slices.len() - rest.len() * length)
}

/// The square of the standard error of the mean, as if the values were independent.
fn squared_error(series: &[f64]) -> f64 {
    let mean = mean(series);
    series.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (series.len() as f64).powi(2)
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
