//! Bounds of the share of slow rounds.

use crate::distribution::incomplete_beta;

/// Confidence bounds of the true share if `slow` of `rounds` rounds were slow; all rounds' bounds hold together with
/// probability 1 - `risk` (Clopper and Pearson 1934, in each round with its part of the risk). Zero if none was slow:
/// slowness that did not show is the subject of [`super::bounds::proof_rounds`].
pub(super) fn slow_share(slow: usize, rounds: usize, risk: f64) -> (f64, f64) {
    if slow == 0 {
        return (0.0, 0.0);
    }
    let (hits, all) = (slow as f64, rounds as f64);
    // The sum over all rounds of 1 / (n (n + 1)) is one; each side gets half.
    let part = 0.5 * risk / (all * (all + 1.0));
    let low = solve(|share| incomplete_beta(hits, all - hits + 1.0, share) < part);
    let high = if slow >= rounds {
        1.0
    } else {
        solve(|share| 1.0 - incomplete_beta(hits + 1.0, all - hits, share) > part)
    };
    (low, high)
}

/// Value between zero and one at which `below` turns from true to false.
fn solve(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Forty bisections give more precision than needed.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
