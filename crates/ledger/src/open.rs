//! Opening the ledger.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::look::{Seen, belongs, check, immutable, look};
use crate::place::{create, may_read, may_write, shares_memory};
use crate::schema::{Header, MIGRATIONS, migrate};
use crate::{Error, Result};

/// How long to wait for another process that holds the ledger. Its disk may be the slow one that
/// is being measured.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An open ledger. It may be sent to another thread; threads that write at once each open their
/// own.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    writable: bool,
}

impl Ledger {
    /// Opens the ledger at `path`, creating it and the folders above it (for this user alone)
    /// where they are missing. Where it may not be written it is opened for reading.
    ///
    /// # Errors
    /// When the file cannot be created or reached, is not a ledger, belongs to another program or
    /// to a newer version of this one, or is damaged. The file is not changed then.
    pub fn open(path: impl AsRef<Path>) -> Result<Ledger> {
        Ledger::open_with(path.as_ref(), MIGRATIONS)
    }

    /// The same with a list of schema steps, which tests lengthen.
    pub(crate) fn open_with(path: &Path, migrations: &[&str]) -> Result<Ledger> {
        let path = find_or_create(path)?;
        let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
        let seen = look(&path, known)?;
        let writable = may_write(&path);
        if writable {
            open_to_write(path, seen, migrations)
        } else {
            open_to_read(path, seen, known)
        }
    }

    /// Opens the ledger at `path` for reading alone: nothing is created, and what others write there is not
    /// held up. `None` where there is no file, or nothing in it yet.
    ///
    /// # Errors
    /// When the file cannot be read, is not a ledger of this version, or is damaged.
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Option<Ledger>> {
        let Some(path) = find(path.as_ref())? else {
            return Ok(None);
        };
        let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
        match look(&path, known)? {
            Seen::Blank => Ok(None),
            seen => open_to_read(path, seen, known).map(Some),
        }
    }

    /// Where it lies, as an absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether runs can be saved and removed; otherwise they can only be read.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// An error unless the ledger can be written.
    pub(crate) fn demand_writable(&self) -> Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(Error::ReadOnly {
                path: self.path.clone(),
            })
        }
    }

    /// Turns SQLite's error into one that names this ledger.
    pub(crate) fn explain(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, error)
    }
}

/// The regular file at `path`, created if missing, by its real name.
fn find_or_create(path: &Path) -> Result<PathBuf> {
    if let Some(found) = find(path)? {
        return Ok(found);
    }
    let unreachable = |source| Error::Unreachable {
        path: path.to_owned(),
        source,
    };
    create(&std::path::absolute(path).map_err(unreachable)?).map_err(unreachable)?;
    // Somebody may have removed it again.
    find(path)?.ok_or_else(|| unreachable(io::ErrorKind::NotFound.into()))
}

/// The regular file at `path`, if it is there, by its real name: SQLite puts its side files beside the file
/// that a symbolic link leads to.
fn find(path: &Path) -> Result<Option<PathBuf>> {
    let unreachable = |source| Error::Unreachable {
        path: path.to_owned(),
        source,
    };
    // Absolute, so that SQLite takes no name for one of its own, such as ":memory:".
    let absolute = std::path::absolute(path).map_err(unreachable)?;
    match fs::metadata(&absolute) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(Error::NotAFile { path: absolute });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreachable(error)),
    }
    // Asked here, since SQLite says of any reason only that it was "unable to open".
    may_read(&absolute).map_err(unreachable)?;
    absolute.canonicalize().map(Some).map_err(unreachable)
}

fn open_to_write(path: PathBuf, seen: Seen, migrations: &[&str]) -> Result<Ledger> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let ledger = Ledger {
        connection: Connection::open_with_flags(&path, flags)
            .map_err(|error| Error::sqlite(&path, error))?,
        path,
        writable: true,
    };
    let connection = &ledger.connection;
    settle(connection).map_err(|error| ledger.explain(error))?;
    let header = Header::read(connection).map_err(|error| ledger.explain(error))?;
    if !header.is_blank() {
        // Again, since the newest header may have been in the side files.
        belongs(&ledger.path, header, known)?;
        if seen == Seen::Unsettled {
            check(&ledger.path, connection)?;
        }
    }
    (|| {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        if header.version < known {
            migrate(connection, migrations)?;
            // Into the file itself, where a first look by an older version finds the number.
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        }
        choose_journal(connection, &ledger.path)
    })()
    .map_err(|error| ledger.explain(error))?;
    Ok(ledger)
}

/// What every connection that writes is set to.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    // Until the file is known to be ours and sound, closing it must not move anything into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Against a file that somebody has prepared, and damage that was not found yet.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// WAL where the file system allows it. Another process may be in the way just now: then the mode
/// stays as it is, which is safe too, and the next to open the ledger tries again.
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

fn open_to_read(path: PathBuf, seen: Seen, known: u32) -> Result<Ledger> {
    let connection = match seen {
        Seen::Blank => return Err(Error::ReadOnly { path }),
        // Nobody is writing it, and SQLite could not create the side files that it would want.
        Seen::Sound => immutable(&path)?,
        Seen::Unsettled => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(&path, flags)
                .map_err(|error| Error::sqlite(&path, error))?
        }
    };
    let ledger = Ledger {
        connection,
        path,
        writable: false,
    };
    let explain = |error| ledger.explain_unsettled(error);
    ledger.connection.busy_timeout(PATIENCE).map_err(explain)?;
    let header = Header::read(&ledger.connection).map_err(explain)?;
    belongs(&ledger.path, header, known)?;
    if seen == Seen::Unsettled {
        check(&ledger.path, &ledger.connection)?;
    }
    if header.version < known {
        return Err(Error::Older { path: ledger.path });
    }
    Ok(ledger)
}

impl Ledger {
    /// A read-only connection that wants to write has found what a killed process left.
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
