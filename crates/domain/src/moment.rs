//! Times in the notation of users.

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

/// Number of characters of a date, such as `2026-11-20`.
const DATE_LENGTH: usize = 10;

/// A moment, or a whole day if only a date was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MomentOrDay {
    /// The moment, or the beginning of the day.
    pub at: Timestamp,
    /// End of the day; `None` for a moment.
    pub day_ends: Option<Timestamp>,
}

impl FromStr for MomentOrDay {
    type Err = String;

    /// Parses a moment in this host's time zone, unless the text names another.
    fn from_str(text: &str) -> Result<MomentOrDay, String> {
        MomentOrDay::read(text.trim(), &Zoned::now())
    }
}

impl MomentOrDay {
    fn read(text: &str, now: &Zoned) -> Result<MomentOrDay, String> {
        let wrong = || {
            format!(
                "'{text}' is not a time; write it as '2026-11-20 03:00', 2026-11-20, 03:00, -2h, \
                 yesterday or 2026-11-20T03:00:00Z"
            )
        };
        let moment = |at: Timestamp| MomentOrDay { at, day_ends: None };
        if let Some(ago) = text.strip_prefix('-') {
            let ago: record::Nanos = ago.parse().map_err(|_| wrong())?;
            let ago = SignedDuration::from_nanos(i64::try_from(ago.0).map_err(|_| wrong())?);
            let at = now.timestamp().checked_sub(ago).map_err(|_| wrong())?;
            return Ok(moment(at));
        }
        match text {
            "now" => return Ok(moment(now.timestamp())),
            "today" => return day(now.date(), now).ok_or_else(wrong),
            "yesterday" => {
                let date = now.date().yesterday().map_err(|_| wrong())?;
                return day(date, now).ok_or_else(wrong);
            }
            _ => {}
        }
        if let Ok(at) = text.parse::<Timestamp>() {
            return Ok(moment(at));
        }
        let in_zone = |time: DateTime| {
            let zoned = time.to_zoned(now.time_zone().clone());
            zoned.map(|zoned| moment(zoned.timestamp())).ok()
        };
        // A zone's name in brackets is the intended zone, which a civil time would ignore.
        if text.contains('[') {
            let zoned = text.parse::<Zoned>().map_err(|_| wrong())?;
            return Ok(moment(zoned.timestamp()));
        }
        // A date may be followed by a time, or is a whole day; a time alone is of today. The date parser ignores any
        // text after a date, so that only the length shows that there is none.
        let is_day = text.len() == DATE_LENGTH;
        let found = match (text.contains('-'), text.contains(':')) {
            (true, false) if is_day => text.parse::<Date>().ok().and_then(|date| day(date, now)),
            (true, _) => text.parse::<DateTime>().ok().and_then(in_zone),
            (false, true) => text
                .parse::<Time>()
                .ok()
                .and_then(|time| in_zone(now.date().to_datetime(time))),
            (false, false) => None,
        };
        found.ok_or_else(wrong)
    }
}

fn day(date: Date, now: &Zoned) -> Option<MomentOrDay> {
    let begins = date.to_zoned(now.time_zone().clone()).ok()?;
    let ends = begins.checked_add(1.day()).ok()?;
    Some(MomentOrDay {
        at: begins.timestamp(),
        day_ends: Some(ends.timestamp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let now: Zoned = "2026-11-21T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        MomentOrDay::read(text, &now).map(|when| when.at.to_string())
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        for (text, at) in [
            ("2026-11-20 03:00", "2026-11-20T02:00:00Z"),
            ("2026-11-20T03:00:30", "2026-11-20T02:00:30Z"),
            ("2026-11-20T03:00:00Z", "2026-11-20T03:00:00Z"),
            ("2026-11-20 03:00:00+05:00", "2026-11-19T22:00:00Z"),
            ("2026-07-20 03:00", "2026-07-20T01:00:00Z"),
            ("2026-11-20 03", "2026-11-20T02:00:00Z"),
            ("2026-11-20T0300", "2026-11-20T02:00:00Z"),
            ("2026-11-20T03:00[Asia/Tokyo]", "2026-11-19T18:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("03:00", "2026-11-21T02:00:00Z"),
            ("-2h", "2026-11-21T09:00:00Z"),
            ("yesterday", "2026-11-19T23:00:00Z"),
            ("now", "2026-11-21T11:00:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(at), "{text}");
        }
        for wrong in [
            "",
            "soon",
            "2026-13-01",
            "25:00",
            "-",
            "-2x",
            "1763600000",
            "2026-11",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_date_alone_is_the_whole_day_also_when_clocks_are_set() {
        let now: Zoned = "2026-11-21T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let day = MomentOrDay::read("2026-10-25", &now).unwrap();
        let hours = day.day_ends.unwrap().duration_since(day.at).as_hours();
        assert_eq!(hours, 25);
        for moment in ["2026-10-25 03", "2026-10-25T0300", "2026-10-25 03:00"] {
            assert_eq!(
                MomentOrDay::read(moment, &now).unwrap().day_ends,
                None,
                "{moment}"
            );
        }
    }
}
