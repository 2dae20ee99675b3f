//! Errors of long work in the ledger.

use crate::Owner;

/// Reason why work cannot be begun, saved or taken over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// A running process owns the work.
    #[error(
        "the {kind} {key} is being worked on by process {} since {began}. Wait for it and try again, or end it first: kill {}",
        owner.pid,
        owner.pid
    )]
    UnderWay {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// Owner of the work.
        owner: Box<Owner>,
        /// Start of the work.
        began: jiff::Timestamp,
    },
    /// A process that cannot be seen from here owns the work; it may have ended.
    #[error(
        "the {kind} {key} was begun by process {} on the host {}, in another machine or container \
         than this: it is unknown here whether it is still running. Continue there",
        owner.pid,
        owner.host
    )]
    Elsewhere {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// Owner of the work.
        owner: Box<Owner>,
    },
    /// The process that had begun the work ended before the work was finished.
    #[error(
        "the {kind} {key} was begun on {began} by process {}, which ended before it was finished. \
         Resume it, or remove its record",
        owner.pid
    )]
    LeftUnfinished {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// Owner of the work.
        owner: Box<Owner>,
        /// Start of the work.
        began: jiff::Timestamp,
    },
    /// The work is finished, so there is nothing to take over.
    #[error("the {kind} {key} is finished: there is nothing to resume")]
    Finished {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
    },
    /// The ledger has no such work.
    #[error("the ledger holds no {kind} {key}; it may have been removed meanwhile")]
    Unknown {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
    },
    /// The work was removed, finished or taken over by another process.
    #[error(
        "the {kind} {key} is no longer this process's: it was removed from the ledger, or another \
         process has taken it over. Its checkpoints cannot be written any more"
    )]
    Lost {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
    },
    /// The document of the work is of a newer form.
    #[error(
        "the {kind} {key} was kept by a newer disksmith (document form {found}; this one knows up \
         to {known}). Use that version to continue it"
    )]
    Newer {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// The document's form.
        found: u32,
        /// The newest form that this program knows.
        known: u32,
    },
    /// The document of the work cannot be read.
    #[error("the ledger's record of the {kind} {key} cannot be read: {detail}")]
    Unreadable {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// The damage.
        detail: String,
    },
    /// The document could not be read back unchanged.
    #[error(
        "the {kind} {key} was not kept, since it would not come back as it is: {detail}. This is \
         an error in disksmith; please report it"
    )]
    Unfaithful {
        /// Kind of work.
        kind: String,
        /// Target of the work.
        key: String,
        /// The reason.
        detail: String,
    },
}
