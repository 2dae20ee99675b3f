//! Makes I/O and times it: a workload goes in, a phase with histograms and windows comes out.
//!
//! This crate knows no device, suite or output. It is given open files and says how long their
//! answers took. The parts, in the order in which data flows through them:
//!
//! - [`Job`]: what to do;
//! - `places`, `sizes`, `random`, `arrivals`, `budget`: where and when the next request goes, how
//!   large it is, and whether there is one;
//! - `worker`: the loop that keeps requests in flight and times them, over a `backend`, as its
//!   `plan` says;
//! - `failures`: requests that fail and do not end the phase;
//! - `uring` (over a `ring`) and `threads`: the two ways to the kernel;
//! - `restraint` (`thinking`, `flow`, `depth_search`): why nothing is issued although there could be;
//! - `contents`, `verify`: the data of writes, and whether it is what is read;
//! - `tally`: what a worker counts, window by window;
//! - `gather`: joins the workers' windows and shows them to the [`Observer`], who may end the phase;
//! - `start`: lets jobs that run at the same time begin together;
//! - `disks`: puts these together to the engine that makes real I/O.
//!
//! Next to workloads there are two more ways to make I/O: [`list`], given requests, each made once, and
//! [`calls`], a given work by blocking calls of the caller's own.

mod arrivals;
mod backend;
mod budget;
mod buffers;
pub mod calls;
mod clock;
mod contents;
mod depth_search;
mod discard;
mod disks;
mod failures;
mod flow;
mod gather;
mod heartbeat;
mod job;
pub mod list;
mod places;
mod plan;
mod random;
mod restraint;
mod ring;
pub mod scripted;
#[cfg(test)]
mod simulated;
mod sizes;
mod start;
mod start_barrier;
mod tally;
mod thinking;
mod thread_settings;
mod threads;
mod together;
mod uring;
mod verify;
mod worker;

pub use clock::Clock;
pub use disks::Disks;
pub use heartbeat::{Heartbeat, Pause};
pub use job::{Choice, Control, Engine, EngineError, Job, Observer};
pub use random::part_of_seed;
pub use start::Start;
