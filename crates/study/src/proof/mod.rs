//! Share of right decisions of the rules, on simulated series with known parameters.
//!
//! The plain tests use few trials and allow for the binomial error; those marked as long proofs print the tables.

mod burnins;
mod cold;
mod depths;
mod findings;
mod means;
mod paces;
mod plateaus;
mod races;
mod warmups;
mod watch;

use crate::simulate::{Rng, StationaryProcess};

/// Lengths of series to prove on, in slices.
const LENGTHS: [usize; 6] = [30, 50, 80, 200, 600, 3000];
/// Trials for the tables.
const LONG: usize = 2000;

/// The share of `trials` that come out true.
pub(crate) fn share(trials: usize, seed: u64, mut trial: impl FnMut(&mut Rng) -> bool) -> f64 {
    let mut rng = Rng::new(seed);
    (0..trials).filter(|_| trial(&mut rng)).count() as f64 / trials as f64
}

/// Three standard errors of a share near `p`.
pub(crate) fn error(p: f64, trials: usize) -> f64 {
    3.0 * (p * (1.0 - p) / trials as f64).sqrt()
}

/// True if the regimes are at least a third as long as the series, which no method can handle.
fn hopeless(process: StationaryProcess, slices: usize) -> bool {
    matches!(process, StationaryProcess::Regimes { .. }) && slices < 80
}
