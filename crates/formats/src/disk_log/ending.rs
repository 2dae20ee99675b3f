//! End and length of an interval in sadf's JSON.

use super::calendar::{Calendar, Instant};
use super::stamp::stamp;

/// Fields of the object `timestamp` that were read so far.
#[derive(Debug, Default)]
pub(crate) struct TimestampFields {
    date: String,
    time: String,
    is_utc: bool,
    /// Length of the interval in seconds.
    pub(crate) interval: Option<f64>,
}

impl TimestampFields {
    /// Sets a numeric field.
    pub(crate) fn number(&mut self, key: &str, number: f64) {
        match key {
            "utc" => self.is_utc = number != 0.0,
            "interval" => self.interval = Some(number),
            _ => {}
        }
    }

    /// Sets a text field.
    pub(crate) fn text(&mut self, key: &str, text: String) {
        match key {
            "date" => self.date = text,
            "time" => self.time = text,
            _ => {}
        }
    }

    /// The end of the interval.
    pub(crate) fn instant(&self, calendar: &mut Calendar) -> Option<Instant> {
        let zone = if self.is_utc { " UTC" } else { "" };
        let stamp = stamp(&format!("{} {}{zone}", self.date, self.time))?;
        calendar.instant(&stamp)
    }
}
