//! The store in ClickHouse.
//!
//! ClickHouse has no transaction over several tables, and cannot keep identities and sums together. So a batch goes to
//! an outbox first: an SQLite store, which also keeps the identities and positions, and makes the batch durable. From
//! there its rows go to ClickHouse, table by table, in numbered inserts. An insert that is repeated because the answer
//! was lost has the same number, and ClickHouse ignores it (`insert_deduplication_token`).
//!
//! Each level is written at once, and merged by `AggregatingMergeTree`: nothing is rolled up later.

mod outbox;
mod read;
mod server;

use std::time::Duration;

use super::{
    AppliedBatch, Archive, Batch, Key, Result, Settings, Store, StoreError, StoreLimits, sql,
};
use crate::level::{RollUpLevel, Seconds};

use outbox::Outbox;
pub use server::ClickhouseAddress;

/// Number of inserts whose tokens ClickHouse remembers.
const TOKEN_WINDOW_INSERTS: u32 = 10_000;
/// Number of inserts in the outbox at which no more events are taken. It is below the number that ClickHouse remembers.
const MAX_PENDING_INSERTS: u64 = 5_000;

/// Immediate attempts at an insert.
const ATTEMPTS: u32 = 4;
/// Wait before each of them.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A database of ClickHouse that is written, with its outbox.
pub struct ClickhouseStore {
    server: ClickhouseAddress,
    address: String,
    outbox: Outbox,
}

impl ClickhouseStore {
    /// Opens the outbox and the database, and makes the tables where there are none.
    ///
    /// # Errors
    /// Where either cannot be written, or has other settings.
    pub fn open(
        server: &ClickhouseAddress,
        new: &Settings,
        most_tags: u64,
    ) -> Result<ClickhouseStore> {
        let outbox = Outbox::open(&server.outbox()?, new, most_tags)?;
        let settings = outbox.store.settings().clone();
        server.check_version()?;
        for statement in tables_of(&settings) {
            server.run(&statement, &[], b"")?;
        }
        match read::settings(server)? {
            Some(found) => {
                if !found.is_like(&settings) {
                    return Err(StoreError::refused(format!(
                        "{server} has other classes or another time zone than its outbox; take another outbox"
                    )));
                }
            }
            None => {
                let rows: String = sql::new_settings(&settings)
                    .iter()
                    .filter(|(name, _)| !name.starts_with("r"))
                    .map(|(name, value)| format!("{name}\t{value}\n"))
                    .collect();
                let insert = "INSERT INTO tally_setting (name, value) FORMAT TabSeparated";
                server.run(insert, &[], rows.as_bytes())?;
            }
        }
        Ok(ClickhouseStore {
            address: server.to_string(),
            server: server.clone(),
            outbox,
        })
    }

    /// Sends what waits in the outbox, in order.
    fn send(&mut self) -> Result<()> {
        while let Some(insert) = self.outbox.first()? {
            let token = format!("{}-{}", self.outbox.name, insert.number);
            let options = [
                ("insert_deduplicate", "1"),
                ("insert_deduplication_token", token.as_str()),
                // A single block, since a token covers one block.
                ("max_insert_block_size", "100000000"),
                ("min_insert_block_size_rows", "100000000"),
                ("max_partitions_per_insert_block", "0"),
                ("precise_float_parsing", "1"),
            ];
            let statement = format!("INSERT INTO {} FORMAT TabSeparated", insert.table);
            let mut tries = 1;
            while let Err(error) = self.server.run(&statement, &options, &insert.rows) {
                if !matches!(error, StoreError::Unavailable(_)) || tries == ATTEMPTS {
                    return Err(error);
                }
                tries += 1;
                std::thread::sleep(RETRY_DELAY);
            }
            self.outbox.remove(insert.number)?;
        }
        Ok(())
    }

    /// Removes the partitions of a level that are older than the limits.
    fn remove(&mut self, level: RollUpLevel, kept: Seconds, now: Seconds) -> Result<()> {
        let Some(length) = partition(level) else {
            return Ok(());
        };
        for table in [sql::table(level), sql::bucket_table(level)] {
            let old = self.server.rows(&format!(
                "SELECT DISTINCT partition FROM system.parts WHERE database = currentDatabase() AND table = '{table}'
                 AND active AND toInt64(partition) < {}",
                (now - kept) / length
            ))?;
            for row in old {
                let partition: i64 = row.first().and_then(|text| text.parse().ok()).unwrap_or(-1);
                let statement = format!("ALTER TABLE {table} DROP PARTITION {partition}");
                self.server.run(&statement, &[], b"")?;
            }
        }
        Ok(())
    }
}

/// Opens a database to read.
///
/// # Errors
/// Where there is none, or it cannot be read.
pub(super) fn open_archive(server: &ClickhouseAddress) -> Result<Box<dyn Archive>> {
    match read::settings(server)? {
        Some(settings) => Ok(Box::new(read::Reading::new(server.clone(), settings))),
        None => Err(StoreError::refused(format!(
            "there is no store {server}; 'disksmith tally --from … --store …' makes one"
        ))),
    }
}

impl Store for ClickhouseStore {
    fn address(&self) -> &str {
        &self.address
    }

    fn settings(&self) -> &Settings {
        self.outbox.store.settings()
    }

    fn known(&mut self, keys: &[Key]) -> Result<Vec<bool>> {
        self.outbox.store.known(keys)
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>> {
        self.outbox.store.position(source)
    }

    fn is_fresh(&mut self) -> Result<bool> {
        self.outbox.store.is_fresh()
    }

    fn identities(&mut self, after: &[u8], most: usize) -> Result<Vec<Key>> {
        self.outbox.store.identities(after, most)
    }

    fn positions(&mut self) -> Result<Vec<(String, u64)>> {
        self.outbox.store.positions()
    }

    fn adopt(&mut self, keys: &[Key], positions: &[(String, u64)], more: bool) -> Result<()> {
        self.outbox.store.adopt(keys, positions, more)
    }

    fn apply(&mut self, batch: &Batch, now: Seconds) -> Result<AppliedBatch> {
        let applied = self.outbox.add(batch, now)?;
        match self.send() {
            // The batch is durable in the outbox; maintenance sends it later.
            Err(StoreError::Unavailable(_)) if self.outbox.waiting()? < MAX_PENDING_INSERTS => {
                Ok(applied)
            }
            sent => sent.map(|()| applied),
        }
    }

    fn maintain(&mut self, limits: &StoreLimits, now: Seconds, ran: Duration) -> Result<bool> {
        let more = self.outbox.store.maintain(limits, now, ran)?;
        self.send()?;
        if !ran.is_zero() {
            for level in [RollUpLevel::Minute, RollUpLevel::Hour] {
                if let Some(kept) = limits.retention(level) {
                    self.remove(level, kept, now)?;
                }
            }
        }
        Ok(more)
    }
}

/// Length in seconds of a level's partitions, which are removed whole; `None` if its rows are kept forever.
fn partition(level: RollUpLevel) -> Option<Seconds> {
    match level {
        RollUpLevel::Minute => Some(7 * 86_400),
        RollUpLevel::Hour => Some(30 * 86_400),
        RollUpLevel::Day | RollUpLevel::Month => None,
    }
}

fn tables_of(settings: &Settings) -> Vec<String> {
    let mut tables = vec![
        "CREATE TABLE IF NOT EXISTS tally_setting (name String, value String) ENGINE = ReplacingMergeTree ORDER BY name"
            .to_owned(),
    ];
    let sum = "SimpleAggregateFunction(sum, Float64)";
    let classes: String = sql::classes(&settings.bounds)
        .iter()
        .map(|class| format!(", {class} {sum}"))
        .collect();
    for level in RollUpLevel::ALL {
        let partitions = match partition(level) {
            Some(length) => format!("PARTITION BY intDiv(start, {length})"),
            None => String::new(),
        };
        let engine = |key: &str| {
            format!(
                "ENGINE = AggregatingMergeTree {partitions} ORDER BY ({key})
                 SETTINGS non_replicated_deduplication_window = {TOKEN_WINDOW_INSERTS}"
            )
        };
        tables.push(format!(
            "CREATE TABLE IF NOT EXISTS {} (start Int64, tag String, events {sum},
             total SimpleAggregateFunction(sum, Nullable(Float64)), smallest SimpleAggregateFunction(min, Nullable(Float64)),
             largest SimpleAggregateFunction(max, Nullable(Float64)), latest SimpleAggregateFunction(anyLast, Nullable(Float64))
             {classes}) {}",
            sql::table(level),
            engine("tag, start")
        ));
        tables.push(format!(
            "CREATE TABLE IF NOT EXISTS {} (start Int64, tag String, bucket Int16, events {sum}) {}",
            sql::bucket_table(level),
            engine("tag, start, bucket")
        ));
    }
    tables
}
