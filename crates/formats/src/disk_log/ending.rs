//! End and length of an interval in the JSON of sadf.

use super::calendar::{Calendar, Instant};
use super::stamp::stamp;

/// The object `timestamp`, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct TimestampFields {
    date: String,
    time: String,
    is_utc: bool,
    /// Seconds.
    pub(crate) interval: Option<f64>,
}

impl TimestampFields {
    /// Takes a number of it.
    pub(crate) fn number(&mut self, key: &str, number: f64) {
        match key {
            "utc" => self.is_utc = number != 0.0,
            "interval" => self.interval = Some(number),
            _ => {}
        }
    }

    /// Takes a text of it.
    pub(crate) fn text(&mut self, key: &str, text: String) {
        match key {
            "date" => self.date = text,
            "time" => self.time = text,
            _ => {}
        }
    }

    /// The end.
    pub(crate) fn instant(&self, calendar: &mut Calendar) -> Option<Instant> {
        let zone = if self.is_utc { " UTC" } else { "" };
        let stamp = stamp(&format!("{} {}{zone}", self.date, self.time))?;
        calendar.instant(&stamp)
    }
}
