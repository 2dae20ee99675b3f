//! Views of a sweep as text and as JSON, and the parts that its page shares with them. What was measured
//! comes as a [`SweepRecord`](crate::SweepRecord), what was concluded as a [`Decided`](crate::Decided);
//! nothing is concluded here.

pub(crate) mod json;
#[cfg(test)]
pub(super) mod sample;
pub(crate) mod sentences;
pub(crate) mod text;
pub(super) mod units;
