//! The first read of an existing file, which changes nothing, whatever the file is.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::place::has_side_file;
use crate::schema::{APPLICATION_ID, Header};
use crate::{Error, Result};

/// Number of further reads of a damaged file: a read takes no lock, so a file that another process is just writing can
/// look damaged for a moment.
const PROBES: u32 = 4;
/// Wait before each further read.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// State of a file that may be a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// An empty file: nothing has been written to it.
    Blank,
    /// A ledger that was found sound.
    Sound,
    /// A ledger that must be read under locks: its side files hold a part of its data.
    Unsettled,
}

/// Examines the file without locking it or creating anything next to it.
pub(crate) fn probe(path: &Path, known: u32) -> Result<FileState> {
    let mut probes = 0;
    loop {
        let unsettled = has_side_file(path);
        let error = match attempt(path, known, !unsettled) {
            Ok(seen) => {
                return Ok(if unsettled {
                    FileState::Unsettled
                } else {
                    seen
                });
            }
            Err(error) => error,
        };
        probes += 1;
        let looks_damaged = matches!(error, Error::Damaged { .. } | Error::NotALedger { .. });
        match error {
            // The side files may hold the current pages, unless this is not an SQLite file.
            Error::Damaged { .. } if unsettled => return Ok(FileState::Unsettled),
            error if !looks_damaged || probes == PROBES => return Err(error),
            _ => sleep(PROBE_INTERVAL),
        }
    }
}

fn attempt(path: &Path, known: u32, thoroughly: bool) -> Result<FileState> {
    let connection = immutable(path)?;
    let header = Header::read(&connection).map_err(|error| Error::sqlite(path, error))?;
    if header.is_blank() {
        return Ok(FileState::Blank);
    }
    belongs(path, header, known)?;
    if thoroughly {
        check_length(path, &connection, header)?;
        check(path, &connection)?;
    }
    Ok(FileState::Sound)
}

/// Opens the file so that SQLite neither locks it nor creates or reads anything next to it.
///
/// The header is not read with `std::fs`, because closing a descriptor of the file drops the locks
/// that SQLite holds on it elsewhere in this process; SQLite itself knows to wait.
pub(crate) fn immutable(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri(path), flags).map_err(|error| Error::sqlite(path, error))
}

/// The path as a URI in which every byte is escaped that could be taken for a delimiter.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri + "?immutable=1"
}

/// Returns an error unless a file with this header is a ledger that this program can use.
pub(crate) fn belongs(path: &Path, header: Header, known: u32) -> Result<()> {
    if header.application_id != APPLICATION_ID {
        return Err(Error::Foreign {
            path: path.to_owned(),
            application_id: header.application_id,
        });
    }
    if header.version > known {
        return Err(Error::Newer {
            path: path.to_owned(),
            found: header.version,
            known,
        });
    }
    Ok(())
}

/// Returns an error unless the file has the length that its header gives. SQLite itself accepts a truncated last page,
/// and reads zeros there.
fn check_length(path: &Path, connection: &Connection, header: Header) -> Result<()> {
    let page: u32 = connection
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map_err(|error| Error::sqlite(path, error))?;
    let claimed = u64::from(header.pages) * u64::from(page);
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    if size >= claimed {
        return Ok(());
    }
    Err(Error::Damaged {
        path: path.to_owned(),
        detail: format!("it is cut short: {size} of {claimed} bytes"),
    })
}

/// Looks for damage in the table that every list and every search reads, where it does the most harm and the check is
/// cheap. A damaged document is found by its checksum when it is read, and affects one run only.
pub(crate) fn check(path: &Path, connection: &Connection) -> Result<()> {
    check_table(path, connection, "runs")
}

/// Looks for damage in a table and its indexes.
fn check_table(path: &Path, connection: &Connection, table: &str) -> Result<()> {
    let report: String = connection
        .query_row(&format!("PRAGMA quick_check({table})"), [], |row| {
            row.get(0)
        })
        .map_err(|error| Error::sqlite(path, error))?;
    if report == "ok" {
        return Ok(());
    }
    Err(Error::Damaged {
        path: path.to_owned(),
        detail: report.lines().last().unwrap_or("no detail").to_owned(),
    })
}

/// Tables whose rows are large. Their pages are counted, but overflow pages of a row are not read: a row has a
/// checksum, and damage affects that row only.
const BULK: [&str; 2] = ["documents", "blocks"];

/// Looks for damage wherever a change may write: in every table, its indexes and the schema. A reader would refuse the
/// same damage. Returns the tables' names.
pub(crate) fn check_all(path: &Path, connection: &Connection) -> Result<Vec<String>> {
    let explain = |error| Error::sqlite(path, error);
    let tables: rusqlite::Result<Vec<String>> = (|| {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        connection
            .prepare(sql)?
            .query_map([], |row| row.get(0))?
            .collect()
    })();
    let tables = tables.map_err(explain)?;
    for table in &tables {
        if BULK.contains(&table.as_str()) {
            let count = format!("SELECT count(*) FROM {table} NOT INDEXED");
            connection
                .query_row(&count, [], |_| Ok(()))
                .map_err(explain)?;
        } else {
            check_table(path, connection, table)?;
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn no_byte_of_a_path_is_taken_for_a_delimiter() {
        let odd = Path::new(OsStr::from_bytes(b"//a b?c#d%e\xff"));
        assert_eq!(uri(odd), "file:%2f%2fa%20b%3fc%23d%25e%ff?immutable=1");
    }
}
