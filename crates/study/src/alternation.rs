//! A rate that goes back and forth between two levels.

use crate::noise::mean;

/// A shorter series cannot come back twice.
const LEAST_SLICES: usize = 30;
/// The higher level is at least so many times the lower one: less may be noise with memory.
const APART: f64 = 1.5;
/// The share of the variance that two levels leave over at most. Two halves of normal noise leave 36 %, of a
/// uniform drift 25 %, of a sine 19 %.
const LEFT: f64 = 0.1;
/// Each level holds at least this share of the slices: fewer are outliers.
const HELD: f64 = 0.1;
/// Least mean number of slices for which a level lasts: faster changes are grants of a limit.
const STAY: usize = 3;

/// Two levels between which a rate changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alternation {
    /// The mean of the slices at the lower level.
    pub low: f64,
    /// The mean of the slices at the higher level.
    pub high: f64,
    /// Number of changes from one to the other: two at least.
    pub changes: usize,
}

/// The two levels between which `slices` go back and forth, if they do. One change alone is a step (see
/// [`crate::level`]).
pub fn find(slices: &[f64]) -> Option<Alternation> {
    if slices.len() < LEAST_SLICES || slices.iter().any(|slice| !slice.is_finite()) {
        return None;
    }
    let middle = best_middle(slices)?;
    let (above, below): (Vec<f64>, Vec<f64>) = slices.iter().partition(|slice| **slice > middle);
    let least = HELD * slices.len() as f64;
    if (above.len() as f64) < least || (below.len() as f64) < least {
        return None;
    }
    let (low, high) = (mean(&below), mean(&above));
    let left = spread(&above) + spread(&below);
    // At a level of nothing the disk does not answer, which is another finding.
    let two_levels = low > 0.0 && high >= APART * low && left <= LEFT * spread(slices);
    let changes = changes(slices, middle);
    let lasting = (changes + 1) * STAY <= slices.len();
    (two_levels && changes >= 2 && lasting).then_some(Alternation { low, high, changes })
}

/// The value that parts the slices into two groups which scatter least.
fn best_middle(slices: &[f64]) -> Option<f64> {
    let mut sorted = slices.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let (mut before, mut best) = (0.0, None);
    for (at, pair) in sorted.windows(2).enumerate() {
        before += pair[0];
        let below = at as f64 + 1.0;
        // What lies between the groups is what they do not leave over.
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

/// Number of times that the slices cross `middle`, without single ones that stand alone: one slice may hold
/// parts of both.
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
            let mut rng = Rng::new(5);
            let found = (0..200).filter(|_| find(&process.series(&mut rng, 80)).is_some());
            assert!(found.count() <= 2, "{process:?}");
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
