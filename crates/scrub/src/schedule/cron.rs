//! Lines of a crontab (crontab(5)): the calendar events of systemd that they stand for, and what they run.

/// Form of a crontab: with or without the user that a command runs as.
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
    /// Its time.
    pub when: When,
    /// Its command.
    pub command: String,
}

/// Time of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At any of these calendar events.
    At(Vec<String>),
    /// Start of cron.
    AtBoot,
    /// Its times are written in a form that is not understood, which is this.
    Unclear(String),
}

/// The lines of a crontab that run something. Comments are left out, and of settings, `CRON_TZ` is
/// kept to by the lines below it, as cronie does.
pub(crate) fn lines(text: &str, users: Users) -> Vec<Line> {
    let mut zone = "";
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = setting(line) {
            if name == "CRON_TZ" {
                zone = value;
            }
            continue;
        }
        lines.push(match entry(line, users, zone) {
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

/// Time and command of a line.
fn entry<'a>(line: &'a str, users: Users, zone: &str) -> Option<(When, &'a str)> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let (fields, rest) = split(line, fields)?;
    let command = match users {
        Users::Named => split(rest, 1)?.1,
        Users::Own => rest,
    };
    let shown = [&fields.join(" "), zone].join(" ");
    let when = match (&fields[..], days_of(command)) {
        (["@reboot"], _) => When::AtBoot,
        (_, Err(test)) => When::Unclear(format!(
            "{}, and on which days it does something depends on a test: {test}",
            shown.trim()
        )),
        (fields, Ok(days)) => match events(fields, days) {
            Some(events) => {
                let event = |event: String| format!("{event} {zone}").trim().to_owned();
                When::At(events.into_iter().map(event).collect())
            }
            None => When::Unclear(shown.trim().to_owned()),
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

/// The calendar events (systemd.time(7)) that the fields of a line stand for, on the first `days` of a month where
/// the command restricts itself to them. systemd judges the numbers.
fn events(fields: &[&str], days: Option<u8>) -> Option<Vec<String>> {
    let [minutes, hours, month_days, months, weekdays] = match fields {
        ["@hourly"] => ["0", "*", "*", "*", "*"],
        ["@daily" | "@midnight"] => ["0", "0", "*", "*", "*"],
        ["@weekly"] => ["0", "0", "*", "*", "0"],
        ["@monthly"] => ["0", "0", "1", "*", "*"],
        ["@yearly" | "@annually"] => ["0", "0", "1", "1", "*"],
        [minutes, hours, month_days, months, weekdays] => {
            [*minutes, *hours, *month_days, *months, *weekdays]
        }
        _ => return None,
    };
    let time = format!("{}:{}:00", list(hours, "0")?, list(minutes, "0")?);
    let months = list(&numbered(months, &MONTHS, 1), "1")?;
    let is_star = |field: &str| field.starts_with('*');
    let month_day = match (days, month_days) {
        (None, _) => list(month_days, "1")?,
        (Some(last), "*") => format!("1..{last}"),
        (Some(_), _) => return None,
    };
    let weekday = match weekdays {
        "*" => String::new(),
        some => named_days(some)?,
    };
    let event = |weekday: &str, day: &str| format!("{weekday} *-{months}-{day} {time}");
    // Where both are restricted, either will do (crontab(5)).
    let events = match is_star(month_days) || is_star(weekdays) {
        true => vec![event(&weekday, &month_day)],
        false => vec![event("", &month_day), event(&weekday, "*")],
    };
    Some(events.iter().map(|event| event.trim().to_owned()).collect())
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 8] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A field with numbers in place of names.
fn numbered(field: &str, names: &[&str], first: usize) -> String {
    let mut field = field.to_ascii_lowercase();
    for (place, name) in names.iter().enumerate() {
        field = field.replace(name, &(place + first).to_string());
    }
    field
}

/// A field of numbers as systemd writes it: ranges with two dots, and a star that is repeated as its first number.
fn list(field: &str, first: &str) -> Option<String> {
    let parts = field.split(',').map(|part| {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (part, None),
        };
        let range = match (range.split_once('-'), step) {
            (Some((from, to)), _) => format!("{}..{}", number(from)?, number(to)?),
            (None, Some(_)) if range == "*" => first.to_owned(),
            (None, None) if range == "*" => range.to_owned(),
            (None, None) => number(range)?.to_string(),
            // Not a form of cron's.
            (None, Some(_)) => return None,
        };
        Some(step.map_or(range.clone(), |step| format!("{range}/{step}")))
    });
    Some(parts.collect::<Option<Vec<String>>>()?.join(","))
}

/// The names of the weekdays of a field, in which 0 and 7 are Sunday.
fn named_days(field: &str) -> Option<String> {
    let field = numbered(field, &WEEKDAYS[..7], 0);
    let mut days = Vec::new();
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None if range == "*" => (0, 6),
            None => (number(range)?, number(range)?),
        };
        let step = usize::from(number(step)?).max(1);
        let names = (from..=to).step_by(step);
        let names = names.map(|day| WEEKDAYS.get(usize::from(day)).copied());
        days.extend(names.collect::<Option<Vec<&str>>>()?);
    }
    (!days.is_empty()).then(|| days.join(","))
}

/// A number; `None` for any other text.
fn number(text: &str) -> Option<u8> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The last day of a month on which a command does something: `[ $(date +\%d) -le 7 ]`, Debian's way to the first
/// Sunday of a month. `None` where it does not test the date.
///
/// # Errors
/// The part of the command that examines the date in any other way.
fn days_of(command: &str) -> Result<Option<u8>, String> {
    let Some((_, test)) = command.split_once("date +") else {
        return Ok(None);
    };
    let days = test.strip_prefix("\\%d) -le ");
    let days = days.and_then(|rest| rest.split_once(" ]"));
    let plain = days.filter(|(_, rest)| {
        // Tests that are joined so hold for other days.
        !(command.contains("! ") || rest.trim_start().starts_with("||") || rest.contains("date +"))
    });
    let last = plain.and_then(|(days, _)| number(days));
    last.map(Some)
        .ok_or_else(|| test.chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::super::systemd::next_elapse;
    use super::super::tests::{Systemd, has_systemd};
    use super::*;
    use jiff::Zoned;
    use proptest::prelude::*;

    const DEBIAN: &str = "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && \
        [ $(date +\\%d) -le 7 ]; then /usr/share/mdadm/checkarray --cron --all --idle --quiet; fi";

    /// The next time of a line, by systemd; `None` where it does not understand the events.
    fn next(line: &str, now: &str) -> Option<Zoned> {
        let found = lines(line, Users::Own);
        let [line] = &found[..] else {
            panic!("{found:?}");
        };
        let When::At(events) = &line.when else {
            panic!("{line:?}");
        };
        let mut systemd = Systemd { root: "/".into() };
        let next = events
            .iter()
            .map(|event| next_elapse(&mut systemd, event, &now.parse().unwrap()).ok());
        next.collect::<Option<Vec<_>>>()?
            .into_iter()
            .flatten()
            .min()
    }

    #[test]
    fn times_come_when_crontab_says() {
        if !has_systemd() {
            return;
        }
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
    fn lines_that_are_not_understood_are_kept_as_they_are() {
        for line in [
            "0~30 1 * * 0 checkarray",
            "5/10 0 * * * checkarray",
            "0 0 * * 8 checkarray",
            "0 0 * * ",
            "@fortnightly checkarray",
        ] {
            let found = lines(line, Users::Own);
            assert!(
                matches!(found[0].when, When::Unclear(_)),
                "{line}: {found:?}"
            );
        }
        if !has_systemd() {
            return;
        }
        for line in [
            "60 0 * * * checkarray",
            "0 0 0 * * checkarray",
            "0 0 7-1 * * checkarray",
            "CRON_TZ=No/Where\n0 0 * * * x",
        ] {
            assert_eq!(
                next(line, "2026-03-01T00:00:00[Europe/Berlin]"),
                None,
                "{line}"
            );
        }
    }

    #[test]
    fn settings_comments_and_users_are_passed_over() {
        let text = format!("# c\nMAILTO=root\n\nCRON_TZ=UTC\n{DEBIAN}\n@reboot root y z\n");
        let found = lines(&text, Users::Named);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].number, 5);
        assert!(found[0].command.starts_with("if [ -x"));
        let events = vec!["sun *-*-1..7 0:57:00 UTC".to_owned()];
        assert_eq!(found[0].when, When::At(events));
        assert_eq!((&found[1].when, &*found[1].command), (&When::AtBoot, "y z"));
    }

    #[test]
    fn a_test_of_the_date_restricts_the_days() {
        for (command, days) in [
            (DEBIAN, Some(Some(7))),
            ("[ $(date +\\%d) -le 7 ] && checkarray", Some(Some(7))),
            ("checkarray --all", Some(None)),
            ("[ `date +\\%d` -lt 8 ] && checkarray", None),
            (
                "[ $(date +\\%d) -le 7 ] && [ $(date +\\%d) -le 14 ] && x",
                None,
            ),
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
