//! Cold parts of a volume, the cost of their first read, and the time that warming will take.
//!
//! A volume that was restored from a snapshot fetches each block from object storage when it is first read: that read
//! takes tens of milliseconds, later ones about one (AWS, *Initialize Amazon EBS volumes*). So a few hundred random
//! places are read, and in the same moment as each of them one that was read before. Where both are warm, both reads
//! are drawn from the same distribution, whatever that is, and only chance decides which is slower; where the place
//! is cold, its first read has a penalty. All conclusions rest on this exchangeability, so that a busy disk, on which
//! the warm read is slow too, costs precision and not truth, and so does a host that stands still now and then.
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
