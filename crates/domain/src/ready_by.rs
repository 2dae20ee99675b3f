//! A time at which something must be done.

use std::str::FromStr;

use jiff::{Timestamp, ToSpan as _, Zoned, civil};

/// A time of day, or a time on a certain day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyBy {
    /// The next occurrence of this time of day, in the time zone of this host.
    Clock(civil::Time),
    /// A time on a certain day, in the time zone of this host.
    Day(civil::DateTime),
    /// A moment, given with its offset from UTC.
    Moment(Timestamp),
}

impl FromStr for ReadyBy {
    type Err = String;

    fn from_str(text: &str) -> Result<ReadyBy, String> {
        let digits = text.as_bytes();
        let is_clock = digits.len() <= 8 && digits.contains(&b':');
        let clock = is_clock.then(|| text.parse().ok()).flatten();
        let moment = || text.parse().ok().map(ReadyBy::Moment);
        let day = || text.parse().ok().map(ReadyBy::Day);
        clock
            .map(ReadyBy::Clock)
            .or_else(moment)
            .or_else(day)
            .ok_or_else(|| {
                format!(
                    "'{text}' is not a time; write it as 18:00, or with its day as 2026-11-22T18:00"
                )
            })
    }
}

impl ReadyBy {
    /// The moment that is meant, if the present time is `now`.
    ///
    /// # Errors
    /// When there is no such time on that day, or no such day.
    pub fn moment(self, now: &Zoned) -> Result<Zoned, jiff::Error> {
        match self {
            ReadyBy::Moment(moment) => Ok(moment.to_zoned(now.time_zone().clone())),
            ReadyBy::Day(day) => day.to_zoned(now.time_zone().clone()),
            ReadyBy::Clock(time) => {
                let today = now.with().time(time).build()?;
                if today > *now {
                    Ok(today)
                } else {
                    now.checked_add(1.day())?.with().time(time).build()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let now = at("2026-11-22T17:00:00+01:00[Europe/Berlin]");
        for (text, wanted) in [
            ("18:00", "2026-11-22T18:00:00+01:00[Europe/Berlin]"),
            ("17:00", "2026-11-23T17:00:00+01:00[Europe/Berlin]"),
            ("06:30:15", "2026-11-23T06:30:15+01:00[Europe/Berlin]"),
            (
                "2026-12-24T18:00",
                "2026-12-24T18:00:00+01:00[Europe/Berlin]",
            ),
            (
                "2026-12-24 18:00",
                "2026-12-24T18:00:00+01:00[Europe/Berlin]",
            ),
            (
                "2026-11-22T20:00Z",
                "2026-11-22T21:00:00+01:00[Europe/Berlin]",
            ),
        ] {
            let ready: ReadyBy = text.parse().unwrap();
            assert_eq!(ready.moment(&now).unwrap(), at(wanted), "{text}");
        }
        for text in ["", "soon", "25:00", "18", "2026-13-01T00:00"] {
            assert!(text.parse::<ReadyBy>().is_err(), "{text}");
        }
    }
}
