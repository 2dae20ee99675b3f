//! Opens the ledger.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::place::{create, may_read, may_write, shares_memory};
use crate::probe::{FileState, belongs, check, check_all, immutable, probe};
use crate::schema::{Header, MIGRATIONS, migrate};
use crate::{BUSY_TIMEOUT, Error, Result};

/// An open ledger. It may be sent to another thread; threads that write at once each open their
/// own.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    /// Reason why the ledger can only be read; `None` if it can be written.
    pub(crate) unwritable: Option<Unwritable>,
    /// Identity of the open file; the path may name another file later.
    file: FileId,
    /// True once all parts that a write may touch were checked and found sound.
    pub(crate) is_checked: Cell<bool>,
}

/// Reason why a ledger that can be read cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwritable {
    /// The file, its folder or the file system may only be read.
    ReadOnly,
    /// The file system is full: it has no space even for SQLite's side files.
    Full,
    /// SQLite failed with this message.
    Failed(String),
}

impl Unwritable {
    /// The error for an attempt to change the ledger.
    pub(crate) fn error(&self, path: &Path) -> Error {
        let path = path.to_owned();
        match self {
            Unwritable::ReadOnly => Error::ReadOnly { path },
            Unwritable::Full => Error::Full { path },
            Unwritable::Failed(detail) => Error::Unwritable {
                path,
                detail: detail.clone(),
            },
        }
    }
}

/// A file of this host: device and inode.
type FileId = (u64, u64);

fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|facts| (facts.dev(), facts.ino()))
}

impl Ledger {
    /// Opens the ledger at `path`. A missing file, and missing folders above it, are created for this user alone. If
    /// the ledger may not be written, or its file system is full or fails, it is opened for reading only.
    ///
    /// # Errors
    /// When the file cannot be created or reached, is not a ledger, belongs to another program or
    /// to a newer version of this one, or is damaged. The file is not changed then.
    pub fn open(path: impl AsRef<Path>) -> Result<Ledger> {
        Ledger::open_with(path.as_ref(), MIGRATIONS)
    }

    /// As [`Ledger::open`], with a list of schema migrations that tests can extend.
    pub(crate) fn open_with(path: &Path, migrations: &[&str]) -> Result<Ledger> {
        let path = find_or_create(path)?;
        let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
        let seen = probe(&path, known)?;
        if !may_write(&path) {
            return open_to_read(path, seen, known, Unwritable::ReadOnly);
        }
        let error = match open_to_write(path.clone(), seen, migrations) {
            Ok(ledger) => return Ok(ledger),
            Err(error) => error,
        };
        let Some(why) = unwritable(&error) else {
            return Err(error);
        };
        // Earlier results are still of use where nothing can be added. The first attempt may have left empty
        // side files.
        let seen = probe(&path, known)?;
        let unopened = why.error(&path);
        open_to_read(path, seen, known, why).map_err(|_| unopened)
    }

    /// Opens the ledger at `path` for reading only, and creates none: `None` if there is no file, or an empty one.
    /// In WAL mode writers do not wait for it, in rollback mode only while a statement runs. If other processes have
    /// the ledger open, or were killed, SQLite may need its side files next to it; the last process that closes the
    /// ledger merges and removes them if it may write.
    ///
    /// # Errors
    /// When the file cannot be read, is not a ledger of this version, or is damaged.
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Option<Ledger>> {
        let Some(path) = find(path.as_ref())? else {
            return Ok(None);
        };
        let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
        match probe(&path, known)? {
            FileState::Blank => Ok(None),
            seen => open_to_read(path, seen, known, Unwritable::ReadOnly).map(Some),
        }
    }

    /// Opens the ledger at `path` for reading, and does not upgrade an older schema. `None` if there is no file, or an
    /// empty one.
    ///
    /// # Errors
    /// As [`Ledger::open_to_read`], but not for an older schema.
    pub(crate) fn open_as_it_is(path: &Path) -> Result<Option<Ledger>> {
        let Some(path) = find(path)? else {
            return Ok(None);
        };
        let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
        let seen = match probe(&path, known)? {
            FileState::Blank => return Ok(None),
            // Read under locks, since reading takes long and other processes may write meanwhile.
            FileState::Sound if may_write(&path) => FileState::Unsettled,
            seen => seen,
        };
        read_as_it_is(path, seen, known, Unwritable::ReadOnly).map(Some)
    }

    /// An empty, read-only ledger in memory, for a path where there is no file.
    ///
    /// # Errors
    /// When SQLite runs out of memory.
    pub fn absent(path: impl AsRef<Path>) -> Result<Ledger> {
        let path = path.as_ref().to_owned();
        let connection = Connection::open_in_memory()
            .and_then(|connection| migrate(&connection, MIGRATIONS).map(|()| connection))
            .map_err(|error| Error::sqlite(&path, error))?;
        Ok(Ledger {
            connection,
            path,
            unwritable: Some(Unwritable::ReadOnly),
            file: (0, 0),
            is_checked: Cell::new(false),
        })
    }

    /// Absolute path of the ledger, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if runs can be saved and removed; otherwise they can only be read.
    pub fn is_writable(&self) -> bool {
        self.unwritable.is_none()
    }

    /// True if the ledger is still the file at its path.
    pub fn is_current(&self) -> bool {
        self.demand_present().is_ok()
    }

    /// Returns an error unless the ledger is still the file at its path. Data written to a removed file would be lost.
    pub(crate) fn demand_present(&self) -> Result<()> {
        match file_id(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            _ => Err(Error::Gone {
                path: self.path.clone(),
            }),
        }
    }

    /// Turns SQLite's error into one that names this ledger.
    pub(crate) fn explain(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, error)
    }
}

/// Real path of the regular file at `path`, which is created if missing.
fn find_or_create(path: &Path) -> Result<PathBuf> {
    if let Some(found) = find(path)? {
        return Ok(found);
    }
    let unreachable = |source| Error::Unreachable {
        path: path.to_owned(),
        source,
    };
    create(&std::path::absolute(path).map_err(unreachable)?).map_err(unreachable)?;
    // Another process may have removed the file again.
    find(path)?.ok_or_else(|| unreachable(io::ErrorKind::NotFound.into()))
}

/// Real path of the regular file at `path`, if it exists: SQLite puts its side files next to the file that a symbolic
/// link leads to.
fn find(path: &Path) -> Result<Option<PathBuf>> {
    let unreachable = |source| Error::Unreachable {
        path: path.to_owned(),
        source,
    };
    // Absolute, so that SQLite does not treat a name such as ":memory:" specially.
    let absolute = std::path::absolute(path).map_err(unreachable)?;
    match fs::metadata(&absolute) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(Error::NotAFile { path: absolute });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreachable(error)),
    }
    // Checked here, since SQLite reports every reason as "unable to open".
    may_read(&absolute).map_err(unreachable)?;
    absolute.canonicalize().map(Some).map_err(unreachable)
}

fn open_to_write(path: PathBuf, seen: FileState, migrations: &[&str]) -> Result<Ledger> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(&path, flags).map_err(|error| Error::sqlite(&path, error))?;
    let ledger = Ledger::of(connection, path, None)?;
    let connection = &ledger.connection;
    apply_settings(connection).map_err(|error| ledger.explain(error))?;
    let header = Header::read(connection).map_err(|error| ledger.explain(error))?;
    if !header.is_blank() {
        // Checked again, since the newest header may have been in the side files.
        belongs(&ledger.path, header, known)?;
        if seen == FileState::Unsettled {
            check(&ledger.path, connection)?;
        }
        if header.version < known {
            check_all(&ledger.path, connection)?;
        }
    }
    (|| {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        if header.version < known {
            migrate(connection, migrations)?;
            // The schema number moves into the file itself, where an older version looks first.
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        }
        choose_journal(connection, &ledger.path)
    })()
    .map_err(|error| ledger.explain(error))?;
    Ok(ledger)
}

/// Settings of every connection that writes.
fn apply_settings(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Closing must not checkpoint the WAL into a file that is not known to be a sound ledger.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Protects against a malicious file, and against damage that was not found yet.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Selects WAL mode where the file system allows it. If another process prevents it just now, the mode stays as it
/// is, which is safe too, and the next process that opens the ledger tries again.
fn choose_journal(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    let wanted = if shares_memory(path) { "wal" } else { "delete" };
    let mode = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    if mode("PRAGMA journal_mode")? == wanted {
        return Ok(());
    }
    match mode(&format!("PRAGMA journal_mode = {wanted}")) {
        Err(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == ErrorCode::DatabaseBusy =>
        {
            Ok(())
        }
        other => other.map(drop),
    }
}

fn open_to_read(path: PathBuf, seen: FileState, known: u32, why: Unwritable) -> Result<Ledger> {
    let ledger = read_as_it_is(path, seen, known, why)?;
    let header = Header::read(&ledger.connection).map_err(|error| ledger.explain(error))?;
    if header.version < known {
        return Err(Error::Older { path: ledger.path });
    }
    Ok(ledger)
}

fn read_as_it_is(path: PathBuf, seen: FileState, known: u32, why: Unwritable) -> Result<Ledger> {
    let connection = match seen {
        FileState::Blank => return Err(Error::ReadOnly { path }),
        // No process was writing the file just now, and where it may not be written SQLite could not create the
        // side files that it would need. A process that begins to write meanwhile can make it look damaged, once.
        FileState::Sound => immutable(&path)?,
        FileState::Unsettled if why == Unwritable::ReadOnly => unsettled(&path)?,
        FileState::Unsettled => connect_unshared(&path)?,
    };
    let settles = why == Unwritable::ReadOnly;
    let ledger = Ledger::of(connection, path, Some(why))?;
    let explain = |error| ledger.explain_unsettled(error);
    only_read(&ledger.connection).map_err(explain)?;
    let header = Header::read(&ledger.connection).map_err(explain)?;
    belongs(&ledger.path, header, known)?;
    if seen == FileState::Unsettled {
        check(&ledger.path, &ledger.connection)?;
    }
    if !settles {
        return Ok(ledger);
    }
    let close_moves = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    ledger
        .connection
        .set_db_config(close_moves, false)
        .map_err(explain)?;
    Ok(ledger)
}

/// A connection to a file with side files. If the file may be written, it is opened for writing, so that closing it
/// can merge the side files: a read-only connection may create side files but cannot remove them
/// (<https://www.sqlite.org/wal.html>, "Read-Only Databases").
fn unsettled(path: &Path) -> Result<Connection> {
    let access = match may_write(path) {
        true => OpenFlags::SQLITE_OPEN_READ_WRITE,
        false => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| Error::sqlite(path, error))
}

/// A connection to a file with side files that can be read, where no file can be created: the index of the WAL is
/// kept in memory (<https://www.sqlite.org/wal.html>, "Use of WAL Without Shared-Memory"), for which no other process
/// may have the ledger open meanwhile. Closing it changes nothing.
fn connect_unshared(path: &Path) -> Result<Connection> {
    let connection = unsettled(path)?;
    let set = connection.pragma_update(None, "locking_mode", "EXCLUSIVE");
    set.map_err(|error| Error::sqlite(path, error))?;
    Ok(connection)
}

/// Reason why a ledger that could not be opened for writing may still be read: its file system is full, or fails.
/// `None` if the error concerns the ledger itself.
fn unwritable(error: &Error) -> Option<Unwritable> {
    match error {
        Error::Full { .. } => Some(Unwritable::Full),
        Error::Sqlite {
            source: source @ rusqlite::Error::SqliteFailure(failure, _),
            ..
        } if matches!(
            failure.code,
            ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly
        ) =>
        {
            Some(Unwritable::Failed(source.to_string()))
        }
        _ => None,
    }
}

/// Settings of a connection that only reads: no query changes the file. Nor does closing it, before the file is known
/// to be a sound ledger.
fn only_read(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)
}

impl Ledger {
    fn of(connection: Connection, path: PathBuf, unwritable: Option<Unwritable>) -> Result<Ledger> {
        let file = file_id(&path).map_err(|source| Error::Unreachable {
            path: path.clone(),
            source,
        })?;
        Ok(Ledger {
            connection,
            path,
            unwritable,
            file,
            is_checked: Cell::new(false),
        })
    }

    /// Explains an error of a read-only connection that needs to write: a killed process left the file unsettled.
    fn explain_unsettled(&self, error: rusqlite::Error) -> Error {
        match &error {
            rusqlite::Error::SqliteFailure(failure, _)
                if matches!(failure.code, ErrorCode::CannotOpen | ErrorCode::ReadOnly) =>
            {
                Error::Unsettled {
                    path: self.path.clone(),
                }
            }
            _ => self.explain(error),
        }
    }
}

#[cfg(test)]
mod tests;
