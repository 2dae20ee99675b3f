//! A connection to MySQL or MariaDB.

use mysql::prelude::Queryable as _;
use mysql::{Conn, Error};

use super::MysqlAddress;
use crate::store::sql::{RolledPeriod, Sql};
use crate::store::{Entry, Result, Settings, StoreError};

/// Immediate attempts at a transaction that lost a deadlock.
const DEADLOCK_ATTEMPTS: u32 = 5;

/// Errors after which a transaction is rolled back and may be retried: a deadlock, a lock wait timeout.
const RETRYABLE_ERRORS: [u16; 2] = [1213, 1205];
/// Errors after which a retry is useless: access denied, no such database, no privilege.
const PERMANENT_ERRORS: [u16; 6] = [1044, 1045, 1049, 1142, 1143, 1698];

/// A connection that is opened on demand.
pub(super) struct Connection {
    server: MysqlAddress,
    pub(super) address: String,
    isolation: &'static str,
    connection: Option<Conn>,
}

impl Connection {
    pub(super) fn new(server: &MysqlAddress, isolation: &'static str) -> Connection {
        Connection {
            address: server.to_string(),
            server: server.clone(),
            isolation,
            connection: None,
        }
    }

    /// Runs a closure on the connection, and drops a connection that broke.
    pub(super) fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T> {
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
                    // Otherwise MySQL 8 reports sizes that are up to a day old, and far too much would be removed.
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

    pub(super) fn settings(&mut self) -> Result<Settings> {
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
    let refused =
        matches!(&error, Error::MySqlError(error) if PERMANENT_ERRORS.contains(&error.code));
    let text = match &error {
        Error::MySqlError(error) => format!("{address}: {} (error {})", error.message, error.code),
        error => format!("{address}: {error}"),
    };
    match refused {
        true => StoreError::refused(text),
        false => StoreError::Unavailable(anyhow::Error::new(error).context(text)),
    }
}

/// True of an error after which the transaction may be retried at once.
fn is_lock(error: &StoreError) -> bool {
    let StoreError::Unavailable(error) = error else {
        return false;
    };
    let error = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Error>());
    matches!(error, Some(Error::MySqlError(error)) if RETRYABLE_ERRORS.contains(&error.code))
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

    fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>> {
        let rows: Vec<mysql::Row> = self.with(|connection| connection.query(statement))?;
        let text = |value: mysql::Value| match value {
            mysql::Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        let row = |row: mysql::Row| row.unwrap().into_iter().map(text).collect();
        Ok(rows.into_iter().map(row).collect())
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

    fn latest(&self, roll: &RolledPeriod) -> String {
        let RolledPeriod {
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

/// Runs a transaction, and retries it at once if it lost a deadlock.
pub(super) fn retrying<T>(mut transaction: impl FnMut() -> Result<T>) -> Result<T> {
    let mut tries = 0;
    loop {
        let done = transaction();
        tries += 1;
        match &done {
            Err(error) if is_lock(error) && tries < DEADLOCK_ATTEMPTS => {}
            _ => return done,
        }
    }
}
