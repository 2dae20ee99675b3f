//! The store in MySQL (5.7 to 8.4) or MariaDB (10.6 and later).

mod connection;
mod server;
mod write;

use std::time::Duration;

use hashbrown::HashMap;
use mysql::prelude::Queryable as _;

use super::piece::{Movable, MovedRows, Pending};
use super::sql::{self, Sql as _, SqlArchive, moving};
use super::{AppliedBatch, Archive, Batch, Key, Result, Settings, Store, StoreLimits};
use crate::level::{RollUpLevel, Seconds};

use connection::{Connection, retrying};
pub use server::MysqlAddress;

/// Maximum number of rows in one statement.
const ROWS_PER_STATEMENT: usize = 1000;
/// A database that is written.
pub struct MysqlStore {
    connection: Connection,
    settings: Settings,
    most_tags: u64,
    /// Cached numbers of tags.
    ids: HashMap<Box<str>, i64>,
    /// Number of tags in the dictionary, when it was last counted.
    tags: u64,
    running: sql::RunningTime,
}

impl MysqlStore {
    /// Opens the database, and makes the tables where there are none.
    ///
    /// # Errors
    /// Where it cannot be written, or is a newer version's.
    pub fn open(server: &MysqlAddress, new: &Settings, most_tags: u64) -> Result<MysqlStore> {
        let mut connection = Connection::new(server, "READ COMMITTED");
        for statement in tables_of(new) {
            connection.run(&statement)?;
        }
        for (name, value) in sql::new_settings(new) {
            let insert = "INSERT IGNORE INTO tally_setting (name, value) VALUES (?, ?)";
            connection.with(|connection| connection.exec_drop(insert, (name, value)))?;
        }
        Ok(MysqlStore {
            settings: connection.settings()?,
            connection,
            most_tags,
            ids: HashMap::new(),
            tags: 0,
            running: sql::RunningTime::default(),
        })
    }
}

/// Opens a database to read.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub(super) fn open_archive(server: &MysqlAddress) -> Result<Box<dyn Archive>> {
    let mut connection = Connection::new(server, "REPEATABLE READ");
    let settings = connection.settings()?;
    Ok(Box::new(SqlArchive::new(connection, settings)))
}

impl Store for MysqlStore {
    fn address(&self) -> &str {
        &self.connection.address
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn known(&mut self, keys: &[Key]) -> Result<Vec<bool>> {
        let mut known = hashbrown::HashSet::new();
        for keys in keys.chunks(ROWS_PER_STATEMENT) {
            let list: Vec<String> = keys.iter().map(|key| sql::literal(key.bytes())).collect();
            let statement = format!(
                "SELECT identity FROM tally_identity WHERE identity IN ({})",
                list.join(",")
            );
            let found: Vec<Vec<u8>> = self
                .connection
                .with(|connection| connection.query(statement))?;
            known.extend(found);
        }
        Ok(keys.iter().map(|key| known.contains(key.bytes())).collect())
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>> {
        let statement = format!(
            "SELECT position FROM tally_position WHERE source = {}",
            sql::literal(source.as_bytes())
        );
        self.connection
            .with(|connection| connection.query_first(statement))
    }

    fn is_fresh(&mut self) -> Result<bool> {
        let found: Option<bool> = self
            .connection
            .with(|connection| connection.query_first(sql::IS_FRESH))?;
        Ok(found.unwrap_or(true))
    }

    fn identities(&mut self, after: &[u8], most: usize) -> Result<Vec<Key>> {
        let statement = format!(
            "SELECT identity FROM tally_identity WHERE identity > {} ORDER BY identity LIMIT {most}",
            sql::literal(after)
        );
        self.connection
            .with(|connection| connection.query_map(statement, Key::of))
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>> {
        self.connection.with(|connection| {
            connection.query_map(
                "SELECT source, position FROM tally_position",
                |(source, position): (Vec<u8>, u64)| {
                    (String::from_utf8_lossy(&source).into_owned(), position)
                },
            )
        })
    }

    fn adopt(&mut self, keys: &[Key], positions: &[(String, u64)], more: bool) -> Result<()> {
        self.connection.begin()?;
        let adopted = self.adopt_all(keys, positions, more);
        match &adopted {
            Ok(()) => drop(self.connection.run("COMMIT")?),
            Err(_) => self.connection.rollback(),
        }
        adopted
    }

    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        retrying(|| self.write(batch, now))
    }

    fn maintain(&mut self, limits: &StoreLimits, now: Seconds, ran: Duration) -> Result<bool> {
        let clock = (&mut self.running, ran);
        sql::maintain(&mut self.connection, &self.settings, limits, now, clock)
    }
}

impl Movable for MysqlStore {
    fn name(&mut self) -> Result<String> {
        moving::name(&mut self.connection)
    }

    fn roll_over(&mut self, now: Seconds) -> Result<()> {
        retrying(|| sql::roll_over(&mut self.connection, &self.settings, now))
    }

    fn pending(&mut self) -> Result<Option<Pending>> {
        moving::pending(&mut self.connection)
    }

    fn take_out(&mut self, slice: &MovedRows, target: &str) -> Result<bool> {
        let (sql, settings) = (&mut self.connection, &self.settings);
        retrying(|| moving::take_out(sql, settings, slice, target))
    }

    fn put(&mut self, name: &str, pending: &Pending, now: Seconds) -> Result<()> {
        retrying(|| {
            sql::roll_to(&mut self.connection, &self.settings, &pending.piece.marks)?;
            self.write_piece(name, pending, now)
        })
    }

    fn remove(&mut self, number: u64) -> Result<()> {
        moving::remove(&mut self.connection, number)
    }
}

fn tables_of(new: &Settings) -> Vec<String> {
    let engine = "ENGINE=InnoDB";
    let mut tables = vec![
        format!("tally_setting (name VARCHAR(64) NOT NULL PRIMARY KEY, value VARCHAR(255) NOT NULL) {engine}"),
        // Binary: a collation would treat some different tags as equal.
        format!("tally_tag (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARBINARY(512) NOT NULL UNIQUE) {engine}"),
        format!(
            "tally_identity (identity VARBINARY(255) NOT NULL PRIMARY KEY, added BIGINT NOT NULL, INDEX added (added)) {engine}"
        ),
        format!(
            "tally_position (source VARBINARY(255) NOT NULL PRIMARY KEY, position BIGINT UNSIGNED NOT NULL,
             moved BIGINT NOT NULL) {engine}"
        ),
        format!("{} {engine}", moving::MOVING_TABLE),
    ];
    let values: String = sql::value_columns(&new.bounds)
        .iter()
        .map(|column| format!(", {column} DOUBLE"))
        .collect();
    for level in RollUpLevel::ALL {
        tables.push(format!(
            "{} (start BIGINT NOT NULL, tag BIGINT NOT NULL, events DOUBLE NOT NULL{values},
             PRIMARY KEY (start, tag)) {engine}",
            sql::table(level)
        ));
        tables.push(format!(
            "{} (start BIGINT NOT NULL, tag BIGINT NOT NULL, bucket SMALLINT NOT NULL, events DOUBLE NOT NULL,
             PRIMARY KEY (start, tag, bucket)) {engine}",
            sql::bucket_table(level)
        ));
    }
    tables
        .into_iter()
        .map(|table| format!("CREATE TABLE IF NOT EXISTS {table}"))
        .collect()
}
