//! Replay of a trace's I/O on another disk: at the recorded times, by its dependencies, or as fast as it goes.
//!
//! A trace is read twice. [`survey`] reads it once to know its devices, its length and the parts of the disks that it
//! touches; [`play`] reads it again on a thread of its own (`feed`), which puts I/Os into the order of their arrival,
//! sorts them into classes (`class`), maps their offsets (`map`) and infers what each waited for (`depend`). The
//! engine's list asks `schedule` for the next I/O; `tally` counts what came back. Of a trace of any length only a
//! bounded number of I/Os is in memory. What came of it is a [`record::Replay`]; [`conclude`] says what it is worth.

pub mod args;
mod class;
pub mod conclude;
mod curve;
mod depend;
mod feed;
mod graph;
mod map;
mod play;
mod schedule;
mod survey;
mod tally;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod views;

pub use play::{Disk, PlayError, Played, play};
pub use survey::{Survey, SurveyedDevice, survey};

use trace::{ReadError, TraceReader};

/// Opens the trace from its start; it is called once for each pass.
pub type Opener<'a> = dyn Fn() -> Result<Box<dyn TraceReader>, ReadError> + Sync + 'a;

/// Time at which an I/O came: to the block layer where that was recorded, since the time of issue is shaped by the
/// disk's own queue, and else its issue.
fn arrival(io: &trace::Io) -> u64 {
    io.queued.unwrap_or(io.issued).min(io.issued).0
}
