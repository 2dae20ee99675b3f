//! Converts printed times to timestamps.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::stamp::{PrintedTimestamp, RawDate};

/// The order of day and month in dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// 31.12.2026.
    DayFirst,
    /// 12/31/2026.
    MonthFirst,
}

/// State for reading the dates of a log.
#[derive(Debug)]
pub(crate) struct Calendar {
    zone: TimeZone,
    /// The order of day and month that an unambiguous date has shown.
    proven: Option<DateOrder>,
    /// The order that was assumed for ambiguous dates.
    assumed: Option<DateOrder>,
    /// True if figures with decimal commas were seen.
    pub(crate) commas: bool,
    /// The date of the header line of the run.
    pub(crate) header: Option<RawDate>,
    /// The date of the last time, for times that are printed without a date.
    today: Option<Date>,
    last: Option<Timestamp>,
    /// The last time, if it is read in the other order of day and month.
    last_other: Option<Timestamp>,
}

/// Instant of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) at: Timestamp,
    /// Correct timestamp of the previous time, if this one shows that it was read in the wrong order.
    pub(crate) corrected: Option<Timestamp>,
}

/// Maximum interval between two readings: an ambiguous date is read in the order that keeps it.
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

impl Calendar {
    /// A calendar; `zone` is the zone of times that name none.
    pub(crate) fn new(zone: TimeZone, order: Option<DateOrder>) -> Calendar {
        Calendar {
            zone,
            proven: order,
            assumed: None,
            commas: false,
            header: None,
            today: None,
            last: None,
            last_other: None,
        }
    }

    /// Order of day and month that was assumed; `None` if a date of the log has shown the order.
    pub(crate) fn assumed(&self) -> Option<DateOrder> {
        self.assumed.filter(|_| self.proven.is_none())
    }

    /// Begins a run; `header` is the date of its line that names the host.
    pub(crate) fn begin_run(&mut self, header: Option<RawDate>) {
        self.header = header;
        self.today = None;
        if let Some(date) = header {
            self.prove(date);
        }
    }

    /// The timestamp of a printed time; `None` if it has no date, or an impossible one.
    pub(crate) fn instant(&mut self, stamp: &PrintedTimestamp) -> Option<Instant> {
        let was_open = self.proven.is_none();
        let before = self.last_other.take();
        let at = match stamp.date {
            Some(raw) => self.dated(stamp, raw, before),
            None => self.undated(stamp),
        }?;
        self.last = Some(at);
        // The earlier times were read in the assumed order, which was wrong.
        let is_wrong = was_open && self.proven.is_some() && self.assumed != self.proven;
        Some(Instant {
            at,
            corrected: before.filter(|_| is_wrong),
        })
    }

    fn dated(
        &mut self,
        stamp: &PrintedTimestamp,
        raw: RawDate,
        before: Option<Timestamp>,
    ) -> Option<Timestamp> {
        self.prove(raw);
        if raw.year_first {
            return self.at(stamp, date(raw, DateOrder::MonthFirst)?);
        }
        let Some(order) = self.proven else {
            return self.undecided(stamp, raw, before);
        };
        self.at(stamp, date(raw, order)?)
    }

    /// Reads an ambiguous date in the order in which it follows the previous time.
    fn undecided(
        &mut self,
        stamp: &PrintedTimestamp,
        raw: RawDate,
        before: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let order = *self.assumed.get_or_insert(likely(stamp, raw, self.commas));
        let other = match order {
            DateOrder::DayFirst => DateOrder::MonthFirst,
            DateOrder::MonthFirst => DateOrder::DayFirst,
        };
        let first = self.at(stamp, date(raw, order)?);
        let second = date(raw, other).and_then(|date| self.at(stamp, date));
        let goes_on = |instant: Option<Timestamp>, since: Option<Timestamp>| {
            let passed = instant?.duration_since(since?);
            Some((SignedDuration::ZERO..A_DAY).contains(&passed))
        };
        if goes_on(first, self.last) == Some(false) && goes_on(second, before) == Some(true) {
            self.proven = Some(other);
            return second;
        }
        self.last_other = second;
        first
    }

    fn undated(&mut self, stamp: &PrintedTimestamp) -> Option<Timestamp> {
        let today = match self.today {
            Some(today) => today,
            None => {
                let raw = self.header?;
                let order = match self.proven {
                    Some(order) => order,
                    None if raw.year_first => DateOrder::MonthFirst,
                    None => *self.assumed.get_or_insert(likely(stamp, raw, self.commas)),
                };
                date(raw, order)?
            }
        };
        let mut instant = self.at(stamp, today)?;
        let mut today = today;
        // A time of day that is earlier than the previous one belongs to the next date.
        if self.today.is_some()
            && self
                .last
                .is_some_and(|last| last.duration_since(instant) > A_DAY / 2)
        {
            today = today.tomorrow().ok()?;
            instant = self.at(stamp, today)?;
        }
        self.today = Some(today);
        Some(instant)
    }

    fn at(&self, stamp: &PrintedTimestamp, date: Date) -> Option<Timestamp> {
        let local = date.to_datetime(stamp.time);
        match stamp.offset {
            Some(offset) => offset.to_timestamp(local).ok(),
            None => self.in_zone(local),
        }
    }

    /// The timestamp of a local time. When daylight saving time ends, one hour occurs twice; it is the second one if
    /// the first is earlier than the last time that was read.
    fn in_zone(&self, local: DateTime) -> Option<Timestamp> {
        let first = self.zone.to_ambiguous_timestamp(local).compatible().ok()?;
        let second = self.zone.to_ambiguous_timestamp(local).later().ok()?;
        match self.last {
            Some(last) if first < last && last <= second => Some(second),
            _ => Some(first),
        }
    }

    /// Records the order of day and month if the date is unambiguous.
    fn prove(&mut self, raw: RawDate) {
        if raw.year_first || self.proven.is_some() {
            return;
        }
        let day_first = date(raw, DateOrder::DayFirst).is_some();
        let month_first = date(raw, DateOrder::MonthFirst).is_some();
        self.proven = match (day_first, month_first) {
            (true, false) => Some(DateOrder::DayFirst),
            (false, true) => Some(DateOrder::MonthFirst),
            // Every locale that separates dates by dots has the day first.
            (true, true) if raw.separator == '.' => Some(DateOrder::DayFirst),
            _ => None,
        };
    }
}

/// Likely order of a date: a clock of twelve hours and the short year of the C locale suggest the month first,
/// decimal commas and long years the day.
fn likely(stamp: &PrintedTimestamp, raw: RawDate, commas: bool) -> DateOrder {
    if raw.separator == '-' || commas {
        DateOrder::DayFirst
    } else if stamp.twelve_hours || !raw.long_year {
        DateOrder::MonthFirst
    } else {
        DateOrder::DayFirst
    }
}

fn date(raw: RawDate, order: DateOrder) -> Option<Date> {
    let [a, b, c] = raw.numbers;
    let (year, month, day) = match order {
        _ if raw.year_first => (a, b, c),
        DateOrder::DayFirst => (c, b, a),
        DateOrder::MonthFirst => (c, a, b),
    };
    // A two-digit year is in this century, since sysstat is not older.
    let year = if year < 100 { year + 2000 } else { year };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::stamp::{raw_date, stamp};
    use super::*;

    fn read(calendar: &mut Calendar, line: &str) -> String {
        let instant = calendar.instant(&stamp(line).unwrap());
        instant.map_or_else(|| "none".to_owned(), |instant| instant.at.to_string())
    }

    fn utc() -> Calendar {
        Calendar::new(TimeZone::UTC, None)
    }

    #[test]
    fn the_order_of_a_date_follows_from_its_form() {
        for (line, commas, instant) in [
            ("03/04/26 05:06:07", false, "2026-03-04T05:06:07Z"),
            ("03/04/26 05:06:07", true, "2026-04-03T05:06:07Z"),
            ("03/04/2026 05:06:07 AM", false, "2026-03-04T05:06:07Z"),
            ("03/04/2026 05:06:07", false, "2026-04-03T05:06:07Z"),
            ("03.04.2026 05:06:07", false, "2026-04-03T05:06:07Z"),
            ("2026-03-04 05:06:07", true, "2026-03-04T05:06:07Z"),
            ("31/12/26 05:06:07", false, "2026-12-31T05:06:07Z"),
            ("2026-03-04T05:06:07+0200", false, "2026-03-04T03:06:07Z"),
            ("40/40/26 05:06:07", false, "none"),
        ] {
            let mut calendar = utc();
            calendar.commas = commas;
            assert_eq!(read(&mut calendar, line), instant, "{line}");
        }
    }

    #[test]
    fn a_date_that_proves_the_order_is_believed_after() {
        let mut calendar = utc();
        calendar.begin_run(raw_date("25/03/26"));
        assert_eq!(
            read(&mut calendar, "03/04/26 00:00:00"),
            "2026-04-03T00:00:00Z"
        );
        assert_eq!(calendar.assumed(), None);
    }

    #[test]
    fn midnight_shows_the_order() {
        let mut calendar = utc();
        assert_eq!(
            read(&mut calendar, "03/04/26 23:59:59"),
            "2026-03-04T23:59:59Z"
        );
        assert_eq!(calendar.assumed(), Some(DateOrder::MonthFirst));
        // With the month first it would be a month later; with the day first, one second has passed since 3 April.
        let instant = calendar
            .instant(&stamp("04/04/26 00:00:00").unwrap())
            .unwrap();
        assert_eq!(instant.at.to_string(), "2026-04-04T00:00:00Z");
        assert_eq!(
            instant.corrected.unwrap().to_string(),
            "2026-04-03T23:59:59Z"
        );
        assert_eq!(calendar.assumed(), None);
    }

    #[test]
    fn the_hour_that_comes_twice_in_autumn_is_read_in_its_order() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut calendar = Calendar::new(zone, None);
        for (line, instant) in [
            ("2026-10-25 01:59:00", "2026-10-24T23:59:00Z"),
            ("2026-10-25 02:30:00", "2026-10-25T00:30:00Z"),
            ("2026-10-25 02:59:00", "2026-10-25T00:59:00Z"),
            ("2026-10-25 02:00:00", "2026-10-25T01:00:00Z"),
            ("2026-10-25 02:59:00", "2026-10-25T01:59:00Z"),
            ("2026-10-25 03:00:00", "2026-10-25T02:00:00Z"),
        ] {
            assert_eq!(read(&mut calendar, line), instant, "{line}");
        }
    }

    #[test]
    fn times_without_a_date_take_that_of_the_header() {
        let mut calendar = utc();
        calendar.begin_run(raw_date("12/31/2008"));
        assert_eq!(
            read(&mut calendar, "Time: 11:59:59 PM"),
            "2008-12-31T23:59:59Z"
        );
        assert_eq!(
            read(&mut calendar, "Time: 12:00:00 AM"),
            "2009-01-01T00:00:00Z"
        );
        assert_eq!(read(&mut utc(), "Time: 12:00:00 AM"), "none");
    }
}
