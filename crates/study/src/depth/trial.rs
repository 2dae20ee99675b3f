//! Comparison of two depths in turn, until the difference is significant.
//!
//! The throughput of a shared machine varies by a tenth from second to second, whatever the depth. A single window at
//! each of two depths would give a random result. Therefore windows of both are measured in turn (A B, B A, A B, …,
//! which cancels a drift), and the mean of the logarithms of their ratios is compared with its standard error. The
//! scatter of consecutive windows is known from the windows at a constant depth. On a quiet machine the first pair
//! decides.

use super::Window;

/// Distance of the mean from the required gain, in standard errors, for an early decision.
const EARLY_DECISION_ERRORS: f64 = 1.5;
/// Number of pairs after which the mean alone decides.
const MAX_PAIRS: usize = 6;
/// Initial scatter of consecutive windows; it counts as one pair.
const INITIAL_SCATTER: f64 = 0.015;
/// Number of pairs of consecutive windows after which the scatter is known, and one pair may decide.
const MIN_PAIRS_OF_NEIGHBOURS: u32 = 2;
/// Weight of a new pair of consecutive windows against earlier ones.
const NEW_PAIR_WEIGHT: f64 = 0.25;
/// Maximum difference of two consecutive windows that counts, as a logarithm: one stall is no measure of the noise.
const MAX_NEIGHBOUR_DIFFERENCE: f64 = 0.3;
/// Weight of the known scatter, in pairs of the trial.
const SCATTER_WEIGHT_PAIRS: f64 = 4.0;

/// Variation between two consecutive windows at one depth: the standard deviation of the logarithm of their ratio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    square: f64,
    seen: u32,
}

impl Spread {
    pub(super) fn new() -> Spread {
        Spread {
            square: INITIAL_SCATTER * INITIAL_SCATTER,
            seen: 0,
        }
    }

    /// Adds two consecutive windows of one depth.
    pub(super) fn add(&mut self, before: &Window, after: &Window) {
        let off =
            log_ratio(before, after).clamp(-MAX_NEIGHBOUR_DIFFERENCE, MAX_NEIGHBOUR_DIFFERENCE);
        self.seen = self.seen.saturating_add(1);
        let share = (1.0 / f64::from(self.seen.saturating_add(1))).max(NEW_PAIR_WEIGHT);
        self.square += share * (off * off - self.square);
    }

    pub(super) fn deviation(&self) -> f64 {
        self.square.sqrt()
    }
}

/// Logarithm of the ratio of the throughput of `after` to that of `before`.
fn log_ratio(before: &Window, after: &Window) -> f64 {
    (after.bytes_per_s / before.bytes_per_s).ln()
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judgement {
    /// The other depth exceeds the required gain, with this ratio of throughputs.
    Passes(f64),
    /// The other depth does not reach the required gain.
    Fails,
}

/// A comparison in progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// The depth before the trial.
    own: usize,
    other: usize,
    /// Logarithm of the required ratio.
    bar: f64,
    /// The first window of a pair.
    first: Option<Window>,
    /// The last window.
    last: Window,
    ratios: Vec<f64>,
    /// Mean throughput at the other depth.
    level: Option<Window>,
}

impl Trial {
    /// A trial of the depth `other` against that of `own`, a window that has just ended. The other depth passes if its
    /// throughput is more than `bar` times that of `own`.
    pub(super) fn new(own: Window, other: usize, bar: f64) -> Trial {
        Trial {
            own: own.depth,
            other,
            bar: bar.ln(),
            first: Some(own),
            last: own,
            ratios: Vec::new(),
            level: None,
        }
    }

    /// The depth of the next window.
    pub(super) fn depth(&self) -> usize {
        match &self.first {
            Some(first) if first.depth == self.own => self.other,
            Some(_) => self.own,
            // A pair begins with the depth at which the pair before ended, so that nothing has to settle.
            None if self.ratios.len().is_multiple_of(2) => self.own,
            None => self.other,
        }
    }

    /// Throughput of the other depth.
    pub(super) fn level(&self) -> Option<Window> {
        self.level
    }

    /// Adds the next window; `None` while the trial is undecided. Consecutive windows of one depth add to the known
    /// noise.
    pub(super) fn add(&mut self, now: Window, spread: &mut Spread) -> Option<Judgement> {
        if self.last.depth == now.depth {
            spread.add(&self.last, &now);
        }
        self.last = now;
        if now.depth == self.other {
            let count = (self.ratios.len() + 1) as f64;
            self.level = Some(
                self.level
                    .map_or(now, |level| level.mixed(&now, 1.0 / count)),
            );
        }
        let Some(first) = self.first.take() else {
            self.first = Some(now);
            return None;
        };
        self.ratios.push(if now.depth == self.other {
            log_ratio(&first, &now)
        } else {
            log_ratio(&now, &first)
        });
        self.judge(*spread)
    }

    fn judge(&self, spread: Spread) -> Option<Judgement> {
        let count = self.ratios.len() as f64;
        let mean = self.ratios.iter().sum::<f64>() / count;
        let squares: f64 = self.ratios.iter().map(|one| (one - mean).powi(2)).sum();
        let square =
            (SCATTER_WEIGHT_PAIRS * spread.square + squares) / (SCATTER_WEIGHT_PAIRS + count - 1.0);
        let least = if spread.seen < MIN_PAIRS_OF_NEIGHBOURS {
            2
        } else {
            1
        };
        let clear = self.ratios.len() >= least
            && (mean - self.bar).abs() >= EARLY_DECISION_ERRORS * (square / count).sqrt();
        if !clear && self.ratios.len() < MAX_PAIRS {
            None
        } else if mean > self.bar {
            Some(Judgement::Passes(mean.exp()))
        } else {
            Some(Judgement::Fails)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Rng;

    fn window(depth: usize, bytes_per_s: f64) -> Window {
        Window {
            depth,
            bytes_per_s,
            requests_per_s: bytes_per_s / 524288.0,
            latency_s: 0.05,
        }
    }

    /// Result of a trial of 8 against 16, and the number of windows it took.
    fn trial(truth: f64, noise: f64, rng: &mut Rng) -> (bool, usize) {
        let mut level = |depth| {
            let mean = if depth == 8 { truth } else { 1.0 };
            window(depth, 1e8 * mean * (noise * rng.normal()).exp())
        };
        let mut spread = Spread::new();
        for _ in 0..20 {
            spread.add(&level(16), &level(16));
        }
        let mut trial = Trial::new(level(16), 8, 0.98);
        for number in 1..100 {
            let next = level(trial.depth());
            if let Some(judgement) = trial.add(next, &mut spread) {
                return (matches!(judgement, Judgement::Passes(_)), number);
            }
        }
        panic!("a trial that does not end");
    }

    #[test]
    fn a_quiet_machine_is_judged_by_one_pair() {
        let mut rng = Rng::new(1);
        assert_eq!(trial(1.0, 0.002, &mut rng), (true, 1));
        assert_eq!(trial(0.9, 0.002, &mut rng), (false, 1));
    }

    #[test]
    fn a_noisy_one_is_judged_right_most_of_the_time() {
        for (noise, right) in [(0.05, 0.6), (0.1, 0.5)] {
            let mut rng = Rng::new(2);
            let passes = |truth: f64, rng: &mut Rng| {
                (0..500).filter(|_| trial(truth, noise, rng).0).count() as f64 / 500.0
            };
            let (same, much_less) = (passes(1.0, &mut rng), passes(0.8, &mut rng));
            assert!(same > right, "{noise}: {same}");
            assert!(much_less < 0.1, "{noise}: {much_less}");
        }
    }

    #[test]
    fn windows_of_both_depths_take_turns_and_drift_is_taken_out() {
        let mut at = 1.0;
        let mut next = |depth| {
            at *= 0.97;
            window(depth, 1e8 * at)
        };
        let mut trial = Trial::new(next(16), 8, 0.98);
        let mut depths = Vec::new();
        let mut noisy = Spread {
            square: 0.01,
            seen: 9,
        };
        let judgement = loop {
            depths.push(trial.depth());
            let window = next(trial.depth());
            if let Some(judgement) = trial.add(window, &mut noisy) {
                break judgement;
            }
        };
        assert_eq!(depths[..7], [8, 8, 16, 16, 8, 8, 16]);
        assert!(matches!(judgement, Judgement::Passes(_)));
    }
}
