//! The engine: issues the I/O of a workload and times it, and returns a phase with histograms and windows.
//!
//! This crate is independent of devices, suites and outputs: it takes open files and measures the latencies of
//! requests. The modules, in the order of the data flow:
//!
//! - [`Job`]: the phase to run;
//! - `positions`, `sizes`, `random`, `arrivals`, `budget`: offset, size and due time of the next request;
//! - `worker`: the loop that keeps requests in flight and times them, over a `backend`, by its `plan`;
//! - `failures`: failed requests;
//! - `uring` (over a `ring`) and `threads`: the two interfaces to the kernel;
//! - `throttle` (`think_pause`, `flow`, `depth_search`): limits on issuing, below the depth;
//! - `contents`, `verify`: the data of writes, and its verification;
//! - `tally`: a worker's counts, window by window;
//! - `gather`: joins the workers' windows and passes them to the [`Observer`], which may end the phase;
//! - `start`: common start of jobs that run at the same time;
//! - `disks`: the engine of real I/O, which joins these.
//!
//! I/O without a workload: [`list`], a list of requests, each issued once, and [`calls`], a fixed amount of work by
//! blocking calls of the caller.

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
mod phase_state;
mod plan;
mod positions;
mod random;
mod ring;
pub mod scripted;
#[cfg(test)]
mod simulated;
mod sizes;
mod start;
mod start_barrier;
mod tally;
mod think_pause;
mod thread_settings;
mod threads;
mod throttle;
mod uring;
mod verify;
mod worker;

pub use clock::Clock;
pub use disks::DiskEngine;
pub use heartbeat::{Heartbeat, Pause};
pub use job::{Control, Engine, EngineError, IoInterface, Job, Observer};
pub use random::derive_seed;
pub use start::StartGroup;
