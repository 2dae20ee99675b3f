//! The ledger: the SQLite file with runs, recordings, and the state of long work.
//!
//! # Contents and form
//!
//! A run has three rows. `runs` holds the columns of a list, so that listing thousands of runs opens no document.
//! `documents` holds all measurements, as JSON ([`record::Run`]). `conclusions` holds the verdict and the findings,
//! with the version of the program that concluded; so an old run can be studied again with a better rule, and its
//! measurements stay as they were.
//!
//! A run that was imported from another tool's output is stored likewise; its document is a
//! [`record::ImportedRun`].
//!
//! The document is compressed (zlib, by miniz_oxide at level 6). A run of the suite `database` is
//! about 110 kB of JSON, most of it histograms in base64, and shrinks to a third of that in 5 ms,
//! once a minute. Measured on its windows: miniz_oxide 31 % of the JSON, zstd 32 % at its default
//! and 28 % at its slowest, LZ4 49 %. A second C library is not worth the difference; and zlib's
//! checksum detects a damaged document.
//!
//! Long work, such as building an array or a sweep, has one row in `work`, with the state that its repair or its
//! resumption needs ([`LongWork`]), and its owner ([`Owner`]).
//!
//! Data of `watch` is kept in recordings ([`Recording`]): samples in blocks, thinned out as they
//! grow old ([`Retention`]), events, and marks that users set ([`Mark`]).
//!
//! # Two processes at once
//!
//! Every change is one immediate transaction, and a process that finds the file locked waits up to [`BUSY_TIMEOUT`].
//! The file is in WAL mode where that works, so that readers and a writer do not wait for each other, and in rollback
//! mode on network file systems, where WAL's shared memory does not reach the other host. With `synchronous=FULL`, a
//! run that was reported as saved survives a power cut.
//!
//! # Files that are not a ledger
//!
//! Opening first examines the file, without locks and without side files (`immutable=1`). A file that is not SQLite,
//! that is damaged, or that belongs to another program or to a newer version of this one, is refused with an error
//! message and not changed. An empty file becomes a ledger, because a ledger that another process is just creating is
//! empty too.

mod columns;
mod document;
mod error;
mod find;
mod open;
mod owner;
mod place;
mod probe;
mod recording;
mod report;
mod runs;
mod schema;
mod upkeep;
mod work;
mod work_error;
mod writable;

#[cfg(test)]
mod processes;
#[cfg(test)]
mod room;
#[cfg(test)]
mod testing;

pub use document::StoredRun;
pub use error::{BUSY_TIMEOUT, Error};
pub use open::Ledger;
pub use owner::{Owner, OwnerLiveness};
pub use place::default_path;
pub use recording::{
    MAX_RELATIVE_ERROR, Mark, MarkReader, RecordedEvent, RecordedSpan, Recording, RecordingSummary,
    ReplayedSample, Retention, Thinner, thin,
};
pub use runs::{Filter, RunConclusion, RunSummary};
pub use upkeep::{Compacted, Examination};
pub use work::{Claim, LongWork, StoredWork, WorkSummary};
pub use work_error::WorkError;

/// Result of the ledger's functions.
pub type Result<T> = std::result::Result<T, Error>;
