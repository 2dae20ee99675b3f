//! Replays a trace's I/O on another disk: at the recorded times, by its dependencies, or as fast as possible.
//!
//! A trace is read twice. [`survey`] reads it to find its devices, its length and the parts of the disks that it
//! accesses; [`play`] reads it again on a thread of its own (`second_pass`), which sorts I/Os by arrival, assigns
//! classes (`class`), maps offsets (`map`) and infers dependencies (`depend`). The engine asks `schedule` for the next
//! I/O; `tally` counts completions. Only a bounded number of I/Os is in memory, however long the trace is. The result
//! is a [`record::Replay`], from which [`conclude`] derives findings.

mod answer;
mod args;
mod class;
pub mod conclude;
mod curve;
mod depend;
mod graph;
mod map;
mod options;
mod play;
mod schedule;
mod second_pass;
mod source;
mod stall;
mod survey;
mod tally;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod views;

pub use answer::{
    ClassAnswer, Counts, DeviceAnswer, InFlight, Latencies, PercentileEstimate, ReplayAnswer,
};
pub use options::ReplayOptions;
pub use play::{Disk, PlayError, Played, play};
pub use source::Opener;
pub use survey::{Survey, SurveyedDevice, survey};
