//! systemd's calendar events, `OnCalendar=` (systemd.time(7)).

use jiff::tz::TimeZone;

use super::times::{DayRule, Form, Set, Times, digits, numbers, weekday};

/// The last year of an event (systemd, src/basic/time-util.h).
const LAST_YEAR: u16 = 2199;

/// The times that a text means; `None` where it is not understood: days counted from a month's end
/// (`~`), parts of a second, and moments written as `@…` are not.
pub(crate) fn times(text: &str) -> Option<Times> {
    let (text, zone) = without_zone(text.trim())?;
    let text = written_out(text).unwrap_or(text);
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Times {
        seconds: Set::of(0),
        minutes: Set::of(0),
        hours: Set::of(0),
        rule: DayRule::Both,
        zone,
        ..Times::always()
    };
    if words.is_empty() {
        return None;
    }
    if words[0].starts_with(|c: char| c.is_ascii_alphabetic()) {
        found.weekdays = weekdays(words.remove(0))?;
    }
    if words.first().is_some_and(|word| !word.contains(':')) {
        set_date(&mut found, words.remove(0))?;
    }
    if let Some(word) = words.first() {
        set_time(&mut found, word)?;
        words.remove(0);
    }
    words.is_empty().then_some(found)
}

/// The text without the time zone at its end, and that.
fn without_zone(text: &str) -> Option<(&str, Option<TimeZone>)> {
    let Some((before, last)) = text.rsplit_once(' ') else {
        return Some((text, None));
    };
    // What else may come last holds digits or a star.
    if !last.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some((text, None));
    }
    Some((before, Some(TimeZone::get(last).ok()?)))
}

/// What a word stands for.
fn written_out(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semi-annually" | "semiannually" | "biannually" | "bi-annually" => "*-01,07-01 00:00:00",
        "yearly" | "annually" | "anually" => "*-01-01 00:00:00",
        _ => return None,
    })
}

/// Weekdays: `Mon`, `Monday`, `Mon,Thu`, `Mon..Fri`.
fn weekdays(text: &str) -> Option<Set> {
    // A week begins on Monday here, so that Fri..Sun is a range.
    fn number(text: &str) -> Option<u16> {
        const NAMES: [&str; 7] = [
            "sunday",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
        ];
        let named = super::times::place(text, &NAMES);
        let from_sunday = weekday(text).or(named)?;
        Some((from_sunday + 6) % 7)
    }
    let form = |between| Form {
        low: 0,
        high: 6,
        between,
        number,
        star_repeats: false,
        single_repeats: false,
    };
    if text.contains('/') {
        return None;
    }
    // Older writers have a hyphen.
    let between = if text.contains("..") { ".." } else { "-" };
    let found = numbers(text.trim_end_matches(','), &form(between))?;
    Some(found.into_iter().map(|day| (day + 1) % 7).collect())
}

/// `[YEAR-]MONTH-DAY`.
fn set_date(times: &mut Times, text: &str) -> Option<()> {
    let parts: Vec<&str> = text.split('-').collect();
    let (year, month, day) = match parts[..] {
        [year, month, day] => (year, month, day),
        [month, day] => ("*", month, day),
        _ => return None,
    };
    if year != "*" {
        let mut form = form(0, LAST_YEAR);
        form.number = |text| Some(whole_year(digits(text)?));
        times.years = Some(numbers(year, &form)?);
    }
    times.months = set(month, 1, 12)?;
    times.days = set(day, 1, 31)?;
    Some(())
}

/// A year of two digits is one from 1970 on.
fn whole_year(year: u16) -> u16 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// `HOUR:MINUTE[:SECOND]`.
fn set_time(times: &mut Times, text: &str) -> Option<()> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    times.hours = set(hour, 0, 23)?;
    times.minutes = set(minute, 0, 59)?;
    times.seconds = set(second, 0, 59)?;
    Some(())
}

fn form(low: u16, high: u16) -> Form {
    Form {
        low,
        high,
        between: "..",
        number: digits,
        star_repeats: false,
        single_repeats: true,
    }
}

fn set(text: &str, low: u16, high: u16) -> Option<Set> {
    Some(numbers(text, &form(low, high))?.into_iter().collect())
}

#[cfg(test)]
pub(in crate::scrub) mod tests {
    use super::*;
    use jiff::Zoned;
    use proptest::prelude::*;
    use std::process::Command;

    fn next(text: &str, now: &str) -> Option<Zoned> {
        times(text)?.after(&now.parse().unwrap())
    }

    #[test]
    fn events_come_when_systemd_says() {
        // 1 March 2026 is a Sunday. The days are those that systemd-analyze prints.
        for (text, wanted) in [
            ("Sun *-*-1..7 1:00:00", "2026-03-01T01:00:00"),
            ("Sun *-*-* 01:00:00", "2026-03-01T01:00:00"),
            ("1:05:00", "2026-03-01T01:05:00"),
            ("1:05", "2026-03-01T01:05:00"),
            ("Mon..Wed,Sun", "2026-03-02T00:00:00"),
            ("Friday 18:00", "2026-03-06T18:00:00"),
            ("daily", "2026-03-02T00:00:00"),
            ("weekly", "2026-03-02T00:00:00"),
            ("monthly", "2026-04-01T00:00:00"),
            ("quarterly", "2026-04-01T00:00:00"),
            ("0/6:00", "2026-03-01T06:00:00"),
            ("2026-*-2..7/2 4:5", "2026-03-02T04:05:00"),
            ("12-24", "2026-12-24T00:00:00"),
            ("28-2-29 1:00:0/20", "2028-02-29T01:00:00"),
            ("*-*-* *:*:30", "2026-03-01T00:00:30"),
        ] {
            let wanted: Zoned = format!("{wanted}[UTC]").parse().unwrap();
            assert_eq!(
                next(text, "2026-03-01T00:00:00[UTC]"),
                Some(wanted),
                "{text}"
            );
        }
        let berlin = next(
            "Sun *-*-1..7 1:00 Europe/Berlin",
            "2026-03-02T00:00:00[UTC]",
        );
        assert_eq!(berlin, Some("2026-04-04T23:00:00[UTC]".parse().unwrap()));
    }

    #[test]
    fn what_is_not_understood_is_none() {
        for text in [
            "",
            "*-*~1",
            "@1700000000",
            "Sat..Mon",
            "*:*/15",
            "*-*-*/2",
            "8..4:00",
            "1:60",
            "0:0:0.5",
            "Mon,Wed 3",
            "2026-02",
            "Sun *-*-* 1:00 No/Where",
            "sometimes",
            "1:00 1:00",
            "Sun Mon",
            "*-13-1",
            "*-*-0",
        ] {
            assert_eq!(times(text), None, "{text}");
        }
    }

    /// What systemd itself says comes next after midnight of Sunday, 1 March 2026; `None`, with a note,
    /// where its program is not installed.
    pub(in crate::scrub) fn of_systemd(text: &str) -> Option<Option<Zoned>> {
        let output = Command::new("systemd-analyze")
            .args(["calendar", "--base-time=2026-03-01 00:00:00 UTC", text])
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .output()
            .inspect_err(|_| skip::skipped("systemd-analyze is not installed"))
            .ok()?;
        let wrong = String::from_utf8_lossy(&output.stderr);
        if wrong.contains("unrecognized option") {
            skip::skipped(&wrong);
            return None;
        }
        assert!(output.status.success(), "{text}: {wrong}");
        let said = String::from_utf8(output.stdout).unwrap();
        let next = said
            .lines()
            .find_map(|line| line.trim().strip_prefix("Next elapse: "))
            .unwrap();
        let mut words = next.split(' ').skip(1);
        let moment = (words.next(), words.next());
        Some(match moment {
            (Some(day), Some(time)) => Some(format!("{day}T{time}[UTC]").parse().unwrap()),
            _ => None,
        })
    }

    #[test]
    fn systemd_agrees_where_it_is_installed() {
        for text in [
            "Sun *-*-1..7 1:00:00",
            "Sat,Sun 20:00",
            "Mon..Fri *-4..6-1/10 12,18:30",
            "0/6:00",
            "2027..2029-2-29 4:05",
            "*-*-31 23:59:59",
            "quarterly",
            "Wed 2/3-10..20 0..5/2:15/15:10",
        ] {
            let Some(said) = of_systemd(text) else {
                return;
            };
            assert_eq!(next(text, "2026-03-01T00:00:00[UTC]"), said, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, like in "[A-Za-z]{0,3}[0-9*/.,:~ -]{0,30}") {
            let _ = (times(&text), times(&like));
        }
    }
}
