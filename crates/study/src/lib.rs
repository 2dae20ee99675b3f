//! Statistics that decide: numbers in, verdicts out.
//!
//! The engine counts completed operations in slices of 100 ms. Such counts are not independent:
//! a disk that was slow a moment ago is likely to be slow still. Every function here takes that
//! into account, refuses (with `None`) where the data cannot answer, and never panics. Nothing
//! here reads a file or a clock, so an old run can be studied again with a better rule.
//!
//! | module | question |
//! | --- | --- |
//! | [`interval`] | where is the true mean? |
//! | [`stop`] | is the interval narrow enough to stop measuring? |
//! | [`steady`] | was there one level, and when did it begin? |
//! | [`level`] | was there a level, and then a lower one? |
//! | [`alternation`] | does it go back and forth between two levels? |
//! | [`foreign`] | how much does I/O of others weigh against a figure? |
//! | [`plateau`] | is the throughput too flat to be the disk's own? |
//! | [`compare`] | is one run faster than another? |
//! | [`small_samples`] | where are the true means of things measured a few times each? |
//! | [`race`] | which layouts are worse beyond doubt, and which is the best? |
//! | [`effects`] | what does one setting do instead of another? |
//! | [`scaling`] | how does the rate grow with the members? |
//! | [`cold`] | which parts of a volume are cold, and how long does warming take? |
//! | [`depth`] | how many requests in flight fill the cap and no more? |
//! | [`pace`] | how much background I/O does a foreground leave room for? |
//! | [`burnin`] | which of many hosts are the best, and which need not be measured on? |
//! | [`supply`] | how many must be started so that enough good ones come? |
//! | [`replay`] | what are the figures of a replay worth? |
//! | [`zones`] | does throughput hold across a disk? |
//! | [`curve`] | how many requests a second keep a latency target? |
//! | [`median`] | what is in the middle? |
//! | [`outlying`] | which of many alike are not like the others? |
//! | [`shift`] | is a series at another level after a moment than before? |
//! | [`change_points`] | when did a series change? |
//! | [`drift`] | how far did the machine drift while all was measured? |
//! | [`verdict`] | response times changed: code, load, or the system below? |
//! | [`watch`] | what is wrong with the disks of a host, from moment to moment? |

pub mod alternation;
pub mod burnin;
pub mod change_points;
pub mod cold;
pub mod compare;
pub mod curve;
pub mod depth;
mod distribution;
pub mod drift;
pub mod effects;
mod energy;
pub mod foreign;
pub mod interval;
pub mod level;
pub mod median;
mod noise;
pub mod outlying;
pub mod pace;
pub mod small_samples;

pub mod plateau;
#[cfg(test)]
mod proof;
pub mod race;
pub mod replay;
mod residual;
pub mod scaling;
pub mod shift;
#[cfg(test)]
mod simulate;
pub mod steady;
pub mod stop;
pub mod supply;
pub mod verdict;
pub mod watch;
pub mod zones;
