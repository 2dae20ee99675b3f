//! Makes I/O and times it: a workload goes in, a phase with histograms and windows comes out.
//!
//! This crate knows no device, suite or output. It is given open files and says how long their
//! answers took. The parts, in the order in which data flows through them:
//!
//! - [`Job`]: what to do;
//! - `places`, `random`, `arrivals`: where and when the next request goes;
//! - `worker`: the loop that keeps requests in flight and times them, over a `Backend`;
//! - `uring` and `threads`: the two ways to the kernel;
//! - `tally`: what a worker counts, window by window;
//! - `gather`: joins the workers' windows, shows them to the [`Observer`] and ends the phase.

mod arrivals;
mod buffers;
mod clock;
mod gather;
mod job;
mod places;
mod random;
pub mod scripted;
#[cfg(test)]
mod simulated;
mod tally;
mod threads;
mod uring;
mod worker;

pub use clock::Clock;
pub use gather::Disks;
pub use job::{Choice, Control, Engine, EngineError, Job, Observer};
