//! Statistics that decide: numbers in, conclusions out.
//!
//! The engine counts completed operations in slices of 100 ms. Such counts are autocorrelated: a disk that was slow a
//! moment ago is likely to be slow still. Every function here takes that into account, returns `None` if the data are
//! not sufficient, and never panics. Nothing here reads a file or a clock, so an old run can be studied again with a
//! better rule.
//!
//! | module | question |
//! | --- | --- |
//! | [`interval`] | where is the true mean? |
//! | [`stop`] | is the interval narrow enough to stop measuring? |
//! | [`steady`] | was there one level, and when did it begin? |
//! | [`level`] | was a level followed by a lower one? |
//! | [`alternation`] | does it go back and forth between two levels? |
//! | [`foreign`] | how much does foreign I/O affect a figure? |
//! | [`plateau`] | is the throughput too flat to be the disk's own? |
//! | [`compare`] | is one run faster than another? |
//! | [`small_samples`] | what are the true means of things measured a few times each? |
//! | [`race`] | which layouts are significantly worse, and which is the best? |
//! | [`effects`] | what is the effect of one setting compared with another? |
//! | [`scaling`] | how does the rate grow with the members? |
//! | [`cold`] | which parts of a volume are cold, and how long does warming take? |
//! | [`depth`] | what is the smallest number of requests in flight that reaches the cap? |
//! | [`pace`] | how much background I/O does a foreground leave room for? |
//! | [`burnin`] | which of many hosts are the best, and which need no further measurements? |
//! | [`supply`] | how many hosts must be started to get enough good ones? |
//! | [`replay`] | what are the figures of a replay worth? |
//! | [`zones`] | does throughput hold across a disk? |
//! | [`curve`] | how many requests a second keep a latency target? |
//! | [`median`] | what is the middle value? |
//! | [`outlying`] | which of many similar values are outliers? |
//! | [`shift`] | did the level of a series change at a moment? |
//! | [`change_points`] | when did a series change? |
//! | [`drift`] | how far did the machine drift during the measurements? |
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
