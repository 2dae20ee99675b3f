//! Replay of a trace's I/O on another disk: at the recorded times, by its dependencies, or as fast as it goes.
//!
//! A trace is read twice. [`survey`] reads it once to know its devices, its length and the parts of the disks that it
//! touches; [`play`] reads it again on a thread of its own (`second_pass`), which puts I/Os into the order of their
//! arrival, sorts them into classes (`class`), maps their offsets (`map`) and infers what each waited for (`depend`).
//! The engine's list asks `schedule` for the next I/O; `tally` counts what came back. Of a trace of any length only a
//! bounded number of I/Os is in memory. Its result is a [`record::Replay`], which [`conclude`] judges.

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
