//! How a sweep is shown: as text, as JSON, and as a page that opens offline. What was measured
//! comes as a [`SweepRecord`](crate::sweep::SweepRecord), what was concluded as a
//! [`Decided`](crate::sweep::Decided); nothing is concluded here.

pub(crate) mod json;
//pub(crate) mod page;
#[cfg(test)]
mod sample;
mod sentences;
pub(crate) mod text;
mod units;
