//! Minimum distance at which one of two hosts is significantly better, valid in every round of a race.

use super::entrant::RacedHost;
use super::noise::Noise;
use super::rule::Rule;
use crate::distribution::{student_quantile, student_tail};

/// Number of degrees of freedom from which Student's t is treated as normal.
const NORMAL_DEGREES_OF_FREEDOM: f64 = 10_000.0;
/// Logarithm of the round at which the mixture bound is tightest, chosen so that its deviate changes little from 2 to
/// 200 rounds.
const MIXTURE_ROUND: f64 = 0.5;

/// Number of rounds in which a host must be measured before it is kept, so that a host that is slow in
/// [`Rule::unseen`] of the rounds would have shown it, with the quarter of the risk for this.
pub(super) fn proof_rounds(rule: &Rule, groups: usize) -> usize {
    let kept = (rule.keep * groups).max(1) as f64;
    let rounds = (0.25 * rule.risk / kept).ln() / (-rule.unseen).ln_1p();
    if rounds.is_finite() {
        // Not more than the rounds of a race.
        (rounds.ceil().max(0.0) as usize).min(rule.rounds)
    } else {
        0
    }
}

/// Error probability for one disk, out of the quarter of the risk for the shares of slow rounds.
pub(super) fn slow_risk(rule: &Rule, rows: usize) -> f64 {
    0.25 * rule.risk / rows.max(1) as f64
}

/// The bounds of the differences of levels.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Error probability for each pair.
    risk: f64,
    degrees: f64,
    /// The deviates by number of rounds, computed when first used.
    deviates: Vec<Option<f64>>,
}

impl Bounds {
    /// The bounds for groups of these sizes with at most `disks` disks per host.
    pub(super) fn new(
        rule: &Rule,
        sizes: impl Iterator<Item = usize>,
        disks: usize,
        noise: Noise,
    ) -> Bounds {
        let pairs = |size: usize| rule.keep.min(size) * size.saturating_sub(rule.keep);
        let pairs = sizes.map(pairs).sum::<usize>().max(1) * disks.max(1);
        Bounds {
            risk: 0.5 * rule.risk / pairs as f64,
            degrees: noise.degrees,
            deviates: Vec::new(),
        }
    }

    /// Number of standard errors of a mean of `rounds` rounds that contain the true value, except for the risk.
    fn deviate(&mut self, rounds: usize) -> f64 {
        if self.deviates.len() <= rounds {
            self.deviates.resize(rounds + 1, None);
        }
        if let Some(known) = self.deviates[rounds] {
            return known;
        }
        let count = rounds as f64;
        let log = ((count + MIXTURE_ROUND) / MIXTURE_ROUND).ln() - 2.0 * self.risk.ln();
        let normal = ((count + MIXTURE_ROUND) / count * log).sqrt();
        let deviate = if self.degrees >= NORMAL_DEGREES_OF_FREEDOM {
            normal
        } else {
            // The same probability with an estimated noise.
            student_quantile(
                student_tail(normal, NORMAL_DEGREES_OF_FREEDOM),
                self.degrees,
            )
        };
        self.deviates[rounds] = Some(deviate);
        deviate
    }

    /// Maximum error of the difference between the levels of two hosts.
    pub(super) fn radius(&mut self, a: &RacedHost, b: &RacedHost) -> f64 {
        let shared = a.calm.min(b.calm);
        if shared == 0 || self.degrees < 1.0 {
            return f64::INFINITY;
        }
        self.deviate(shared) * ((a.variance + b.variance) / shared as f64).sqrt()
    }

    /// Maximum error of the level of one host.
    pub(super) fn radius_of_one(&mut self, host: &RacedHost) -> f64 {
        if host.calm == 0 || self.degrees < 1.0 {
            return f64::INFINITY;
        }
        self.deviate(host.calm) * (host.variance / host.calm as f64).sqrt()
    }
}
