//! Errors, as sentences: what happened, to which file, and what to do.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::WorkError;

/// Maximum wait for another process that holds the ledger's lock. The ledger may be on the slow disk that is being
/// measured.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Advice on another path for the ledger: a new folder of this user's own, since others could create a file with a
/// fixed name in a folder that all may write to.
const OTHER_LEDGER_ADVICE: &str = "with --ledger, or for this shell: export DISKSMITH_LEDGER=\"$(mktemp -d -p /var/tmp)/disksmith.db\"";

/// An error of the ledger.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment gives no default path for the ledger.
    #[error(
        "there is no place for the ledger: neither XDG_STATE_HOME nor HOME is set. Name a file {}",
        OTHER_LEDGER_ADVICE
    )]
    NoPlace,
    /// The file or a folder above it could not be created or reached.
    #[error(
        "the ledger {} could not be opened: {source}. Name another file {}",
        path.display(),
        OTHER_LEDGER_ADVICE
    )]
    Unreachable {
        /// The ledger.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a directory, a device or a pipe, not a regular file.
    #[error(
        "{} is not a regular file, so it cannot be the ledger. Name a file with --ledger or \
         DISKSMITH_LEDGER",
        path.display()
    )]
    NotAFile {
        /// Path named as the ledger.
        path: PathBuf,
    },
    /// The file is not an SQLite file.
    #[error(
        "{} is not a ledger, or its beginning is damaged: SQLite does not know it. It was not \
         touched. Move it aside, or name another file with --ledger or DISKSMITH_LEDGER",
        path.display()
    )]
    NotALedger {
        /// The file.
        path: PathBuf,
    },
    /// The file is another program's SQLite file.
    #[error(
        "{} belongs to another program (SQLite application id {application_id:#x}). It was not \
         touched. Name another file with --ledger or DISKSMITH_LEDGER",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// SQLite application id of the file; 0 if it has none.
        application_id: u32,
    },
    /// The ledger was written by a newer version.
    #[error(
        "the ledger {} was written by a newer disksmith (schema {found}; this one knows up to \
         {known}). It was not touched. Use that version, or name another file with --ledger or \
         DISKSMITH_LEDGER",
        path.display()
    )]
    Newer {
        /// The ledger.
        path: PathBuf,
        /// Schema of the ledger.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The ledger was written by an older version, and this process may not upgrade it.
    #[error(
        "the ledger {} was written by an older disksmith and must be brought up to date, but it \
         may not be written here. Open it once as a user who may, or copy it and name the copy \
         with --ledger",
        path.display()
    )]
    Older {
        /// The ledger.
        path: PathBuf,
    },
    /// SQLite finds the file inconsistent.
    #[error(
        "the ledger {} is damaged ({detail}). It was not repaired. Move it aside to begin a new \
         one; `sqlite3 FILE .recover` may rescue runs from the old",
        path.display()
    )]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// A process was killed while writing, and this one may not recover the file.
    #[error(
        "the ledger {} was left in the middle of a write and cannot be recovered from here, since the \
         file or its folder may not be written. Open it once as a user who may write it",
        path.display()
    )]
    Unsettled {
        /// The ledger.
        path: PathBuf,
    },
    /// The file or its folder may not be written.
    #[error(
        "the ledger {} cannot be written: the file or its folder is read-only. Name another file {}",
        path.display(),
        OTHER_LEDGER_ADVICE
    )]
    ReadOnly {
        /// The ledger.
        path: PathBuf,
    },
    /// The ledger is locked by another process.
    #[error(
        "the ledger {} was locked by another process for more than {} s. Try again when that \
         process is done",
        path.display(),
        BUSY_TIMEOUT.as_secs()
    )]
    Busy {
        /// The ledger.
        path: PathBuf,
    },
    /// The ledger's file system has no space left.
    #[error(
        "the ledger {} could not grow: its file system is full, or the size of files is limited \
         (ulimit -f). Make room there, or name another file {}",
        path.display(),
        OTHER_LEDGER_ADVICE
    )]
    Full {
        /// The ledger.
        path: PathBuf,
    },
    /// SQLite can read the ledger but not write it.
    #[error(
        "the ledger {} cannot be written ({detail}). Check whether its disk has errors or is full, and whether the \
         file size is limited (ulimit -f), or name another file with --ledger or DISKSMITH_LEDGER",
        path.display()
    )]
    Unwritable {
        /// The ledger.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// The file was removed, or replaced, while it was open.
    #[error(
        "the ledger {} was removed or replaced by another while it was in use",
        path.display()
    )]
    Gone {
        /// The ledger.
        path: PathBuf,
    },
    /// The ledger does not exist yet.
    #[error(
        "there is no ledger at {} yet. `disksmith bench .` begins it; --ledger FILE names another",
        path.display()
    )]
    Missing {
        /// Place of the ledger.
        path: PathBuf,
    },
    /// A file already exists at the backup's path.
    #[error(
        "{} exists, and a backup replaces nothing. Name a file that does not exist",
        path.display()
    )]
    BackupExists {
        /// The backup.
        path: PathBuf,
    },
    /// A backup could not be written.
    #[error("the backup {} could not be written; name a file elsewhere", path.display())]
    Backup {
        /// The backup.
        path: PathBuf,
        /// The system's error, or SQLite's.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// SQLite reports any other error.
    #[error("the ledger {} could not be used: {source}", path.display())]
    Sqlite {
        /// The ledger.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The id is taken.
    #[error(
        "a run {id} is already in the ledger {}. Remove it first with `disksmith runs remove {id}`",
        path.display()
    )]
    AlreadySaved {
        /// The ledger.
        path: PathBuf,
        /// The run.
        id: String,
    },
    /// The word names no run.
    #[error(
        "no run in the ledger {} answers to '{word}'. An id, the beginning or the end of one, `last` or `last~1` \
         names a run; they are listed by: disksmith runs",
        path.display()
    )]
    NoSuchRun {
        /// The ledger.
        path: PathBuf,
        /// The word that was searched for.
        word: String,
    },
    /// The word names more than one run.
    #[error("'{word}' may be any of {count} runs: {}. Write more of the id", few(candidates, *count))]
    Ambiguous {
        /// The word that was searched for.
        word: String,
        /// Number of runs that it matches.
        count: usize,
        /// The newest of them, newest first.
        candidates: Vec<String>,
    },
    /// The run's document is of a newer form.
    #[error(
        "the run {id} was kept by a newer disksmith (document form {found}; this one knows up to \
         {known}). Use that version to read it; the other runs are not concerned"
    )]
    NewerRun {
        /// The run.
        id: String,
        /// The document's form.
        found: u32,
        /// The newest form that this program knows.
        known: u32,
    },
    /// The run was imported, and a measured one is needed.
    #[error(
        "the run {id} was imported from {tool}: it has totals only, and a run that disksmith \
         measured is needed here"
    )]
    NotMeasured {
        /// The run.
        id: String,
        /// The tool that measured it.
        tool: String,
    },
    /// The run's document or conclusion cannot be read.
    #[error(
        "the run {id} cannot be read: {detail}. The other runs are not concerned; `disksmith runs \
         remove {id}` removes it"
    )]
    UnreadableRun {
        /// The run.
        id: String,
        /// The damage.
        detail: String,
    },
    /// Long work cannot be begun, saved or taken over.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// Another process already records the host.
    #[error(
        "process {pid} has been recording the host {host} in the ledger {} since {began}, and two \
         would keep everything twice. Watch without --record, name another file with \
         --ledger, or end that one: kill {pid}",
        path.display()
    )]
    AlreadyRecording {
        /// The ledger.
        path: PathBuf,
        /// Host that is recorded.
        host: String,
        /// The process that records.
        pid: u32,
        /// Start of the run.
        began: jiff::Timestamp,
    },
    /// The ledger has no recording of this number.
    #[error(
        "there is no recording {number} in the ledger {}. `disksmith runs recordings` lists them",
        path.display()
    )]
    NoSuchRecording {
        /// The ledger.
        path: PathBuf,
        /// Number that was searched for.
        number: i64,
    },
    /// The ledger has no mark of this number.
    #[error("there is no mark {number} in the ledger {}. `disksmith mark --list` lists \
             them", path.display())]
    NoSuchMark {
        /// The ledger.
        path: PathBuf,
        /// Number that was searched for.
        number: i64,
    },
    /// A part of a recording cannot be read.
    #[error(
        "a part of recording {number} in the ledger {}, from {began} on, cannot be read: {detail}. \
         The rest is not concerned",
        path.display()
    )]
    UnreadableRecording {
        /// The ledger.
        path: PathBuf,
        /// The recording.
        number: i64,
        /// Start of the part.
        began: String,
        /// The damage.
        detail: String,
    },
    /// The run could not be read back unchanged.
    #[error(
        "the run {id} was not kept, since it would not come back as it is: {detail}. This is an \
         error in disksmith; please report it"
    )]
    Unfaithful {
        /// The run.
        id: String,
        /// The part, and the reason.
        detail: String,
    },
}

/// The candidates, separated by commas, and the number of further ones.
fn few(candidates: &[String], count: usize) -> String {
    let named = candidates.join(", ");
    match count.saturating_sub(candidates.len()) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

impl Error {
    /// True if the ledger itself is sound, but its file system cannot be written, now or at all: the caller may do its
    /// work without saving it.
    pub fn is_of_place(&self) -> bool {
        match self {
            Error::Full { .. }
            | Error::ReadOnly { .. }
            | Error::Unsettled { .. }
            | Error::Unwritable { .. }
            | Error::Gone { .. } => true,
            Error::Unreachable { source, .. } => matches!(
                source.kind(),
                ErrorKind::StorageFull
                    | ErrorKind::QuotaExceeded
                    | ErrorKind::FileTooLarge
                    | ErrorKind::ReadOnlyFilesystem
            ),
            Error::Sqlite {
                source: rusqlite::Error::SqliteFailure(failure, _),
                ..
            } => matches!(
                failure.code,
                ErrorCode::SystemIoFailure | ErrorCode::CannotOpen
            ),
            _ => false,
        }
    }

    /// Error of the ledger at `path` for an `error` of SQLite.
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Error {
        let path = path.to_owned();
        let code = match &error {
            // The file system has no space for the WAL's shared memory.
            rusqlite::Error::SqliteFailure(failure, _)
                if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE =>
            {
                ErrorCode::DiskFull
            }
            rusqlite::Error::SqliteFailure(failure, _) => failure.code,
            // A value that this program does not write there.
            error if is_misread(error) => ErrorCode::DatabaseCorrupt,
            _ => {
                return Error::Sqlite {
                    path,
                    source: error,
                };
            }
        };
        match code {
            ErrorCode::NotADatabase => Error::NotALedger { path },
            ErrorCode::DatabaseCorrupt => Error::Damaged {
                path,
                detail: error.to_string(),
            },
            ErrorCode::ReadOnly => Error::ReadOnly { path },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy { path },
            ErrorCode::DiskFull => Error::Full { path },
            _ => Error::Sqlite {
                path,
                source: error,
            },
        }
    }
}

/// True if a column holds a value that this program does not write there.
pub(crate) fn is_misread(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_names_the_file_and_says_what_to_do() {
        let path = PathBuf::from("/x/ledger.db");
        let busy = Error::Busy { path: path.clone() }.to_string();
        assert!(
            busy.contains("/x/ledger.db") && busy.contains("30 s"),
            "{busy}"
        );
        let foreign = Error::Foreign {
            path,
            application_id: 0x1234,
        }
        .to_string();
        assert!(
            foreign.contains("0x1234") && foreign.contains("--ledger"),
            "{foreign}"
        );
    }

    #[test]
    fn an_ambiguous_word_shows_a_few_candidates_and_counts_the_rest() {
        let error = Error::Ambiguous {
            word: "2026".into(),
            count: 12,
            candidates: vec!["20261121-204512-k7q2".into(), "20261120-204512-bcdf".into()],
        };
        assert_eq!(
            error.to_string(),
            "'2026' may be any of 12 runs: 20261121-204512-k7q2, 20261120-204512-bcdf and 10 \
             more. Write more of the id"
        );
    }
}
