//! Random choices that vary from play to play.

use std::hash::{BuildHasher as _, RandomState};

use record::random::SplitMix64;

/// Numbers that repeat from their seed, so that a table can be repeated.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// A seed that nobody chose.
    pub(crate) fn any() -> u64 {
        RandomState::new().hash_one(0) >> 32
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.bits() % (most - least + 1)
    }

    /// One of some.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.between(0, of.len() as u64 - 1) as usize]
    }

    /// A number between 0 and 1, neither included.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
}
