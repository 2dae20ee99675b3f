//! Instants of printed times.

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

/// Dates of a log, as far as they are known.
#[derive(Debug)]
pub(crate) struct Calendar {
    zone: TimeZone,
    /// The order that a date showed which has no other reading.
    proven: Option<DateOrder>,
    /// The order that was assumed, where dates can be read both ways.
    assumed: Option<DateOrder>,
    /// Figures with decimal commas were seen.
    pub(crate) commas: bool,
    /// The date of the header line of the run.
    pub(crate) header: Option<RawDate>,
    /// The date of the last time, for those that are printed without.
    today: Option<Date>,
    last: Option<Timestamp>,
    /// The last time in the other order of day and month.
    last_other: Option<Timestamp>,
}

/// Instant of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) at: Timestamp,
    /// Instant of the time before it, where only this one shows it.
    pub(crate) corrected: Option<Timestamp>,
}

/// Maximum distance of two readings in a log, where one of two ways to read a date keeps it.
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

impl Calendar {
    /// A calendar with the zone of times that name none.
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

    /// Order of day and month that was assumed, where no date of the log has shown it.
    pub(crate) fn assumed(&self) -> Option<DateOrder> {
        self.assumed.filter(|_| self.proven.is_none())
    }

    /// Takes the date of the line in which a run names its host.
    pub(crate) fn begin_run(&mut self, header: Option<RawDate>) {
        self.header = header;
        self.today = None;
        if let Some(date) = header {
            self.prove(date);
        }
    }

    /// The instant of a time. `None` when it has no date, or an impossible one.
    pub(crate) fn instant(&mut self, stamp: &PrintedTimestamp) -> Option<Instant> {
        let was_open = self.proven.is_none();
        let before = self.last_other.take();
        let at = match stamp.date {
            Some(raw) => self.dated(stamp, raw, before),
            None => self.undated(stamp),
        }?;
        self.last = Some(at);
        // The times so far were read in the order that was assumed, and it was the wrong one.
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

    /// Reads a date that can be read both ways, in the way with which the log continues.
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
        // Past midnight, the time is smaller than before.
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

    /// The instant of a local time. Where the clock was set back at the end of summer, an hour comes twice; it is the
    /// second one where the first lies before the last time that was read.
    fn in_zone(&self, local: DateTime) -> Option<Timestamp> {
        let first = self.zone.to_ambiguous_timestamp(local).compatible().ok()?;
        let second = self.zone.to_ambiguous_timestamp(local).later().ok()?;
        match self.last {
            Some(last) if first < last && last <= second => Some(second),
            _ => Some(first),
        }
    }

    /// Notes the order where a date has only one.
    fn prove(&mut self, raw: RawDate) {
        if raw.year_first || self.proven.is_some() {
            return;
        }
        let day_first = date(raw, DateOrder::DayFirst).is_some();
        let month_first = date(raw, DateOrder::MonthFirst).is_some();
        self.proven = match (day_first, month_first) {
            (true, false) => Some(DateOrder::DayFirst),
            (false, true) => Some(DateOrder::MonthFirst),
            // Every locale that parts dates by dots has the day in front.
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
    // Two digits are of the century in which there is sysstat.
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
        // By the month it would be a month later; by the day, a second is gone since 3 April.
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
