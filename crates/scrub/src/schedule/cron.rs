//! Lines of a crontab (crontab(5)): when they run, and what.

use jiff::tz::TimeZone;

use super::times::{DayRule, Form, Set, Times, digits, numbers, place, weekday};

/// Whether the lines of a file name the user that a command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// They do: `/etc/crontab` and `/etc/cron.d`.
    Named,
    /// They do not: a user's own crontab.
    Own,
}

/// A line that runs something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// When it runs.
    pub when: When,
    /// What it runs.
    pub command: String,
}

/// When a line runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At these times.
    At(Box<Times>),
    /// When cron starts.
    AtBoot,
    /// Its times are written in a form that is not understood, which is this.
    Unclear(String),
}

/// The lines of a crontab that run something. Comments are left out, and of settings, `CRON_TZ` is
/// kept to by the lines below it, as cronie does.
pub(crate) fn lines(text: &str, users: Users) -> Vec<Line> {
    let mut zone = Ok(None);
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = setting(line) {
            if name == "CRON_TZ" {
                zone = TimeZone::get(value)
                    .map(Some)
                    .map_err(|_| format!("CRON_TZ={value}"));
            }
            continue;
        }
        lines.push(match entry(line, users, &zone) {
            Some((when, command)) => Line {
                number: index + 1,
                when,
                command: command.to_owned(),
            },
            // What it runs is kept, so that one that checks arrays is not passed over.
            None => Line {
                number: index + 1,
                when: When::Unclear(line.to_owned()),
                command: line.to_owned(),
            },
        });
    }
    lines
}

/// A setting such as `MAILTO=root`: its name and its value without quotes.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, value.trim().trim_matches(['"', '\''])))
}

/// When a line runs, and what.
fn entry<'a>(
    line: &'a str,
    users: Users,
    zone: &Result<Option<TimeZone>, String>,
) -> Option<(When, &'a str)> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let (when, rest) = split(line, fields)?;
    let command = match users {
        Users::Named => split(rest, 1)?.1,
        Users::Own => rest,
    };
    let shown = when.join(" ");
    let when = match (&when[..], zone) {
        (["@reboot"], _) => When::AtBoot,
        (_, Err(unknown)) => When::Unclear(format!("{shown}, {unknown}")),
        (fields, Ok(zone)) => match times(fields) {
            Some(found) => When::At(Box::new(Times {
                zone: zone.clone(),
                ..found
            })),
            None => When::Unclear(shown),
        },
    };
    Some((when, command))
}

/// The first words of a line, and the rest of it, which must not be empty.
fn split(line: &str, count: usize) -> Option<(Vec<&str>, &str)> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    for _ in 0..count {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        words.push(word);
        rest = after.trim_start();
    }
    (!rest.is_empty()).then_some((words, rest))
}

/// The times that the fields of a line mean.
fn times(fields: &[&str]) -> Option<Times> {
    let [minutes, hours, days, months, weekdays] = match fields {
        ["@hourly"] => ["0", "*", "*", "*", "*"],
        ["@daily" | "@midnight"] => ["0", "0", "*", "*", "*"],
        ["@weekly"] => ["0", "0", "*", "*", "0"],
        ["@monthly"] => ["0", "0", "1", "*", "*"],
        ["@yearly" | "@annually"] => ["0", "0", "1", "1", "*"],
        [minutes, hours, days, months, weekdays] => [*minutes, *hours, *days, *months, *weekdays],
        _ => return None,
    };
    let set = |text: &str, low, high, number| -> Option<Set> {
        let form = Form {
            low,
            high,
            between: "-",
            number,
            star_repeats: true,
            single_repeats: false,
        };
        Some(numbers(text, &form)?.into_iter().collect())
    };
    // 7 is Sunday too.
    let weekday_set = set(weekdays, 0, 7, weekday_number)?;
    let sunday = if weekday_set.has(7) {
        Set::of(0)
    } else {
        Set::default()
    };
    let is_star = |text: &str| text.starts_with('*');
    Some(Times {
        seconds: Set::of(0),
        minutes: set(minutes, 0, 59, digits)?,
        hours: set(hours, 0, 23, digits)?,
        days: set(days, 1, 31, digits)?,
        months: set(months, 1, 12, month_number)?,
        weekdays: weekday_set.or(sunday),
        rule: match is_star(days) || is_star(weekdays) {
            true => DayRule::Both,
            false => DayRule::Either,
        },
        ..Times::always()
    })
}

fn weekday_number(text: &str) -> Option<u16> {
    digits(text).or_else(|| weekday(text))
}

fn month_number(text: &str) -> Option<u16> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    digits(text).or_else(|| Some(place(text, &NAMES)? + 1))
}

/// The days of the month to which a command restricts itself with `[ $(date +\%d) -le 7 ]`, as
/// Debian's does; all where it does not look at the date.
///
/// # Errors
/// The part of the command that looks at the date in a way that is not understood.
pub(crate) fn days_of(command: &str) -> Result<Set, String> {
    let mut days = Set::ALL;
    let mut rest = command;
    while let Some(at) = rest.find("date +") {
        let (_, test) = rest.split_at(at);
        let shown = || test.chars().take(40).collect::<String>();
        let format = test.trim_start_matches("date +");
        let compared = ["\\%d", "%d", "\"\\%d\"", "'\\%d'"]
            .iter()
            .find_map(|form| format.strip_prefix(form))
            .ok_or_else(shown)?;
        let (kept, after) = comparison(compared).ok_or_else(shown)?;
        days = days.and(kept);
        rest = after;
    }
    // Tests that are joined so hold for either day, or for those that the test refuses.
    let is_plain = days == Set::ALL || !(command.contains(" -o ") || negates(command));
    is_plain.then_some(days).ok_or_else(|| command.to_owned())
}

/// Whether a test of the date stands in a form that turns it round.
fn negates(command: &str) -> bool {
    let before = command.split("date +").next().unwrap_or_default();
    before.contains("! ") || command.contains("] ||") || command.contains("]||")
}

/// The days that fit what follows `date +%d`: `) -le 7 ]`; and what follows that.
fn comparison(text: &str) -> Option<(Set, &str)> {
    let text = text.trim_start_matches([')', '`', '"', '\'']).trim_start();
    let (sign, rest) = text.split_once(' ')?;
    let rest = rest.trim_start().trim_start_matches('"');
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    let number = digits(number)?;
    let fits = |day: &u16| match sign {
        "-le" => *day <= number,
        "-lt" => *day < number,
        "-ge" => *day >= number,
        "-gt" => *day > number,
        "-eq" => *day == number,
        _ => false,
    };
    let days: Set = (1..=31).filter(fits).collect();
    (!days.is_empty()).then_some((days, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Zoned;
    use proptest::prelude::*;

    const DEBIAN: &str = "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && \
        [ $(date +\\%d) -le 7 ]; then /usr/share/mdadm/checkarray --cron --all --idle --quiet; fi";

    fn next(line: &str, now: &str) -> Option<Zoned> {
        let found = lines(line, Users::Own);
        let [line] = &found[..] else {
            panic!("{found:?}");
        };
        let When::At(times) = &line.when else {
            panic!("{line:?}");
        };
        times.after(&now.parse().unwrap())
    }

    #[test]
    fn times_come_when_crontab_says() {
        // 1 March 2026 is a Sunday.
        for (line, wanted) in [
            ("57 0 * * 0 x", "2026-03-01T00:57"),
            ("57 0 * * 7 x", "2026-03-01T00:57"),
            ("0 1 * * Sun x", "2026-03-01T01:00"),
            ("0 1 * * mon-fri x", "2026-03-02T01:00"),
            ("*/20 * * * * x", "2026-03-01T00:20"),
            ("5-59/20 3 * * * x", "2026-03-01T03:05"),
            ("0 0 13 * * x", "2026-03-13T00:00"),
            // Both are given: either will do.
            ("0 0 13 * 5 x", "2026-03-06T00:00"),
            // A star that is repeated is a star all the same.
            ("0 0 */2 * 2 x", "2026-03-03T00:00"),
            ("0 0 1 jan,Jun * x", "2026-06-01T00:00"),
            ("@weekly x", "2026-03-08T00:00"),
            ("@monthly x", "2026-04-01T00:00"),
        ] {
            let wanted: Zoned = format!("{wanted}:00[Europe/Berlin]").parse().unwrap();
            assert_eq!(
                next(line, "2026-03-01T00:00:00[Europe/Berlin]"),
                Some(wanted),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_kept_as_it_is() {
        for line in [
            "60 0 * * * checkarray",
            "0~30 1 * * 0 checkarray",
            "5/10 0 * * * checkarray",
            "0 0 0 * * checkarray",
            "0 0 7-1 * * checkarray",
            "0 0 * * * ",
            "@fortnightly checkarray",
        ] {
            let found = lines(line, Users::Own);
            assert!(
                matches!(found[0].when, When::Unclear(_)),
                "{line}: {found:?}"
            );
        }
        let found = lines("CRON_TZ=No/Where\n0 0 * * * x", Users::Own);
        assert!(matches!(&found[0].when, When::Unclear(text) if text.contains("No/Where")));
    }

    #[test]
    fn settings_comments_and_users_are_passed_over() {
        let text = format!("# c\nMAILTO=root\n\nCRON_TZ=UTC\n{DEBIAN}\n@reboot root y z\n");
        let found = lines(&text, Users::Named);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].number, 5);
        assert!(found[0].command.starts_with("if [ -x"));
        assert!(matches!(&found[0].when, When::At(times) if times.zone == Some(TimeZone::UTC)));
        assert_eq!((&found[1].when, &*found[1].command), (&When::AtBoot, "y z"));
    }

    #[test]
    fn a_test_of_the_date_restricts_the_days() {
        let first: Set = (1..=7).collect();
        for (command, days) in [
            (DEBIAN, Some(first)),
            ("[ $(date +\\%d) -le 7 ] && checkarray", Some(first)),
            ("[ `date +\\%d` -lt 8 ] && checkarray", Some(first)),
            (
                "[ \"$(date +\\%d)\" -gt 7 ] && [ $(date +\\%d) -le 14 ] && x",
                Some((8..=14).collect()),
            ),
            ("checkarray --all", Some(Set::ALL)),
            ("[ $(date +\\%W) -le 7 ] && checkarray", None),
            ("[ $(date +\\%d) = 07 ] && checkarray", None),
            ("[ $(date +\\%d) -le 7 ] || checkarray", None),
            ("[ ! $(date +\\%d) -le 7 ] && checkarray", None),
        ] {
            assert_eq!(days_of(command).ok(), days, "{command}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, rest in "[0-9*/,@ -]{0,30} root x") {
            let _ = (lines(&text, Users::Named), lines(&rest, Users::Own), days_of(&text));
        }
    }
}
