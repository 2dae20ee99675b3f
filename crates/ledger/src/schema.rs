//! The schema, as a numbered list of migrations.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Application id in the header of an SQLite file that is a ledger: "dsmt".
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"dsmt");

/// The steps from an empty file to the newest schema. A file's `user_version` is the number of
/// steps that it has taken. A step that was released is never edited: add another.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// Header of an SQLite file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Id of the program that the file belongs to.
    pub(crate) application_id: u32,
    /// Number of migrations that were applied to it.
    pub(crate) version: u32,
    /// Number of pages.
    pub(crate) pages: u32,
}

impl Header {
    /// Reads the header in one transaction, since another process may be creating the ledger just now.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Header> {
        let moment = connection.unchecked_transaction()?;
        Header::read_in(&moment)
    }

    /// Reads the header within the caller's transaction.
    fn read_in(connection: &Connection) -> rusqlite::Result<Header> {
        let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        // Both are 32 bits in the file, and SQLite returns them signed. No version of this program sets a negative
        // version, so that one counts as a very new version.
        Ok(Header {
            application_id: number("PRAGMA application_id")? as u32,
            version: number("PRAGMA user_version")? as u32,
            pages: number("PRAGMA page_count")? as u32,
        })
    }

    /// True if nothing has been written to the file yet.
    pub(crate) fn is_blank(self) -> bool {
        self.pages == 0
    }
}

/// Applies the missing migrations, each in a transaction of its own, so that a kill or an error leaves the file at a
/// numbered schema. Two processes may do this at once: the number is read again under the lock.
pub(crate) fn migrate(connection: &Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    loop {
        let step = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let taken = Header::read_in(&step)?.version;
        let Some(sql) = migrations.get(taken as usize) else {
            return Ok(());
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", taken + 1)?;
        step.commit()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A further step as there may be one some day, and one that fails midway.
    const FURTHER: &str = "ALTER TABLE runs ADD COLUMN label TEXT; CREATE TABLE places (k TEXT);";
    const FAILS: &str = "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);";

    fn tables(connection: &Connection) -> Vec<String> {
        connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap()
    }

    #[test]
    fn every_earlier_schema_leads_to_the_newest() {
        let mut newer = MIGRATIONS.to_vec();
        newer.push(FURTHER);
        let fresh = Connection::open_in_memory().unwrap();
        migrate(&fresh, &newer).unwrap();
        for taken in 0..=newer.len() {
            let old = Connection::open_in_memory().unwrap();
            migrate(&old, &newer[..taken]).unwrap();
            assert_eq!(Header::read(&old).unwrap().version as usize, taken);
            migrate(&old, &newer).unwrap();
            assert_eq!(tables(&old), tables(&fresh), "from {taken}");
            let header = Header::read(&old).unwrap();
            assert_eq!(header.version as usize, newer.len());
            assert_eq!(header.application_id, APPLICATION_ID);
        }
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_of_itself() {
        let connection = Connection::open_in_memory().unwrap();
        let mut broken = MIGRATIONS.to_vec();
        broken.push(FAILS);
        assert!(migrate(&connection, &broken).is_err());
        assert_eq!(
            Header::read(&connection).unwrap().version as usize,
            MIGRATIONS.len()
        );
        assert!(!tables(&connection).contains(&"half".to_owned()));
        assert!(connection.is_autocommit());
    }

    #[test]
    fn the_mark_is_four_letters_in_the_header() {
        assert_eq!(&APPLICATION_ID.to_be_bytes(), b"dsmt");
    }
}
