//! A pattern of times, as cron and systemd's calendars write them, and when it comes next.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};

/// How many days ahead a time is sought: the longest that a pattern of months, days and weekdays can
/// wait is a 29 February on one weekday over the turn of a century, 40 years.
const DAYS_AHEAD: u32 = 41 * 366;

/// A set of numbers from 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(u64);

impl Set {
    /// All numbers.
    pub(crate) const ALL: Set = Set(u64::MAX);

    /// One number; none where it is too large.
    pub(crate) fn of(number: u16) -> Set {
        Set(1_u64.checked_shl(number.into()).unwrap_or(0))
    }

    /// Whether it holds a number.
    pub(crate) fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.0.checked_shr(number).unwrap_or(0) & 1 == 1)
    }

    /// What is in both.
    #[must_use]
    pub(crate) fn and(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    /// What is in either.
    #[must_use]
    pub(crate) fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<u16> for Set {
    fn from_iter<I: IntoIterator<Item = u16>>(numbers: I) -> Set {
        numbers
            .into_iter()
            .fold(Set(0), |set, number| set.or(Set::of(number)))
    }
}

/// Which days a pattern means when both days of the month and weekdays are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayRule {
    /// Those that are both.
    Both,
    /// Those that are one or the other: cron, where neither field begins with a star (crontab(5)).
    Either,
}

/// A pattern of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// From 0 to 59.
    pub seconds: Set,
    /// From 0 to 59.
    pub minutes: Set,
    /// From 0 to 23.
    pub hours: Set,
    /// Days of the month, from 1 to 31.
    pub days: Set,
    /// From 1 to 12.
    pub months: Set,
    /// Years; every year where there is none.
    pub years: Option<Vec<u16>>,
    /// From 0, which is Sunday, to 6.
    pub weekdays: Set,
    /// How days of the month and weekdays go together.
    pub rule: DayRule,
    /// Days of the month to which a command restricts itself, whatever the pattern says: Debian's way
    /// to the first Sunday of a month.
    pub only_days: Set,
    /// The time zone that the pattern names; the host's where it names none.
    pub zone: Option<TimeZone>,
}

impl Times {
    /// Every second.
    pub(crate) fn always() -> Times {
        Times {
            seconds: Set::ALL,
            minutes: Set::ALL,
            hours: Set::ALL,
            days: Set::ALL,
            months: Set::ALL,
            years: None,
            weekdays: Set::ALL,
            rule: DayRule::Both,
            only_days: Set::ALL,
            zone: None,
        }
    }

    /// The first time after a moment; `None` where there is none. The moment's time zone is the
    /// host's. A time that the clock skips when it is put forward is taken for as much later.
    pub(crate) fn after(&self, moment: &Zoned) -> Option<Zoned> {
        let zone = self.zone.as_ref().unwrap_or(moment.time_zone());
        let mut date = moment.with_time_zone(zone.clone()).date();
        for _ in 0..DAYS_AHEAD {
            if self.is_on(date) {
                let found = self.of_day(date, zone, moment);
                if found.is_some() {
                    return found.map(|found| found.with_time_zone(moment.time_zone().clone()));
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn is_on(&self, date: Date) -> bool {
        let year_fits = self
            .years
            .as_ref()
            .is_none_or(|years| u16::try_from(date.year()).is_ok_and(|year| years.contains(&year)));
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        let days_fit = match self.rule {
            DayRule::Both => day && weekday,
            DayRule::Either => day || weekday,
        };
        year_fits && days_fit && self.months.has(date.month()) && self.only_days.has(date.day())
    }

    /// The first time of a day after a moment.
    fn of_day(&self, date: Date, zone: &TimeZone, after: &Zoned) -> Option<Zoned> {
        let hours = (0..24).filter(|hour| self.hours.has(*hour));
        hours
            .flat_map(|hour| (0..60).map(move |minute| (hour, minute)))
            .filter(|(_, minute)| self.minutes.has(*minute))
            .flat_map(|(hour, minute)| (0..60).map(move |second| (hour, minute, second)))
            .filter(|(_, _, second)| self.seconds.has(*second))
            .filter_map(|(hour, minute, second)| {
                let time = Time::new(hour, minute, second, 0).ok()?;
                date.to_datetime(time).to_zoned(zone.clone()).ok()
            })
            .find(|found| found > after)
    }
}

/// Numbers as both cron and systemd write them: lists joined by commas, of single numbers, ranges and
/// repetitions. `None` where the text is none of these, or leaves the bounds.
pub(crate) fn numbers(text: &str, form: &Form) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(digits(step).filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let (from, to) = if range == "*" {
            if step.is_some() && !form.star_repeats {
                return None;
            }
            (form.low, form.high)
        } else if let Some((from, to)) = range.split_once(form.between) {
            ((form.number)(from)?, (form.number)(to)?)
        } else {
            let only = (form.number)(range)?;
            // To some crons it goes on and to others it does not: it is not understood.
            if step.is_some() && !form.single_repeats {
                return None;
            }
            (only, if step.is_some() { form.high } else { only })
        };
        if from > to || from < form.low || to > form.high {
            return None;
        }
        found.extend((from..=to).step_by(step.unwrap_or(1).into()));
    }
    Some(found)
}

/// How numbers are written.
pub(crate) struct Form {
    /// The least.
    pub low: u16,
    /// The greatest.
    pub high: u16,
    /// What stands between the ends of a range.
    pub between: &'static str,
    /// How one number, or a name for it, is read.
    pub number: fn(&str) -> Option<u16>,
    /// Whether `*/2` is allowed: to cron, not to systemd.
    pub star_repeats: bool,
    /// Whether `1/2` is allowed, and goes on to the greatest: to systemd.
    pub single_repeats: bool,
}

/// A number written in digits alone.
pub(crate) fn digits(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The number of a weekday that is given by the first three letters of its English name, from 0 for
/// Sunday; of any case.
pub(crate) fn weekday(text: &str) -> Option<u16> {
    place(text, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
}

/// The place of a word in a list, without regard to case.
pub(crate) fn place(text: &str, words: &[&str]) -> Option<u16> {
    let at = words
        .iter()
        .position(|word| word.eq_ignore_ascii_case(text))?;
    u16::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Zoned {
        text.parse().unwrap()
    }

    fn daily(hour: u16, minute: u16) -> Times {
        Times {
            seconds: Set::of(0),
            minutes: Set::of(minute),
            hours: Set::of(hour),
            ..Times::always()
        }
    }

    #[test]
    fn a_time_is_the_next_one_after_the_moment() {
        let times = daily(1, 5);
        for (now, next) in [
            (
                "2026-11-22T01:04:59[Europe/Berlin]",
                "2026-11-22T01:05:00[Europe/Berlin]",
            ),
            (
                "2026-11-22T01:05:00[Europe/Berlin]",
                "2026-11-23T01:05:00[Europe/Berlin]",
            ),
            (
                "2026-12-31T23:00:00[Europe/Berlin]",
                "2027-01-01T01:05:00[Europe/Berlin]",
            ),
        ] {
            assert_eq!(times.after(&at(now)), Some(at(next)), "{now}");
        }
    }

    #[test]
    fn a_clock_that_is_put_forward_makes_a_time_later_and_not_lost() {
        let now = at("2026-03-29T00:30:00[Europe/Berlin]");
        let next = daily(2, 30).after(&now).unwrap();
        assert_eq!(next, at("2026-03-29T03:30:00[Europe/Berlin]"));
    }

    #[test]
    fn a_zone_that_the_pattern_names_is_kept_to() {
        let times = Times {
            zone: Some(TimeZone::UTC),
            ..daily(1, 0)
        };
        let next = times.after(&at("2026-07-01T00:00:00[Europe/Berlin]"));
        assert_eq!(next, Some(at("2026-07-01T03:00:00[Europe/Berlin]")));
    }

    #[test]
    fn a_day_that_never_comes_is_no_time_and_one_that_seldom_does_is_found() {
        let on = |day, month| Times {
            days: Set::of(day),
            months: Set::of(month),
            ..daily(0, 0)
        };
        let now = at("2096-03-01T00:00:00[UTC]");
        assert_eq!(on(31, 2).after(&now), None);
        let leap = on(29, 2).after(&now);
        assert_eq!(leap, Some(at("2104-02-29T00:00:00[UTC]")));
    }
}
