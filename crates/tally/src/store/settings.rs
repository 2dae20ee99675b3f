//! Settings with which a store is made, and limits on what it keeps.

use record::Bytes;

use super::{Result, SCHEMA, StoreError};
use crate::classes::ClassBounds;
use crate::level::{RollUpLevel, Seconds, Zone};

/// Settings with which a store is made, and which it keeps.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Classes of response times.
    pub bounds: ClassBounds,
    /// Zone of hours, days and months.
    pub zone: Zone,
}

impl Settings {
    /// True if sums under these settings and under `other` can be added.
    pub fn is_like(&self, other: &Settings) -> bool {
        self.bounds == other.bounds && self.zone.name() == other.zone.name()
    }

    /// Settings from the values in a store's table.
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
pub struct StoreLimits {
    /// Seconds for which minutes are kept.
    pub minutes: Seconds,
    /// Seconds for which hours are kept.
    pub hours: Seconds,
    /// Maximum bytes of the store.
    pub size: Bytes,
    /// Maximum number of tags.
    pub tags: u64,
    /// Levels that are not rolled up.
    pub off: Vec<RollUpLevel>,
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits {
            minutes: 14 * 86_400,
            hours: 366 * 86_400,
            size: Bytes::gib(10),
            tags: 1_000_000,
            off: Vec::new(),
        }
    }
}

impl StoreLimits {
    /// Seconds for which a level is kept; `None` without a limit.
    pub fn retention(&self, level: RollUpLevel) -> Option<Seconds> {
        match level {
            RollUpLevel::Minute => Some(self.minutes),
            RollUpLevel::Hour => Some(self.hours),
            RollUpLevel::Day | RollUpLevel::Month => None,
        }
    }
}
