//! Which parts of a volume are cold, what their first read costs, and how long warming will take.
//!
//! A volume that was restored from a snapshot fetches each block from object storage when it is
//! first read: that read takes tens of milliseconds, later ones about one (AWS, *Initialize Amazon
//! EBS volumes*). So a few hundred random places are read twice. In a warm place both reads are
//! drawn from the same distribution, whatever that is, and only chance says which is slower; in a
//! cold one the first carries a penalty. All that is concluded here rests on this exchangeability,
//! so that a busy disk, on which the second read is slow too, costs precision and not truth.
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
