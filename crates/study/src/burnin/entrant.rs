//! One host in the race: its disks, and its figures.

use super::noise::Noise;
use super::rows::DiskRounds;
use super::shares;
use super::status::HostStatus;
use crate::median::median;

/// Weight of the pooled noise in the noise estimate of one disk, in degrees of freedom (Smyth 2004).
const PRIOR_DEGREES_OF_FREEDOM: f64 = 4.0;

/// A host in a race, with its rounds.
#[derive(Clone, Debug)]
pub(super) struct RacedHost {
    pub(super) group: usize,
    pub(super) status: HostStatus,
    /// Rounds of each disk.
    pub(super) rows: Vec<DiskRounds>,
    /// The bounds of each disk by its slow rounds.
    shares: Vec<(f64, f64)>,
    /// Number of rounds in which the host was measured.
    pub(super) rounds: usize,
    /// Logarithms: of the figure, and of the lowest and the highest figure that the bounds of its slow rounds allow.
    pub(super) figure: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Index of the worst disk.
    pub(super) worst: usize,
    /// Variance of a round of this host, and the minimum number of calm rounds.
    pub(super) variance: f64,
    pub(super) calm: usize,
}

impl RacedHost {
    pub(super) fn new(group: usize) -> RacedHost {
        RacedHost {
            group,
            status: HostStatus::In,
            rows: Vec::new(),
            shares: Vec::new(),
            rounds: 0,
            figure: f64::NEG_INFINITY,
            low: f64::NEG_INFINITY,
            high: f64::NEG_INFINITY,
            worst: 0,
            variance: 0.0,
            calm: 0,
        }
    }

    /// True if `disks` are valid figures for its disks.
    pub(super) fn takes(&self, disks: &[f64]) -> bool {
        let sound = |figure: &f64| figure.is_finite() && *figure > 0.0;
        let same = self.rows.is_empty() || self.rows.len() == disks.len();
        !disks.is_empty() && same && disks.iter().all(sound)
    }

    /// Median distance of its disks from their own levels; `None` before they have levels.
    pub(super) fn off(&self, logs: &[f64]) -> Option<f64> {
        let off = self.rows.iter().zip(logs).map(|(row, log)| log - row.level);
        median(off.collect())
    }

    /// Adds a round, with the effect of the hour subtracted.
    pub(super) fn push(&mut self, logs: &[f64], hour: f64) {
        self.rows.resize(logs.len(), DiskRounds::default());
        self.shares.resize(logs.len(), (0.0, 0.0));
        for (row, log) in self.rows.iter_mut().zip(logs) {
            row.push(log - hour);
        }
        self.rounds += 1;
    }

    /// The worst disk.
    pub(super) fn worst_row(&self) -> Option<&DiskRounds> {
        self.rows.get(self.worst)
    }

    /// Computes the figures of the host from its rounds. `risk` is the error probability of a bound on one disk's
    /// share of slow rounds.
    pub(super) fn judge(&mut self, noise: Noise, tail: f64, risk: f64) {
        let deviation = noise.deviation().unwrap_or(f64::INFINITY);
        let mut changed = false;
        for (row, share) in self.rows.iter_mut().zip(&mut self.shares) {
            if row.judge(deviation) {
                *share = shares::slow_share(row.slow, row.rounds(), risk);
                changed = true;
            }
        }
        if !changed {
            return;
        }
        let (mut figure, mut low, mut high) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for (at, (row, share)) in self.rows.iter().zip(&self.shares).enumerate() {
            let own = row.figure(row.slow as f64 / row.rounds() as f64, tail);
            if own < figure {
                figure = own;
                self.worst = at;
            }
            high = high.min(row.figure(share.0, tail));
            low = low.min(row.figure(share.1, tail));
        }
        (self.figure, self.low, self.high) = (figure, low, high);
        self.calm = self.rows.iter().map(|row| row.calm).min().unwrap_or(0);
        self.variance = self
            .worst_row()
            .map_or(noise.variance, |row| moderated_variance(row, noise));
    }
}

/// Variance of a disk: above the pooled one if the disk's own scatter is larger.
fn moderated_variance(row: &DiskRounds, noise: Noise) -> f64 {
    let own = row.calm.saturating_sub(1) as f64;
    let mixed = (PRIOR_DEGREES_OF_FREEDOM * noise.variance + row.squares)
        / (PRIOR_DEGREES_OF_FREEDOM + own);
    mixed.max(noise.variance)
}
