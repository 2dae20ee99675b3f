//! Validity of a replay's figures: intervals of percentiles, detection of a recording that was limited by its disk,
//! and of a replay with a warmer cache.

pub mod cap;
pub mod percentile;
#[cfg(test)]
mod proof;
pub mod warmth;
