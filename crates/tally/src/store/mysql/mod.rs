//! The store in MySQL (5.7 to 8.4) or MariaDB (10.6 and later).

mod server;
mod write;

use std::time::Duration;

use hashbrown::HashMap;
use mysql::prelude::Queryable as _;
use mysql::{Conn, Error};

use super::sql::{self, Roll, Sql, SqlArchive};
use super::{Applied, Archive, Batch, Entry, Key, Limits, Result, Settings, Store, StoreError};
use crate::level::{Level, Seconds};

pub use server::Server;

/// Rows of one statement.
const AT_ONCE: usize = 1000;
/// Immediate tries of a transaction that lost a deadlock.
const DEADLOCKS: u32 = 5;

/// Errors after which the server undid the transaction, and it may be tried again: a deadlock, a lock that took too long.
const LOCKS: [u16; 2] = [1213, 1205];
/// Errors that no retry mends: access denied, no such database, no privilege.
const REFUSALS: [u16; 6] = [1044, 1045, 1049, 1142, 1143, 1698];

/// A connection that is made when it is needed.
struct Connection {
    server: Server,
    address: String,
    isolation: &'static str,
    connection: Option<Conn>,
}

impl Connection {
    fn new(server: &Server, isolation: &'static str) -> Connection {
        Connection {
            address: server.to_string(),
            server: server.clone(),
            isolation,
            connection: None,
        }
    }

    /// Runs something on the connection, and forgets a connection that broke.
    fn with<T>(&mut self, work: impl FnOnce(&mut Conn) -> mysql::Result<T>) -> Result<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let options = self.server.options()?;
                let connect = || {
                    let mut connection = Conn::new(options)?;
                    connection.query_drop(format!(
                        "SET SESSION TRANSACTION ISOLATION LEVEL {}",
                        self.isolation
                    ))?;
                    // MySQL 8 tells sizes of up to a day ago otherwise, by which far too much would be removed.
                    connection.query_drop(
                        "SET @tally = 1 /*!80000 , SESSION information_schema_stats_expiry = 0 */",
                    )?;
                    Ok(connection)
                };
                let connected = connect().map_err(|error| failed(&self.address, error))?;
                self.connection.insert(connected)
            }
        };
        work(connection).map_err(|error| {
            if !matches!(error, Error::MySqlError(_)) {
                self.connection = None;
            }
            failed(&self.address, error)
        })
    }

    fn setting(&mut self, name: &str) -> Result<Option<String>> {
        self.with(|connection| {
            connection.exec_first("SELECT value FROM tally_setting WHERE name = ?", (name,))
        })
    }

    fn settings(&mut self) -> Result<Settings> {
        let tables = "SELECT COUNT(*) FROM information_schema.tables
                      WHERE table_schema = DATABASE() AND table_name = 'tally_setting'";
        let has_tables: Option<i64> = self.with(|connection| connection.query_first(tables))?;
        let address = self.address.clone();
        if has_tables != Some(1) {
            return Err(StoreError::refused(format!(
                "there is no store {address}; 'disksmith tally --from … --store …' makes one"
            )));
        }
        Settings::read(&address, |name| self.setting(name))
    }
}

fn failed(address: &str, error: Error) -> StoreError {
    let refused = matches!(&error, Error::MySqlError(error) if REFUSALS.contains(&error.code));
    let text = match &error {
        Error::MySqlError(error) => format!("{address}: {} (error {})", error.message, error.code),
        error => format!("{address}: {error}"),
    };
    match refused {
        true => StoreError::refused(text),
        false => StoreError::Unavailable(anyhow::Error::new(error).context(text)),
    }
}

/// True of an error after which the transaction may be tried again at once.
fn is_lock(error: &StoreError) -> bool {
    let StoreError::Unavailable(error) = error else {
        return false;
    };
    let error = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    matches!(error, Some(Error::MySqlError(error)) if LOCKS.contains(&error.code))
}

impl Sql for Connection {
    fn run(&mut self, statement: &str) -> Result<u64> {
        self.with(|connection| {
            connection
                .query_iter(statement)
                .map(|result| result.affected_rows())
        })
    }

    fn numbers(&mut self, statement: &str) -> Result<Vec<Vec<Option<f64>>>> {
        self.with(|connection| {
            connection.query_map(statement, |row: mysql::Row| {
                (0..row.len())
                    .map(|column| row.get::<Option<f64>, _>(column).flatten())
                    .collect()
            })
        })
    }

    fn entries(&mut self) -> Result<Vec<Entry>> {
        self.with(|connection| {
            connection.query_map(
                "SELECT id, name FROM tally_tag ORDER BY name",
                |(id, name): (i64, Vec<u8>)| Entry {
                    id,
                    name: String::from_utf8_lossy(&name).into_owned(),
                },
            )
        })
    }

    fn begin(&mut self) -> Result<()> {
        self.run("START TRANSACTION").map(drop)
    }

    fn rollback(&mut self) {
        if self.run("ROLLBACK").is_err() {
            self.connection = None;
        }
    }

    fn begin_snapshot(&mut self) -> Result<()> {
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            .map(drop)
    }

    fn size(&mut self) -> Result<u64> {
        let statement = "SELECT SUM(data_length + index_length) FROM information_schema.tables
                         WHERE table_schema = DATABASE() AND table_name LIKE 'tally\\_%'";
        let size: Option<Option<f64>> =
            self.with(|connection| connection.query_first(statement))?;
        Ok(size.flatten().unwrap_or(0.0) as u64)
    }

    fn for_update(&self) -> &'static str {
        " FOR UPDATE"
    }

    fn latest(&self, roll: &Roll) -> String {
        let Roll {
            table,
            finer,
            start,
            next,
        } = roll;
        format!(
            "UPDATE {table} AS coarse
             JOIN (SELECT tag, MAX(start) AS start FROM {finer}
                   WHERE start >= {start} AND start < {next} AND latest IS NOT NULL GROUP BY tag) AS last
                 ON last.tag = coarse.tag
             JOIN {finer} AS fine ON fine.tag = last.tag AND fine.start = last.start
             SET coarse.latest = fine.latest WHERE coarse.start = {start}"
        )
    }
}

/// A database that is written.
pub struct MysqlStore {
    connection: Connection,
    settings: Settings,
    most_tags: u64,
    /// Numbers of tags.
    ids: HashMap<Box<str>, i64>,
    /// Tags in the dictionary, when it was last counted.
    tags: u64,
    running: sql::RunningTime,
}

impl MysqlStore {
    /// Opens the database, and makes the tables where there are none.
    ///
    /// # Errors
    /// Where it cannot be written, or is a newer version's.
    pub fn open(server: &Server, new: &Settings, most_tags: u64) -> Result<MysqlStore> {
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
pub(super) fn open_archive(server: &Server) -> Result<Box<dyn Archive>> {
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
        for keys in keys.chunks(AT_ONCE) {
            let list: Vec<String> = keys.iter().map(|key| write::hex(key.bytes())).collect();
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
            write::hex(source.as_bytes())
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
            write::hex(after)
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

    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<Applied> {
        let mut tries = 0;
        loop {
            let applied = self.write(batch, now);
            tries += 1;
            match &applied {
                Err(error) if is_lock(error) && tries < DEADLOCKS => {}
                _ => return applied,
            }
        }
    }

    fn maintain(&mut self, limits: &Limits, now: Seconds, ran: Duration) -> Result<bool> {
        let clock = (&mut self.running, ran);
        sql::maintain(&mut self.connection, &self.settings, limits, now, clock)
    }
}

fn tables_of(new: &Settings) -> Vec<String> {
    let engine = "ENGINE=InnoDB";
    let mut tables = vec![
        format!("tally_setting (name VARCHAR(64) NOT NULL PRIMARY KEY, value VARCHAR(255) NOT NULL) {engine}"),
        // Without a collation, which would take some tags for the same.
        format!("tally_tag (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARBINARY(512) NOT NULL UNIQUE) {engine}"),
        format!(
            "tally_identity (identity VARBINARY(255) NOT NULL PRIMARY KEY, added BIGINT NOT NULL, INDEX added (added)) {engine}"
        ),
        format!(
            "tally_position (source VARBINARY(255) NOT NULL PRIMARY KEY, position BIGINT UNSIGNED NOT NULL,
             moved BIGINT NOT NULL) {engine}"
        ),
    ];
    let values: String = sql::value_columns(&new.bounds)
        .iter()
        .map(|column| format!(", {column} DOUBLE"))
        .collect();
    for level in Level::ALL {
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
