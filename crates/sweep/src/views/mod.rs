//! Views of a sweep as text and as JSON, and the parts that its page shares with them. They show the measurements of
//! a [`SweepRecord`](crate::SweepRecord) and the conclusions of a [`SweepDecision`](crate::SweepDecision).

pub(crate) mod json;
#[cfg(test)]
pub(super) mod sample;
pub(crate) mod sentences;
pub(crate) mod text;
pub(super) mod units;
