//! Distance of two hosts from which one is better beyond doubt, in every round together.

use super::entrant::RacedHost;
use super::noise::Noise;
use super::rule::Rule;
use crate::distribution::{student_quantile, student_tail};

/// Degrees of freedom from which Student's t is taken for normal.
const NORMAL_DEGREES_OF_FREEDOM: f64 = 10_000.0;
/// Round at which the mixture is tightest, before its logarithm: chosen so that its deviate changes little
/// from 2 to 200 rounds.
const MIXTURE_ROUND: f64 = 0.5;

/// Number of rounds in which a host must have been measured to be kept, so that a slowness in [`Rule::unseen`] of the
/// rounds showed in all that are kept, with all but a quarter of the risk.
pub(super) fn proof_rounds(rule: &Rule, groups: usize) -> usize {
    let kept = (rule.keep * groups).max(1) as f64;
    let rounds = (0.25 * rule.risk / kept).ln() / (-rule.unseen).ln_1p();
    if rounds.is_finite() {
        // No race is longer than its rounds.
        (rounds.ceil().max(0.0) as usize).min(rule.rounds)
    } else {
        0
    }
}

/// Risk of one disk, out of the quarter of the risk that is for the shares of slow rounds.
pub(super) fn slow_risk(rule: &Rule, rows: usize) -> f64 {
    0.25 * rule.risk / rows.max(1) as f64
}

/// The bounds of the differences of levels.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Risk of each pair.
    risk: f64,
    degrees: f64,
    /// The deviates by the number of rounds, once they were needed.
    deviates: Vec<Option<f64>>,
}

impl Bounds {
    /// The bounds for groups of these sizes and at most so many disks a host.
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

    /// Number of standard errors of a mean of that many rounds within which the truth lies, with all but the risk.
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
            // The same chance with the noise only estimated.
            student_quantile(
                student_tail(normal, NORMAL_DEGREES_OF_FREEDOM),
                self.degrees,
            )
        };
        self.deviates[rounds] = Some(deviate);
        deviate
    }

    /// Largest error of the difference of the levels of two hosts.
    pub(super) fn radius(&mut self, a: &RacedHost, b: &RacedHost) -> f64 {
        let shared = a.calm.min(b.calm);
        if shared == 0 || self.degrees < 1.0 {
            return f64::INFINITY;
        }
        self.deviate(shared) * ((a.variance + b.variance) / shared as f64).sqrt()
    }

    /// Largest error of the level of one host.
    pub(super) fn radius_of_one(&mut self, host: &RacedHost) -> f64 {
        if host.calm == 0 || self.degrees < 1.0 {
            return f64::INFINITY;
        }
        self.deviate(host.calm) * (host.variance / host.calm as f64).sqrt()
    }
}
