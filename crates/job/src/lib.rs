//! A common runtime for long-running work that survives interruption.
//!
//! A verb defines its unit of work: its parameters, its checkpoint (a [`ledger::LongWork`]: the state that a later
//! start needs, serialized by serde), whether an earlier checkpoint still fits the target, its step, and its report.
//! Everything else is here:
//!
//! | part | what it does |
//! | --- | --- |
//! | [`JobStore`] | the ledger, and this process as an owner of jobs; abandoned jobs |
//! | [`OwnedJob`] | one claimed job; a checkpoint is on the disk when [`OwnedJob::save`] returns |
//! | [`Takeover`] | the owners from whom an unfinished job may be taken |
//! | [`named`] | the job that a word of the user names |
//! | [`start`] | claims the job of a target, lets the verb resume from its last checkpoint, and returns a writer |
//! | [`CheckpointWriter`] | writes checkpoints on a separate thread, at a [`CheckpointInterval`] |
//! | [`SharedJob`] | a job that many threads change, with one commit for many changes |
//! | [`Stop`] | reasons to end early: a signal, or a deadline |
//! | [`RaiseOnDrop`] | flags that are set at the end of a thread |
//! | [`EtaEstimator`] | recent rate, and whether a deadline will be met |
//! | [`ProgressLines`] | one line for each job on the terminal, which never delays the work |
//! | [`Resumable`], [`outcome`] | the hint for the user of an interrupted job, and the exit status |
//!
//! ```text
//! start ── claimed, checkpoint on disk ──> work: step, write a checkpoint that is due, show progress, poll Stop
//!   │                                        │
//!   └ refused: its owner is alive            └ end: finished, suspended (resume hint, status 3) or discarded
//! ```
//!
//! A kill at any moment leaves the last checkpoint, and an owner that is known to have ended. A job whose state must
//! be on the disk before something is changed (`array create`, `sweep`, the repair of `scrub`) uses [`OwnedJob`]
//! directly.

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
