//! One runtime for long-running work that survives interruption.
//!
//! A verb defines its unit of work: its parameters, its checkpoint (a [`ledger::LongWork`]: the state that a later
//! start needs, as serde writes it), whether an earlier checkpoint still fits the target, its step, and its report.
//! All else is here:
//!
//! | part | what it does |
//! | --- | --- |
//! | [`JobStore`] | the ledger, and this process among the owners of jobs; the jobs that owners have abandoned |
//! | [`OwnedJob`] | one claimed job. A checkpoint that [`OwnedJob::save`] took is on the disk when it returns |
//! | [`Takeover`] | the owners from whom an unfinished job may be taken |
//! | [`named`] | the job that a user means by a word |
//! | [`start`] | claims the job of a target, lets the verb resume from what the ledger holds of it, and gives a writer |
//! | [`CheckpointWriter`] | writes checkpoints on a thread of its own, as often as an [`CheckpointInterval`] says |
//! | [`SharedJob`] | a job that many threads change, with one commit for many changes |
//! | [`Stop`] | why to end early: a signal, or a deadline |
//! | [`RaiseOnDrop`] | flags for those who wait for the end of a thread |
//! | [`EtaEstimator`] | recent rate, and whether a deadline can be kept |
//! | [`ProgressLines`] | one line a job on the terminal, which never holds up the work |
//! | [`Resumable`], [`outcome`] | the hint for the user of a job that was stopped, and the exit status |
//!
//! ```text
//! start ── claimed, checkpoint on disk ──> work: step, write a checkpoint that is due, show progress, look at Stop
//!   │                                        │
//!   └ refused: its owner is alive            └ end: finished, suspended (resume hint, status 3) or discarded
//! ```
//!
//! A kill at any moment leaves the last checkpoint, and an owner that is seen to be dead. A job whose state has to
//! be on the disk before something is changed (`array create`, `sweep`, the repair of `scrub`) uses [`OwnedJob`]
//! itself.

mod checkpoint;
mod concurrent;
mod eta;
mod interval;
mod named;
mod outcome;
pub mod process;
mod progress;
mod shared;
mod start;
mod stop;
mod store;

pub use checkpoint::{CheckpointWriter, EndState};
pub use concurrent::{each_on_a_thread, joined};
pub use eta::{EtaEstimator, is_late};
pub use interval::{CheckpointInterval, Turns};
pub use named::{LAST_JOB_WORD, named};
pub use outcome::{Resumable, outcome};
pub use process::ProcessIdentity;
pub use progress::{Progress, ProgressLine, ProgressLines};
pub use shared::{CheckpointExtra, SharedJob};
pub use start::{JobRequest, Previous, Started, start};
pub use stop::{RaiseOnDrop, Stop, StopCause};
pub use store::{JobStore, OwnedJob, Takeover};
