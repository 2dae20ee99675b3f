//! Hours and days, as users write them.

use std::str::FromStr;

use domain::ready_by::ReadyBy;
use jiff::civil;

/// Hours of a day, in the time zone of this host; they may extend past midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// Start of the hours.
    pub from: civil::Time,
    /// End of the hours.
    pub to: civil::Time,
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Hours, String> {
        let time = |text: &str| -> Option<civil::Time> {
            text.contains(':')
                .then(|| text.trim().parse().ok())
                .flatten()
        };
        let hours = text
            .split_once('-')
            .and_then(|(from, to)| Some((time(from)?, time(to)?)));
        match hours {
            Some((from, to)) if from != to => Ok(Hours { from, to }),
            Some(_) => Err(format!(
                "'{text}' is an empty window, or all day; leave it out"
            )),
            None => Err(format!("'{text}' is not a window; write it as 01:00-06:00")),
        }
    }
}

/// Time by which a scrub is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueBy {
    /// The next start of this day of the week.
    Weekday(civil::Weekday),
    /// The start of this day.
    Date(civil::Date),
    /// A time.
    At(ReadyBy),
}

impl FromStr for DueBy {
    type Err = String;

    fn from_str(text: &str) -> Result<DueBy, String> {
        use civil::Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
        let lower = text.to_lowercase();
        let days = [
            (Monday, "monday"),
            (Tuesday, "tuesday"),
            (Wednesday, "wednesday"),
            (Thursday, "thursday"),
            (Friday, "friday"),
            (Saturday, "saturday"),
            (Sunday, "sunday"),
        ];
        let is_day = |name: &str| name == lower || name.get(..3) == Some(lower.as_str());
        if let Some((day, _)) = days.into_iter().find(|(_, name)| is_day(name)) {
            return Ok(DueBy::Weekday(day));
        }
        let is_date = text.len() == 10;
        if let Some(date) = is_date.then(|| text.parse().ok()).flatten() {
            return Ok(DueBy::Date(date));
        }
        text.parse().map(DueBy::At).map_err(|_| {
            format!(
                "'{text}' is not a time; write it as sunday, 2026-11-29, 18:00 or 2026-11-29T18:00"
            )
        })
    }
}
