//! Maintenance: examines the whole ledger, returns its free space, and copies it while it is in use.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use record::Bytes;
use rusqlite::Connection;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::place::side_file;
use crate::recording::demand_readable;
use crate::schema::Header;
use crate::{Error, Filter, Ledger, Result};

/// Maximum number of inconsistencies that SQLite lists.
const MAX_INCONSISTENCIES: u32 = 20;

/// Result of examining all that a ledger holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// Absolute path of the ledger.
    pub path: PathBuf,
    /// Number of its schema.
    pub schema: u32,
    /// Size of the file.
    pub size: Bytes,
    /// Unused part of the file, which [`Ledger::compact`] returns to the file system.
    pub free: Bytes,
    /// Number of runs.
    pub runs: u64,
    /// Number of recordings.
    pub recordings: u64,
    /// Number of their blocks.
    pub blocks: u64,
    /// Number of marks.
    pub marks: u64,
    /// Number of records of long work.
    pub work: u64,
    /// Inconsistent or unreadable parts of the ledger, a sentence each.
    pub damage: Vec<String>,
}

/// Size of a ledger before and after [`Ledger::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Size before.
    pub before: Bytes,
    /// Size after.
    pub after: Bytes,
}

impl Ledger {
    /// Reads everything in the ledger at `path`, and changes nothing. It may be of an older schema.
    ///
    /// # Errors
    /// When there is no ledger, the file is not one of this program, or it is too damaged to be opened.
    pub fn examine(path: impl AsRef<Path>) -> Result<Examination> {
        let ledger = open_existing(path.as_ref())?;
        let explain = |error| ledger.explain(error);
        let header = Header::read(&ledger.connection).map_err(explain)?;
        let number = |sql: &str| count(&ledger.connection, sql).map_err(explain);
        let page = number("PRAGMA page_size")?;
        let mut found = Examination {
            path: ledger.path.clone(),
            schema: header.version,
            size: Bytes(number("PRAGMA page_count")? * page),
            free: Bytes(number("PRAGMA freelist_count")? * page),
            damage: ledger.inconsistencies().map_err(explain)?,
            ..Examination::default()
        };
        let tables = ledger.tables().map_err(explain)?;
        let of = |table: &str| match tables.iter().any(|name| name == table) {
            true => number(&format!("SELECT count(*) FROM {table}")),
            false => Ok(0),
        };
        // A table that cannot be counted is damaged, which is already reported.
        found.runs = of("runs").unwrap_or_default();
        found.recordings = of("recordings").unwrap_or_default();
        found.blocks = of("blocks").unwrap_or_default();
        found.marks = of("marks").unwrap_or_default();
        found.work = of("work").unwrap_or_default();
        let mut unreadable = ledger.unreadable_runs();
        if found.blocks > 0 {
            unreadable.extend(ledger.unreadable_blocks());
        }
        if let Err(error) = ledger.read_lists(&tables) {
            unreadable.push(error.to_string());
        }
        found.damage.extend(unreadable);
        Ok(found)
    }

    /// Returns the space of removed data to the file system. Other processes may read meanwhile; writers wait.
    ///
    /// # Errors
    /// When it cannot be written, is damaged, or another process is writing for long.
    pub fn compact(&mut self) -> Result<Compacted> {
        self.demand_writable()?;
        let size = || fs::metadata(&self.path).map_or(0, |facts| facts.len());
        let before = size();
        self.connection
            .execute_batch("VACUUM")
            .and_then(|()| {
                let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
                self.connection.query_row(sql, [], |_| Ok(()))
            })
            .map_err(|error| self.explain(error))?;
        Ok(Compacted {
            before: Bytes(before),
            after: Bytes(size()),
        })
    }

    /// Copies a snapshot of the ledger at `from` to the new file `to`, for this user alone. Other processes may write
    /// meanwhile. The copy is complete and examined, or is not created. Returns its size.
    ///
    /// # Errors
    /// When there is no ledger, `to` exists, or the copy cannot be written.
    pub fn back_up(from: impl AsRef<Path>, to: &Path) -> Result<Bytes> {
        let ledger = open_existing(from.as_ref())?;
        let to = std::path::absolute(to).map_err(|source| failed(to, source))?;
        if fs::symlink_metadata(&to).is_ok() {
            return Err(Error::BackupExists { path: to });
        }
        let new = new_sibling(&to).map_err(|source| failed(&to, source))?;
        let copied = ledger.copy_to(&new, &to);
        if copied.is_err() {
            for suffix in ["", "-journal"] {
                let _ = fs::remove_file(side_file(&new, suffix));
            }
        }
        copied
    }

    /// Fills the file `new` with the ledger, and gives it the name `to`.
    fn copy_to(&self, new: &Path, to: &Path) -> Result<Bytes> {
        let name = new
            .to_str()
            .ok_or_else(|| failed(to, "SQLite takes a path of UTF-8 alone"))?;
        // Only the copy is written.
        self.connection
            .pragma_update(None, "query_only", false)
            .and_then(|()| self.connection.execute("VACUUM INTO ?1", [name]))
            .map_err(|error| failed(to, error))?;
        let copy = Ledger::examine(new)?;
        if let Some(damage) = copy.damage.first() {
            return Err(Error::Damaged {
                path: self.path.clone(),
                detail: damage.clone(),
            });
        }
        let finish = || -> io::Result<()> {
            fs::File::open(new)?.sync_all()?;
            renameat_with(CWD, new, CWD, to, RenameFlags::NOREPLACE)?;
            let folder = to.parent().unwrap_or(Path::new("/"));
            fs::File::open(folder)?.sync_all()
        };
        finish().map_err(|source| failed(to, source))?;
        Ok(copy.size)
    }

    /// Names of the tables.
    fn tables(&self) -> rusqlite::Result<Vec<String>> {
        strings(
            &self.connection,
            "SELECT name FROM sqlite_schema WHERE type = 'table'",
        )
    }

    /// Inconsistencies of the file, as SQLite finds them.
    fn inconsistencies(&self) -> rusqlite::Result<Vec<String>> {
        let sql = format!("PRAGMA integrity_check({MAX_INCONSISTENCIES})");
        let mut found = strings(&self.connection, &sql)?;
        found.retain(|line| line != "ok");
        let sql = "SELECT 'a row of ' || \"table\" || ' belongs to nothing in ' || parent \
                   FROM pragma_foreign_key_check";
        found.extend(strings(&self.connection, sql)?);
        Ok(found)
    }

    /// Runs whose document or conclusion cannot be read.
    fn unreadable_runs(&self) -> Vec<String> {
        // A list that cannot be read is reported elsewhere.
        let runs = self.list(&Filter::default()).unwrap_or_default();
        runs.iter()
            .flat_map(|run| {
                let id = run.id.as_str();
                let document = self.load_kept(id).err();
                let conclusion = self.conclusion(id).err();
                [document, conclusion].into_iter().flatten()
            })
            .map(|error| error.to_string())
            .collect()
    }

    /// Blocks of recordings that cannot be read.
    fn unreadable_blocks(&self) -> Vec<String> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self
                .connection
                .prepare("SELECT recording, step, began, body FROM blocks")?;
            let mut rows = statement.query([])?;
            let mut unreadable = Vec::new();
            while let Some(row) = rows.next()? {
                let body: Vec<u8> = row.get(3)?;
                if let Err(detail) = demand_readable(row.get(1)?, &body) {
                    let error = Error::UnreadableRecording {
                        path: self.path.clone(),
                        number: row.get(0)?,
                        began: row.get(2)?,
                        detail,
                    };
                    unreadable.push(error.to_string());
                }
            }
            Ok(unreadable)
        };
        read().unwrap_or_else(|error| vec![self.explain(error).to_string()])
    }
}

/// Opens the ledger at `path`, which must exist.
fn open_existing(path: &Path) -> Result<Ledger> {
    Ledger::open_as_it_is(path)?.ok_or_else(|| Error::Missing {
        path: path.to_owned(),
    })
}

/// A new, empty file next to `to`, for this user alone.
fn new_sibling(to: &Path) -> io::Result<PathBuf> {
    let name = to.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    let new = to.with_file_name(hidden);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    Ok(new)
}

fn failed(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Backup {
        path: path.to_owned(),
        source: source.into(),
    }
}

fn count(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.query_row(sql, [], |row| row.get::<_, i64>(0).map(|n| n.max(0) as u64))
}

fn strings(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod released;
#[cfg(test)]
mod tests;
