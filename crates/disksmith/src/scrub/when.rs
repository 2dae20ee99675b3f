//! When a scrub runs, and by when it is to be done.

use jiff::Zoned;

use crate::cli::{By, Hours};

/// When it may run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    /// From then on.
    pub from: Zoned,
    /// Until then.
    pub to: Zoned,
}

/// The hours of a day that are open now, or next.
///
/// # Errors
/// When the calendar has no such time.
pub(crate) fn opening(hours: Hours, now: &Zoned) -> Result<Opening, jiff::Error> {
    // What began yesterday may still be open.
    for days in -1..=1 {
        let day = now.date().checked_add(jiff::Span::new().days(days))?;
        let from = day
            .to_datetime(hours.from)
            .to_zoned(now.time_zone().clone())?;
        let last = if hours.to > hours.from {
            day
        } else {
            day.tomorrow()?
        };
        let to = last
            .to_datetime(hours.to)
            .to_zoned(now.time_zone().clone())?;
        if to > *now {
            return Ok(Opening {
                from: from.max(now.clone()),
                to,
            });
        }
    }
    // Not reached: tomorrow's hours end after now.
    Ok(Opening {
        from: now.clone(),
        to: now.clone(),
    })
}

/// Why what is to be done by `by` cannot be, where it would only begin at `begins`.
pub(crate) fn is_over(by: &Zoned, begins: &Zoned, now: &Zoned) -> String {
    if by <= now {
        return format!("--by is over: it was {by}");
    }
    format!(
        "--by and --window cannot both be had: it is to be done by {}, and may only begin at {}; a day is \
         meant from its start",
        by.strftime("%A %Y-%m-%d %H:%M"),
        begins.strftime("%A %H:%M")
    )
}

/// The moment that is meant by somebody for whom it is `now`. A day is meant from its start: what is to
/// be done by Sunday is done when Sunday begins.
///
/// # Errors
/// When the calendar has no such time.
pub(crate) fn moment(by: By, now: &Zoned) -> Result<Zoned, jiff::Error> {
    match by {
        By::At(time) => time.moment(now),
        By::Date(date) => date.to_zoned(now.time_zone().clone()),
        By::Weekday(weekday) => now
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
        format!("{text}+01:00[Europe/Berlin]").parse().unwrap()
    }

    fn hours(text: &str) -> Hours {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_over_before_the_hours_begin_cannot_be_had() {
        let saturday = at("2026-11-21T22:00:00");
        let sunday = at("2026-11-22T00:00:00");
        let opens = at("2026-11-22T01:00:00");
        let said = is_over(&sunday, &opens, &saturday);
        assert!(said.contains("by Sunday 2026-11-22 00:00"), "{said}");
        assert!(said.contains("begin at Sunday 01:00"), "{said}");
        assert!(is_over(&saturday, &opens, &sunday).starts_with("--by is over"));
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
            let by: By = text.parse().unwrap();
            assert_eq!(moment(by, &now).unwrap(), at(wanted), "{text}");
        }
        for text in ["", "someday", "2026-13-01", "su"] {
            assert!(text.parse::<By>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_open_lies_ahead_and_within_a_day(
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
