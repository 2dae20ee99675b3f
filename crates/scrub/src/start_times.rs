//! Hours in which a scrub runs, and the deadline by which it is to be done.

use jiff::{SignedDuration, Timestamp, Zoned, civil};
use record::Nanos;

use crate::calendar::{DueBy, Hours};

/// Maximum number of future starts that are examined: a deadline in ten years leaves enough time.
const MAX_EXAMINED_STARTS: usize = 3660;

/// Time at which a timer begins where no hours were given.
pub(crate) const DEFAULT_START: civil::Time = civil::time(1, 0, 0, 0);

/// Hours in which a scrub may run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunWindow {
    /// Start of the hours.
    pub from: Zoned,
    /// End of the hours.
    pub to: Zoned,
}

/// The hours of a day that are open now, or next.
///
/// # Errors
/// When the calendar has no such time.
pub(crate) fn opening(hours: Hours, now: &Zoned) -> Result<RunWindow, jiff::Error> {
    // Hours that began yesterday may still be open.
    for days in -1..=1 {
        let day = now.date().checked_add(jiff::Span::new().days(days))?;
        let of_day = of_day(hours, day, now)?;
        if of_day.to > *now {
            return Ok(RunWindow {
                from: of_day.from.max(now.clone()),
                to: of_day.to,
            });
        }
    }
    // Not reached: tomorrow's hours end after now.
    Ok(RunWindow {
        from: now.clone(),
        to: now.clone(),
    })
}

/// The hours that begin on a day, in the time zone of `now`.
fn of_day(hours: Hours, day: civil::Date, now: &Zoned) -> Result<RunWindow, jiff::Error> {
    let last = if hours.to > hours.from {
        day
    } else {
        day.tomorrow()?
    };
    let at = |day: civil::Date, time| day.to_datetime(time).to_zoned(now.time_zone().clone());
    Ok(RunWindow {
        from: at(day, hours.from)?,
        to: at(last, hours.to)?,
    })
}

/// The starts of one scrub, each of which continues where the last one ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartTimes {
    /// Latest end of this start.
    pub ends: Option<Timestamp>,
    /// The hours of each day in which a start may run.
    pub hours: Option<Hours>,
    /// Maximum duration of each start.
    pub lasts: Option<SignedDuration>,
    /// True if a timer starts the scrub each night.
    pub is_nightly: bool,
}

impl StartTimes {
    /// Total time between now and `by` in which a start runs, including the current one. Where no further start is
    /// known, it is the rest of the current one.
    fn until(&self, by: &Zoned, now: &Zoned) -> SignedDuration {
        let last = by.timestamp();
        let this = self.ends.map_or(last, |ends| ends.min(last));
        let this = this.duration_since(now.timestamp());
        let next = self.next(now).take_while(|one| one.from < *by);
        let next = next.take(MAX_EXAMINED_STARTS).map(|one| {
            let to = one.to.timestamp().min(last);
            to.duration_since(one.from.timestamp())
        });
        next.fold(this, SignedDuration::saturating_add)
            .max(SignedDuration::ZERO)
    }

    /// The starts after this one.
    fn next<'a>(&'a self, now: &'a Zoned) -> impl Iterator<Item = RunWindow> + 'a {
        let days = now.date().series(jiff::Span::new().days(1));
        let of_day = move |day| {
            let limit = |from: &Zoned| from.checked_add(self.lasts?).ok();
            let one = match self.hours {
                Some(hours) => of_day(hours, day, now).ok()?,
                None if self.is_nightly => {
                    let from = day
                        .to_datetime(DEFAULT_START)
                        .to_zoned(now.time_zone().clone());
                    let from = from.ok()?;
                    RunWindow {
                        to: limit(&from)?,
                        from,
                    }
                }
                None => return None,
            };
            Some(RunWindow {
                to: limit(&one.from).map_or(one.to.clone(), |limit| limit.min(one.to)),
                from: one.from,
            })
        };
        days.map_while(of_day).filter(|one| one.from > *now)
    }
}

/// Deadline of a scrub, and the running time that it has until then.
#[derive(Clone, Debug)]
pub(crate) struct DueTime {
    /// The requested time.
    pub by: Zoned,
    /// Time at which the remaining running time would be over if the scrub ran without pauses from now on.
    over: Timestamp,
    /// True if the running time is less than all the time until the deadline.
    pub is_partly: bool,
}

impl DueTime {
    /// Deadline of work that is to be done by `by`, over the current start and later ones.
    pub(crate) fn new(by: Zoned, starts: &StartTimes, now: &Zoned) -> DueTime {
        let open = starts.until(&by, now);
        DueTime {
            over: now
                .timestamp()
                .saturating_add(open)
                .unwrap_or(by.timestamp()),
            is_partly: open < by.duration_since(now),
            by,
        }
    }

    /// Running time left now, while this start runs.
    pub(crate) fn left(&self) -> Nanos {
        self.left_at(Timestamp::now())
    }

    /// Running time left at the time `now`.
    pub(crate) fn left_at(&self, now: Timestamp) -> Nanos {
        let left = self.over.duration_since(now).as_nanos();
        Nanos(u64::try_from(left).unwrap_or(0))
    }
}

/// Error text for work that can begin at `begins` at the earliest, which is after the deadline `by`.
pub(crate) fn is_over(by: &Zoned, begins: &Zoned, now: &Zoned) -> String {
    if by <= now {
        return format!("--by has passed: it was {by}");
    }
    format!(
        "--by and --window cannot both be met: it is to be done by {}, and may only begin at {}; a day is \
         meant from its start",
        by.strftime("%A %Y-%m-%d %H:%M"),
        begins.strftime("%A %H:%M")
    )
}

/// The time that a deadline means at the time `now`. A day counts from its start: work that is to be done by Sunday is
/// done when Sunday begins.
///
/// # Errors
/// When the calendar has no such time.
pub(crate) fn moment(by: DueBy, now: &Zoned) -> Result<Zoned, jiff::Error> {
    match by {
        DueBy::At(time) => time.moment(now),
        DueBy::Date(date) => date.to_zoned(now.time_zone().clone()),
        DueBy::Weekday(weekday) => now
            .date()
            .nth_weekday(1, weekday)?
            .to_zoned(now.time_zone().clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Zoned {
        let local: civil::DateTime = text.parse().unwrap();
        local.in_tz("Europe/Berlin").unwrap()
    }

    fn hours(text: &str) -> Hours {
        text.parse().unwrap()
    }

    #[test]
    fn a_deadline_before_the_hours_begin_is_refused() {
        let saturday = at("2026-11-21T22:00:00");
        let sunday = at("2026-11-22T00:00:00");
        let opens = at("2026-11-22T01:00:00");
        let message = is_over(&sunday, &opens, &saturday);
        assert!(message.contains("by Sunday 2026-11-22 00:00"), "{message}");
        assert!(message.contains("begin at Sunday 01:00"), "{message}");
        assert!(is_over(&saturday, &opens, &sunday).starts_with("--by has passed"));
    }

    #[test]
    fn hours_are_open_now_or_next() {
        for (window, now, from, to) in [
            (
                "01:00-06:00",
                "2026-11-22T00:30:00",
                "2026-11-22T01:00:00",
                "2026-11-22T06:00:00",
            ),
            (
                "01:00-06:00",
                "2026-11-22T03:00:00",
                "2026-11-22T03:00:00",
                "2026-11-22T06:00:00",
            ),
            (
                "01:00-06:00",
                "2026-11-22T06:00:00",
                "2026-11-23T01:00:00",
                "2026-11-23T06:00:00",
            ),
            (
                "22:00-04:00",
                "2026-11-22T03:00:00",
                "2026-11-22T03:00:00",
                "2026-11-22T04:00:00",
            ),
            (
                "22:00-04:00",
                "2026-11-22T12:00:00",
                "2026-11-22T22:00:00",
                "2026-11-23T04:00:00",
            ),
        ] {
            let opening = opening(hours(window), &at(now)).unwrap();
            assert_eq!(
                (opening.from, opening.to),
                (at(from), at(to)),
                "{window} {now}"
            );
        }
        for text in [
            "",
            "1-6",
            "01:00",
            "06:00-06:00",
            "25:00-26:00",
            "01:00–06:00",
        ] {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_is_meant_from_its_start() {
        // A Sunday.
        let now = at("2026-11-22T17:00:00");
        for (text, wanted) in [
            ("sunday", "2026-11-29T00:00:00"),
            ("Mon", "2026-11-23T00:00:00"),
            ("2026-12-01", "2026-12-01T00:00:00"),
            ("18:00", "2026-11-22T18:00:00"),
            ("2026-11-30T06:00", "2026-11-30T06:00:00"),
        ] {
            let by: DueBy = text.parse().unwrap();
            assert_eq!(moment(by, &now).unwrap(), at(wanted), "{text}");
        }
        for text in ["", "someday", "2026-13-01", "su"] {
            assert!(text.parse::<DueBy>().is_err(), "{text}");
        }
    }

    /// Running time of a scrub between two times, in hours.
    fn open(window: &str, lasts: Option<i64>, now: &str, by: &str) -> f64 {
        let now = at(now);
        let hours = (!window.is_empty()).then(|| hours(window));
        let lasts = lasts.map(SignedDuration::from_hours);
        let closes = hours.map(|hours| opening(hours, &now).unwrap().to.timestamp());
        let over = lasts.map(|lasts| now.timestamp() + lasts);
        let starts = StartTimes {
            ends: [closes, over].into_iter().flatten().min(),
            hours,
            lasts,
            is_nightly: false,
        };
        let due = DueTime::new(at(by), &starts, &now);
        assert_eq!(
            due.is_partly,
            due.left_at(now.timestamp()).as_secs_f64() < at(by).duration_since(&now).as_secs_f64()
        );
        due.left_at(now.timestamp()).as_secs_f64() / 3600.0
    }

    #[test]
    fn the_time_until_a_deadline_is_that_of_the_hours_in_which_it_may_run() {
        // A Friday, in its window, and the Sunday after it.
        let (friday, sunday) = ("2026-11-27T01:00:00", "2026-11-29T00:00:00");
        for (window, lasts, now, by, wanted) in [
            ("", None, friday, sunday, 47.0),
            ("01:00-06:00", None, friday, sunday, 10.0),
            ("01:00-06:00", None, "2026-11-27T04:00:00", sunday, 7.0),
            // The deadline is within the hours.
            ("01:00-06:00", None, friday, "2026-11-28T03:00:00", 7.0),
            ("01:00-06:00", None, friday, "2026-11-27T02:00:00", 1.0),
            // Beyond midnight, begun before and after it.
            ("22:00-04:00", None, "2026-11-26T23:00:00", sunday, 13.0),
            ("22:00-04:00", None, friday, sunday, 11.0),
            // Each start ends after two hours; without hours no further start is known.
            ("01:00-06:00", Some(2), friday, sunday, 4.0),
            ("", Some(2), friday, sunday, 2.0),
        ] {
            let hours = open(window, lasts, now, by);
            assert!(
                (hours - wanted).abs() < 1e-9,
                "{window} {lasts:?} {now}: {hours}"
            );
        }
        // The clocks go back at three on that Sunday.
        let hours = open(
            "01:00-06:00",
            None,
            "2026-10-24T01:00:00",
            "2026-10-26T00:00:00",
        );
        assert!((hours - 11.0).abs() < 1e-9, "{hours}");
    }

    #[test]
    fn a_timer_without_hours_begins_each_night() {
        let friday = at("2026-11-27T13:00:00");
        let lasts = SignedDuration::from_hours(2);
        let starts = StartTimes {
            ends: Some(friday.timestamp() + lasts),
            lasts: Some(lasts),
            is_nightly: true,
            ..StartTimes::default()
        };
        // This one, and those of Saturday and Sunday.
        let due = DueTime::new(at("2026-11-30T00:00:00"), &starts, &friday);
        assert_eq!(
            due.left_at(friday.timestamp()),
            Nanos(6 * 3600 * 1_000_000_000)
        );
    }

    #[test]
    fn it_passes_while_it_runs() {
        let now = at("2026-11-27T01:00:00");
        let starts = StartTimes {
            ends: Some(at("2026-11-27T06:00:00").timestamp()),
            hours: Some(hours("01:00-06:00")),
            lasts: None,
            is_nightly: false,
        };
        let due = DueTime::new(at("2026-11-29T00:00:00"), &starts, &now);
        let later = now.timestamp() + SignedDuration::from_hours(3);
        assert_eq!(due.left_at(later), Nanos(7 * 3600 * 1_000_000_000));
        let over = now.timestamp() + SignedDuration::from_hours(50);
        assert_eq!(due.left_at(over), Nanos(0));
        // A deadline in thousands of years is not examined night by night.
        let began = std::time::Instant::now();
        DueTime::new(at("9000-01-01T00:00:00"), &starts, &now);
        assert!(began.elapsed().as_secs() < 5);
    }

    proptest! {
        #[test]
        fn an_opening_lies_ahead_and_within_a_day(
            from in 0..1440_i32, length in 1..1440_i32, minute in 0..1440_i32,
        ) {
            let clock = |minute: i32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
            let window = hours(&format!("{}-{}", clock(from), clock(from + length)));
            let now = at(&format!("2026-11-22T{}:00", clock(minute)));
            let opening = opening(window, &now).unwrap();
            prop_assert!(opening.from >= now && opening.to > opening.from);
            prop_assert!(opening.to.timestamp().as_second() - now.timestamp().as_second() <= 2 * 86_400);
            let open = opening.to.timestamp().as_second() - opening.from.timestamp().as_second();
            prop_assert!(open <= i64::from(length) * 60);
        }
    }
}
