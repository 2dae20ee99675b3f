//! A rate that alternates between two levels.

use crate::noise::mean;

/// Minimum length of a series: a shorter one cannot return to a level twice.
const MIN_SLICES: usize = 20;
/// Criteria for two levels in means of several slices.
struct PooledLevels {
    slices: usize,
    /// Minimum ratio of the higher level to the lower one: a smaller one may be autocorrelated noise.
    apart: f64,
    /// Maximum share of the variance that remains around two levels. It is 36 % for the two halves of normal noise, 25
    /// % for a uniform drift, 19 % for a sine.
    left: f64,
}

const POOLED: [PooledLevels; 3] = [
    PooledLevels {
        slices: 1,
        apart: 1.5,
        left: 0.1,
    },
    PooledLevels {
        slices: 2,
        apart: 3.0,
        left: 0.16,
    },
    PooledLevels {
        slices: 4,
        apart: 3.0,
        left: 0.16,
    },
];
/// Minimum share of the slices at each level: fewer are outliers.
const MIN_LEVEL_SHARE: f64 = 0.1;
/// Minimum mean length of a stay at a level, in slices: faster changes are the grants of a limit.
const MIN_LEVEL_SLICES: usize = 3;

/// Two levels between which a rate changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternation {
    /// The mean of the slices at the lower level.
    pub low: f64,
    /// The mean of the slices at the higher level.
    pub high: f64,
    /// Number of changes between the levels, at least two.
    pub changes: usize,
}

/// The two levels between which `slices` alternate; `None` otherwise. A single change is a step (see
/// [`crate::level`]).
///
/// A limit that grants in lumps, or a host without a free processor, scatters slices around their level, but means of
/// several slices much less: therefore means of two and of four slices are examined too.
pub fn find(slices: &[f64]) -> Option<Alternation> {
    POOLED.into_iter().find_map(|levels| {
        let pooled: Vec<f64> = slices.chunks_exact(levels.slices).map(mean).collect();
        levels.find(&pooled)
    })
}

impl PooledLevels {
    /// The levels in means of slices.
    fn find(&self, means: &[f64]) -> Option<Alternation> {
        if means.len() < MIN_SLICES || means.iter().any(|mean| !mean.is_finite()) {
            return None;
        }
        let middle = best_middle(means)?;
        let (above, below): (Vec<f64>, Vec<f64>) = means.iter().partition(|mean| **mean > middle);
        let least = MIN_LEVEL_SHARE * means.len() as f64;
        if (above.len() as f64) < least || (below.len() as f64) < least {
            return None;
        }
        let (low, high) = (mean(&below), mean(&above));
        let left = spread(&above) + spread(&below);
        // At a level of zero the disk completes nothing, which is another finding.
        let answers = 2 * below.iter().filter(|mean| **mean > 0.0).count() > below.len();
        let two_levels = answers && high >= self.apart * low && left <= self.left * spread(means);
        let changes = changes(means, middle);
        let lasting = (changes + 1) * MIN_LEVEL_SLICES <= means.len();
        (two_levels && changes >= 2 && lasting).then_some(Alternation { low, high, changes })
    }
}

/// The threshold that divides the slices into the two groups with the least scatter.
fn best_middle(slices: &[f64]) -> Option<f64> {
    let mut sorted = slices.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let (mut before, mut best) = (0.0, None);
    for (at, pair) in sorted.windows(2).enumerate() {
        before += pair[0];
        let below = at as f64 + 1.0;
        // The variance between the groups is the part that they explain.
        let apart = before / below - (sum - before) / (count - below);
        let between = below * (count - below) * apart * apart;
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, 0.5 * (pair[0] + pair[1])));
        }
    }
    best.map(|(_, middle)| middle)
}

/// The sum of squares around the mean.
fn spread(slices: &[f64]) -> f64 {
    let mean = mean(slices);
    slices.iter().map(|x| (x - mean).powi(2)).sum()
}

/// Number of crossings of `middle`, ignoring a single slice between two others: one slice may contain parts of both
/// levels.
fn changes(slices: &[f64], middle: f64) -> usize {
    let sides: Vec<bool> = slices.iter().map(|slice| *slice > middle).collect();
    let mut now = sides[0];
    let mut changes = 0;
    for pair in sides.windows(2) {
        if pair[0] != now && pair[1] != now {
            now = !now;
            changes += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{PROCESSES, Rng};

    fn series(rng: &mut Rng, count: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..count)
            .map(|t| (level(t) * (1.0 + 0.05 * rng.normal())).round().max(0.0))
            .collect()
    }

    #[test]
    fn two_levels_that_come_again_are_found_with_both() {
        let mut rng = Rng::new(3);
        for stay in [5, 10, 20, 25] {
            for (low, high) in [(30.0, 300.0), (10.0, 20.0), (4000.0, 7000.0)] {
                let slices = series(&mut rng, 80, |t| [low, high][t / stay % 2]);
                let found = find(&slices).unwrap_or_else(|| panic!("{stay} {low} {high}"));
                assert!((found.low / low - 1.0).abs() < 0.05, "{found:?}");
                assert!((found.high / high - 1.0).abs() < 0.05, "{found:?}");
                assert_eq!(found.changes, 79 / stay, "{found:?}");
            }
        }
    }

    /// Grants that are early or late by half a slice, and slices of a host without a free processor.
    #[test]
    fn two_levels_are_found_under_lumps_that_means_even_out() {
        let mut rng = Rng::new(6);
        for (low, high) in [(30.0, 300.0), (4.0, 40.0)] {
            let found = (0..50).filter(|_| {
                let mut owed = 0.0;
                let slices: Vec<f64> = (0..100)
                    .map(|t| {
                        owed += [low, high][t / 10 % 2];
                        let granted = owed * (0.4 + 0.6 * rng.uniform());
                        owed -= granted;
                        granted.round()
                    })
                    .collect();
                // The late part of a grant of the higher level counts at the lower level.
                find(&slices).is_some_and(|found| {
                    (low..2.5 * low).contains(&found.low) && (found.high / high - 1.0).abs() < 0.15
                })
            });
            let found = found.count();
            assert!(found >= 48, "{found} of 50 at {low} and {high}");
        }
    }

    #[test]
    fn noise_drift_waves_steps_and_grants_do_not_alternate() {
        let mut rng = Rng::new(4);
        type Shape = fn(usize) -> f64;
        let shapes: [(&str, Shape); 6] = [
            ("one level", |_| 100.0),
            ("a step", |t| if t < 40 { 100.0 } else { 300.0 }),
            ("a drift", |t| 100.0 + 5.0 * t as f64),
            ("a wave", |t| 100.0 + 60.0 * (t as f64 / 8.0).sin()),
            ("grants", |t| [0.0, 60.0][t % 2]),
            (
                "a stall",
                |t| if (30..50).contains(&t) { 0.0 } else { 100.0 },
            ),
        ];
        for (name, shape) in shapes {
            let slices = series(&mut rng, 80, shape);
            assert_eq!(find(&slices), None, "{name}");
        }
    }

    #[test]
    fn a_series_with_one_mean_hardly_ever_alternates() {
        for process in PROCESSES {
            for count in [20, 40, 80, 200] {
                let mut rng = Rng::new(5);
                let found = (0..200).filter(|_| find(&process.series(&mut rng, count)).is_some());
                let found = found.count();
                assert!(found <= 2, "{found} in {process:?} of {count}");
            }
        }
    }

    #[test]
    fn senseless_input_is_none() {
        assert_eq!(find(&[]), None);
        assert_eq!(find(&[1.0; 80]), None);
        assert_eq!(find(&[f64::NAN; 80]), None);
        assert_eq!(find(&[f64::INFINITY; 80]), None);
    }
}
