//! Scatter of one round of a disk.

use super::rows::DiskRounds;
use crate::median::median;

/// Number of degrees of freedom from which the noise estimate is no longer updated: later rounds are of few hosts.
const MAX_DEGREES_OF_FREEDOM: f64 = 2_000.0;

/// Minimum variance, for figures that are exactly equal, as no disk's are.
const MIN_VARIANCE: f64 = 1e-12;

/// Median of a variance estimated from `count` values, as a share of the true variance (Wilson and Hilferty, 1931).
fn median_share(count: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * (count - 1.0))).powi(3)
}

/// The noise of one round, of logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Noise {
    /// Variance of the noise, and its degrees of freedom; zero before two rounds.
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

impl Noise {
    /// The standard deviation; `None` before it is estimated.
    pub(super) fn deviation(&self) -> Option<f64> {
        (self.degrees > 0.0).then(|| self.variance.sqrt())
    }

    /// Estimates the noise from the rows: first from the scatter of most of them, on which a few with slow rounds have
    /// no effect; then from their calm rounds. The hours are separate for each of the `groups`.
    pub(super) fn learn(&mut self, rows: &[&DiskRounds], groups: usize) {
        if self.degrees >= MAX_DEGREES_OF_FREEDOM {
            return;
        }
        let rows = || rows.iter().copied();
        let shares = rows().filter_map(|row| {
            let variance = row.plain_variance()?;
            Some(variance / median_share(row.rounds() as f64))
        });
        let usual = median(shares.collect()).unwrap_or(0.0);
        let repeated = rows().any(|row| row.rounds() > 1);
        if !repeated || !usual.is_finite() {
            return;
        }
        let usual = usual.max(MIN_VARIANCE);
        let mut calm: Vec<(f64, usize)> = Vec::new();
        for row in rows().filter(|row| row.rounds() > 1) {
            let mut row = row.clone();
            row.judge_by_others(usual.sqrt());
            calm.push((row.squares, row.calm));
        }
        let squares: f64 = calm.iter().map(|row| row.0).sum();
        let degrees: usize = calm.iter().map(|row| row.1.saturating_sub(1)).sum();
        // Each hour but the first was estimated from the same values.
        let rounds = rows().map(DiskRounds::rounds).max().unwrap_or(0);
        let hours = rounds.saturating_sub(1) * groups;
        let degrees = degrees as f64 - hours as f64;
        if degrees >= 1.0 {
            *self = Noise {
                variance: (squares / degrees).max(MIN_VARIANCE),
                degrees,
            };
        }
    }
}
