//! Worth of a replay's figures: intervals of percentiles, detection of a recording that was held back by its
//! own disk's limit, and of a replay that was answered from a warmer cache.

pub mod cap;
pub mod percentile;
#[cfg(test)]
mod proof;
pub mod warmth;
