//! Levels of roll-ups, and the periods of a level in a time zone.
//!
//! Each level is made of whole periods of the level below: an hour of minutes, a day of hours, a month of days. So a
//! coarser sum is the sum of finer ones, whatever the zone: hours begin at the zone's full hours, and an hour belongs
//! to the day in which it begins.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Seconds since 1970 (UTC).
pub type Seconds = i64;

/// Length of a minute.
pub const MINUTE: Seconds = 60;
/// Length of an hour.
pub const HOUR: Seconds = 3600;

/// The earliest time of an event: 1970.
pub const MIN_TIME: Seconds = 0;
/// The latest time of an event: 2200. A later time comes from a wrong clock or unit.
pub const MAX_TIME: Seconds = 7_258_118_400;

/// Length of the periods of a roll-up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum, serde::Serialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RollUpLevel {
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Months.
    Month,
}

impl RollUpLevel {
    /// All levels, the finest first.
    pub const ALL: [RollUpLevel; 4] = [
        RollUpLevel::Minute,
        RollUpLevel::Hour,
        RollUpLevel::Day,
        RollUpLevel::Month,
    ];

    /// Name, as in tables of stores and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            RollUpLevel::Minute => "minute",
            RollUpLevel::Hour => "hour",
            RollUpLevel::Day => "day",
            RollUpLevel::Month => "month",
        }
    }

    /// Mean length of its periods, in seconds.
    pub const fn seconds(self) -> f64 {
        match self {
            RollUpLevel::Minute => 60.0,
            RollUpLevel::Hour => 3600.0,
            RollUpLevel::Day => 86_400.0,
            // A twelfth of the Gregorian year.
            RollUpLevel::Month => 2_629_746.0,
        }
    }

    /// The level with this name.
    pub fn named(name: &str) -> Option<RollUpLevel> {
        RollUpLevel::ALL
            .into_iter()
            .find(|level| level.name() == name)
    }

    /// The level that this one is made of.
    pub const fn finer(self) -> Option<RollUpLevel> {
        match self {
            RollUpLevel::Minute => None,
            RollUpLevel::Hour => Some(RollUpLevel::Minute),
            RollUpLevel::Day => Some(RollUpLevel::Hour),
            RollUpLevel::Month => Some(RollUpLevel::Day),
        }
    }

    /// The level that is made of this one.
    pub const fn coarser(self) -> Option<RollUpLevel> {
        match self {
            RollUpLevel::Minute => Some(RollUpLevel::Hour),
            RollUpLevel::Hour => Some(RollUpLevel::Day),
            RollUpLevel::Day => Some(RollUpLevel::Month),
            RollUpLevel::Month => None,
        }
    }
}

/// Time zone of hours, days and months.
#[derive(Clone, Debug)]
pub struct Zone {
    zone: TimeZone,
    name: String,
    /// Offset of the zone's full hours from those of UTC, in seconds.
    hour_offset: Seconds,
}

impl Zone {
    /// The zone of this name in the IANA database; `UTC` does not need the database.
    ///
    /// # Errors
    /// If this host has no such zone.
    pub fn named(name: &str) -> Result<Zone, String> {
        let zone = match name {
            "UTC" => TimeZone::UTC,
            _ => TimeZone::get(name).map_err(|error| {
                format!("'{name}' is not a time zone of this host ({error}); write it as Europe/Berlin or UTC")
            })?,
        };
        // Lord Howe Island moves its clocks by half an hour: the full hours of its standard time (July) are used all
        // year.
        let standard = Timestamp::from_second(1_751_328_000).unwrap_or_default();
        let offset = Seconds::from(zone.to_offset(standard).seconds());
        Ok(Zone {
            name: name.to_owned(),
            hour_offset: offset.rem_euclid(HOUR),
            zone,
        })
    }

    /// Coordinated Universal Time.
    pub fn utc() -> Zone {
        Zone {
            zone: TimeZone::UTC,
            name: "UTC".to_owned(),
            hour_offset: 0,
        }
    }

    /// Name of the time zone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zone, to print times in.
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Start of the period that holds a moment.
    pub fn start(&self, level: RollUpLevel, at: Seconds) -> Seconds {
        match level {
            RollUpLevel::Minute => at - at.rem_euclid(MINUTE),
            RollUpLevel::Hour => at - (at + self.hour_offset).rem_euclid(HOUR),
            RollUpLevel::Day => self.midnight(self.date(at)),
            RollUpLevel::Month => self.midnight(self.date(at).first_of_month()),
        }
    }

    /// Start of the period after the one that holds a moment.
    pub fn next(&self, level: RollUpLevel, at: Seconds) -> Seconds {
        match level {
            RollUpLevel::Minute => self.start(level, at) + MINUTE,
            RollUpLevel::Hour => self.start(level, at) + HOUR,
            RollUpLevel::Day => self.midnight(later(self.date(at), 1.day())),
            RollUpLevel::Month => self.midnight(later(self.date(at).first_of_month(), 1.month())),
        }
    }

    /// The date of the hour that holds a moment: the date on which that hour begins.
    fn date(&self, at: Seconds) -> Date {
        let hour = self.start(RollUpLevel::Hour, at);
        let moment = Timestamp::from_second(hour).unwrap_or_default();
        moment.to_zoned(self.zone.clone()).date()
    }

    /// Start of the first hour that begins on a date.
    fn midnight(&self, date: Date) -> Seconds {
        let moment = date.to_zoned(self.zone.clone());
        let at = moment.map_or(0, |zoned| zoned.timestamp().as_second());
        let hour = self.start(RollUpLevel::Hour, at);
        if hour < at { hour + HOUR } else { hour }
    }
}

fn later(date: Date, span: jiff::Span) -> Date {
    date.checked_add(span).unwrap_or(Date::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Seconds {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    #[test]
    fn periods_are_those_of_the_zone() {
        for (zone, level, moment, start, next) in [
            (
                "UTC",
                RollUpLevel::Minute,
                "2026-11-24T10:20:30Z",
                "2026-11-24T10:20:00Z",
                "2026-11-24T10:21:00Z",
            ),
            (
                "UTC",
                RollUpLevel::Month,
                "2026-12-31T23:59:59Z",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                "Asia/Kolkata",
                RollUpLevel::Hour,
                "2026-11-24T10:20:30Z",
                "2026-11-24T09:30:00Z",
                "2026-11-24T10:30:00Z",
            ),
            (
                "Asia/Kolkata",
                RollUpLevel::Day,
                "2026-11-24T10:20:30Z",
                "2026-11-23T18:30:00Z",
                "2026-11-24T18:30:00Z",
            ),
            (
                "Australia/Lord_Howe",
                RollUpLevel::Hour,
                "2026-01-01T00:10:00Z",
                "2025-12-31T23:30:00Z",
                "2026-01-01T00:30:00Z",
            ),
            // 25 hours, and 23.
            (
                "Europe/Berlin",
                RollUpLevel::Day,
                "2026-10-25T12:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                "Europe/Berlin",
                RollUpLevel::Day,
                "2026-03-29T12:00:00Z",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                "Europe/Berlin",
                RollUpLevel::Month,
                "2026-10-31T23:30:00Z",
                "2026-10-31T23:00:00Z",
                "2026-11-30T23:00:00Z",
            ),
        ] {
            let zone = Zone::named(zone).unwrap();
            assert_eq!(zone.start(level, at(moment)), at(start), "{moment}");
            assert_eq!(zone.next(level, at(moment)), at(next), "{moment}");
        }
        assert!(Zone::named("Europe/Nowhere").is_err());
    }

    proptest! {
        #[test]
        fn a_period_is_made_of_whole_finer_ones(
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/New_York", "America/Havana", "Africa/Cairo"]),
            at in 1_600_000_000_i64..1_900_000_000,
        ) {
            let zone = Zone::named(zone).unwrap();
            for level in [RollUpLevel::Hour, RollUpLevel::Day, RollUpLevel::Month] {
                let finer = level.finer().unwrap();
                let (start, next) = (zone.start(level, at), zone.next(level, at));
                prop_assert!(start <= at && at < next);
                for edge in [start, next] {
                    prop_assert_eq!(zone.start(finer, edge), edge);
                    prop_assert_eq!(zone.start(level, edge), edge);
                }
                prop_assert_eq!(zone.start(level, next - 1), start);
                prop_assert_eq!(zone.start(level, zone.start(finer, at)), start);
            }
        }
    }
}
