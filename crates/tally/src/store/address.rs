//! Addresses of stores, and what a store is made with.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use record::Bytes;

use super::redact::without_password;
use super::{Archive, Result, SCHEMA, Store, StoreError, sqlite};
use crate::classes::Bounds;
use crate::level::{Level, Seconds, Zone};

/// Settings with which a store is made, and which it keeps.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Classes of response times.
    pub bounds: Bounds,
    /// Zone of hours, days and months.
    pub zone: Zone,
}

impl Settings {
    /// Settings as they stand in a store's table.
    pub(super) fn read(
        address: &str,
        mut value: impl FnMut(&str) -> Result<Option<String>>,
    ) -> Result<Settings> {
        let schema = value("schema")?;
        if schema.as_deref() != Some(&SCHEMA.to_string()) {
            return Err(StoreError::refused(format!(
                "{address} has schema {}, and this version of disksmith knows {SCHEMA}; use the version that wrote it",
                schema.as_deref().unwrap_or("–")
            )));
        }
        let broken =
            |what: String| StoreError::refused(format!("{address} has broken settings: {what}"));
        let bounds = value("classes_ms")?
            .unwrap_or_default()
            .parse()
            .map_err(broken)?;
        let zone = Zone::named(&value("timezone")?.unwrap_or_default()).map_err(broken)?;
        Ok(Settings { bounds, zone })
    }
}

/// Limits on what a store keeps.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Seconds for which minutes are kept.
    pub minutes: Seconds,
    /// Seconds for which hours are kept.
    pub hours: Seconds,
    /// Size of the store.
    pub size: Bytes,
    /// Number of tags.
    pub tags: u64,
    /// Levels that are not rolled up.
    pub off: Vec<Level>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            minutes: 14 * 86_400,
            hours: 366 * 86_400,
            size: Bytes::gib(10),
            tags: 1_000_000,
            off: Vec::new(),
        }
    }
}

impl Limits {
    /// Seconds for which a level is kept; `None` without a limit.
    pub fn kept(&self, level: Level) -> Option<Seconds> {
        match level {
            Level::Minute => Some(self.minutes),
            Level::Hour => Some(self.hours),
            Level::Day | Level::Month => None,
        }
    }
}

/// Address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    Mysql(super::mysql::Server),
    /// A database of ClickHouse.
    #[cfg(feature = "clickhouse")]
    Clickhouse(super::clickhouse::Server),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Address, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Address::Sqlite(path.into())),
            #[cfg(feature = "mysql")]
            Some(("mysql", server)) => server
                .strip_prefix("//")
                .unwrap_or(server)
                .parse()
                .map(Address::Mysql),
            #[cfg(feature = "clickhouse")]
            Some(("clickhouse", server)) => server
                .strip_prefix("//")
                .unwrap_or(server)
                .parse()
                .map(Address::Clickhouse),
            _ => Err(format!(
                "'{}' is no store; write it as sqlite:FILE, mysql://user@host:3306/database or clickhouse://user@host:8123/database?outbox=FILE",
                without_password(text)
            )),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "mysql")]
            Address::Mysql(server) => server.fmt(f),
            #[cfg(feature = "clickhouse")]
            Address::Clickhouse(server) => server.fmt(f),
        }
    }
}

impl Address {
    /// Opens the store to write, and makes it where there is none. `None` of a setting takes the store's own, or the
    /// default of a new one.
    ///
    /// # Errors
    /// Where it cannot be had, or has other settings.
    pub fn open(
        &self,
        bounds: Option<&Bounds>,
        zone: Option<&Zone>,
        limits: &Limits,
    ) -> Result<Box<dyn Store>> {
        let new = super::settings(
            bounds.cloned().unwrap_or_default(),
            zone.cloned().unwrap_or_else(Zone::utc),
        );
        let store: Box<dyn Store> = match self {
            Address::Sqlite(path) => Box::new(sqlite::SqliteStore::open(path, &new, limits.tags)?),
            #[cfg(feature = "mysql")]
            Address::Mysql(server) => {
                Box::new(super::mysql::MysqlStore::open(server, &new, limits.tags)?)
            }
            #[cfg(feature = "clickhouse")]
            Address::Clickhouse(server) => Box::new(super::clickhouse::ClickhouseStore::open(
                server,
                &new,
                limits.tags,
            )?),
        };
        let found = store.settings();
        if let Some(bounds) = bounds.filter(|bounds| **bounds != found.bounds) {
            return Err(StoreError::refused(format!(
                "{self} has the classes {}, and not {bounds}; leave --classes out, or take another store",
                found.bounds
            )));
        }
        if let Some(zone) = zone.filter(|zone| zone.name() != found.zone.name()) {
            return Err(StoreError::refused(format!(
                "the days of {self} are of {}, and not of {}; leave --timezone out, or take another store",
                found.zone.name(),
                zone.name()
            )));
        }
        Ok(store)
    }

    /// Opens the store to read.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub fn open_archive(&self) -> Result<Box<dyn Archive>> {
        match self {
            Address::Sqlite(path) => sqlite::open_archive(path),
            #[cfg(feature = "mysql")]
            Address::Mysql(server) => super::mysql::open_archive(server),
            #[cfg(feature = "clickhouse")]
            Address::Clickhouse(server) => super::clickhouse::open_archive(server),
        }
    }
}
