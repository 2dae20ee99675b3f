//! Addresses of stores.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::piece::Movable;
use super::redact::without_password;
use super::{Archive, Result, Settings, Store, StoreError, StoreLimits, sqlite};
use crate::classes::ClassBounds;
use crate::level::Zone;

/// Where a store is: a file or a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// Path of a SQLite file.
    Sqlite(PathBuf),
    /// A database of MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    Mysql(super::mysql::MysqlAddress),
    /// A database of ClickHouse.
    #[cfg(feature = "clickhouse")]
    Clickhouse(super::clickhouse::ClickhouseAddress),
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<StoreAddress, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(StoreAddress::Sqlite(path.into())),
            #[cfg(feature = "mysql")]
            Some(("mysql", server)) => server
                .strip_prefix("//")
                .unwrap_or(server)
                .parse()
                .map(StoreAddress::Mysql),
            #[cfg(feature = "clickhouse")]
            Some(("clickhouse", server)) => server
                .strip_prefix("//")
                .unwrap_or(server)
                .parse()
                .map(StoreAddress::Clickhouse),
            #[cfg(not(feature = "mysql"))]
            Some(("mysql", _)) => Err(crate::features::missing_feature_error("mysql")),
            #[cfg(not(feature = "clickhouse"))]
            Some(("clickhouse", _)) => Err(crate::features::missing_feature_error("clickhouse")),
            _ => Err(format!(
                "'{}' is no store; write it as sqlite:FILE, mysql://user@host:3306/database or clickhouse://user@host:8123/database?outbox=FILE",
                without_password(text)
            )),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "mysql")]
            StoreAddress::Mysql(server) => server.fmt(f),
            #[cfg(feature = "clickhouse")]
            StoreAddress::Clickhouse(server) => server.fmt(f),
        }
    }
}

impl StoreAddress {
    /// Opens the store to write, and creates it where it does not exist. A setting that is `None` is the existing
    /// store's own, or the default for a new store.
    ///
    /// # Errors
    /// When the store cannot be opened or created, or has other settings.
    pub fn open(
        &self,
        bounds: Option<&ClassBounds>,
        zone: Option<&Zone>,
        limits: &StoreLimits,
    ) -> Result<Box<dyn Store>> {
        let new = Settings {
            bounds: bounds.cloned().unwrap_or_default(),
            zone: zone.cloned().unwrap_or_else(Zone::utc),
        };
        let store: Box<dyn Store> =
            match self {
                StoreAddress::Sqlite(path) => {
                    Box::new(sqlite::SqliteStore::open(path, &new, limits.tags)?)
                }
                #[cfg(feature = "mysql")]
                StoreAddress::Mysql(server) => {
                    Box::new(super::mysql::MysqlStore::open(server, &new, limits.tags)?)
                }
                #[cfg(feature = "clickhouse")]
                StoreAddress::Clickhouse(server) => Box::new(
                    super::clickhouse::ClickhouseStore::open(server, &new, limits.tags)?,
                ),
            };
        self.check_settings(bounds, zone, store.settings())?;
        Ok(store)
    }

    /// Checks that a file that is a store has these settings, and changes nothing. Servers are not asked, and what else
    /// is wrong with a file is found when it is opened.
    ///
    /// # Errors
    /// Where it has other settings.
    pub fn check(&self, bounds: Option<&ClassBounds>, zone: Option<&Zone>) -> Result<()> {
        match self {
            StoreAddress::Sqlite(path) => match sqlite::open_archive(path) {
                Ok(store) => self.check_settings(bounds, zone, store.settings()),
                Err(_) => Ok(()),
            },
            #[cfg(any(feature = "clickhouse", feature = "mysql"))]
            _ => Ok(()),
        }
    }

    /// Checks that the settings that were found in the store are those that were asked for.
    fn check_settings(
        &self,
        bounds: Option<&ClassBounds>,
        zone: Option<&Zone>,
        found: &Settings,
    ) -> Result<()> {
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
        Ok(())
    }

    /// Opens a store of SQLite or MySQL to move rows to or from another store, and creates it with the other store's
    /// settings where it does not exist.
    ///
    /// # Errors
    /// When the store cannot be opened or created, has other settings than the other store, or is one of ClickHouse.
    pub fn open_movable(&self, settings: &Settings) -> Result<Box<dyn Movable>> {
        // Rows are moved with the tags that they have: none is summed as `other`.
        let tags = u64::MAX;
        let store: Box<dyn Movable> = match self {
            StoreAddress::Sqlite(path) => {
                Box::new(sqlite::SqliteStore::open(path, settings, tags)?)
            }
            #[cfg(feature = "mysql")]
            StoreAddress::Mysql(server) => {
                Box::new(super::mysql::MysqlStore::open(server, settings, tags)?)
            }
            #[cfg(feature = "clickhouse")]
            StoreAddress::Clickhouse(_) => {
                return Err(StoreError::refused(format!(
                    "{self}: only rows of sqlite: and mysql:// are moved; ClickHouse has no transaction to do it in"
                )));
            }
        };
        match store.settings().is_like(settings) {
            true => Ok(store),
            false => Err(StoreError::refused(format!(
                "{self} has other classes or another time zone than the other store, so that its sums are different"
            ))),
        }
    }

    /// Opens the store to read.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    pub fn open_archive(&self) -> Result<Box<dyn Archive>> {
        match self {
            StoreAddress::Sqlite(path) => sqlite::open_archive(path),
            #[cfg(feature = "mysql")]
            StoreAddress::Mysql(server) => super::mysql::open_archive(server),
            #[cfg(feature = "clickhouse")]
            StoreAddress::Clickhouse(server) => super::clickhouse::open_archive(server),
        }
    }
}
