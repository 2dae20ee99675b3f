//! Cold parts of a volume, the cost of their first read, and a forecast of the time to warm it.
//!
//! A volume that was restored from a snapshot fetches each block from object storage at its first read: that read
//! takes tens of milliseconds, later ones about one (AWS, *Initialize Amazon EBS volumes*). Therefore a few hundred
//! random positions are read, each at the same moment as a position that was read before. If both are warm, both
//! latencies are drawn from the same distribution, whatever that is, and chance decides which read is slower; if the
//! position is cold, its first read has a penalty. All conclusions rest on this exchangeability: a busy disk, on which
//! the warm read is slow too, or a host that pauses now and then, costs precision but not correctness.
//!
//! | part | question |
//! | --- | --- |
//! | [`sample`] | how much is cold, and what does a first read cost? |
//! | [`stream`] | was the read just now cold? |
//! | [`forecast`] | how long will it take to read all? |

pub mod forecast;
mod proportion;
pub mod sample;
pub mod stream;

pub use proportion::Proportion;
