//! What a replay's figures are worth: intervals of percentiles, whether the recording was held back by its own
//! disk's limit, and whether the replay was answered from a warmer cache.

pub mod cap;
pub mod percentile;
#[cfg(test)]
mod proof;
pub mod warmth;
