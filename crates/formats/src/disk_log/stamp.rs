//! Times as `iostat -t` prints them: in the format of the locale, or of ISO 8601 (`S_TIME_FORMAT=ISO`).

use std::borrow::Cow;

use jiff::civil::Time;
use jiff::tz::Offset;

/// A date in which day and month are not yet distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawDate {
    /// The numbers, in the order in which they are printed.
    pub(crate) numbers: [i16; 3],
    /// True if the year comes first: it has four digits, or is too large for a day.
    pub(crate) year_first: bool,
    /// True if the year has four digits.
    pub(crate) long_year: bool,
    /// Separator of the numbers.
    pub(crate) separator: char,
}

/// A printed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrintedTimestamp {
    /// The date; `None` in sysstat before version 9, which prints it only in the first line.
    pub(crate) date: Option<RawDate>,
    /// The time of day.
    pub(crate) time: Time,
    /// The offset from UTC, if it is printed.
    pub(crate) offset: Option<Offset>,
    /// True for a twelve-hour clock.
    pub(crate) twelve_hours: bool,
}

/// Maximum length of a line that can be a time.
const MAX_LINE_BYTES: usize = 64;

/// Parses a line that is a time and nothing else.
pub(crate) fn stamp(line: &str) -> Option<PrintedTimestamp> {
    let line = unadorned(line);
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let line = without_label(line);
    let line = &*in_numbers(line);
    let line = &*with_colons(line);
    let hour_at = hour(line)?;
    let (date, rest) = line.split_at(hour_at);
    let date = date.trim_end_matches([' ', 'T', '\t', ',']);
    let date = match date.is_empty() {
        true => None,
        false => Some(raw_date(date)?),
    };
    let mut clock = Clock::default();
    let words = clock.numbers(rest)?;
    let (twelve_hours, afternoon, offset) = suffix(words)?;
    let hour = match (twelve_hours, clock.hour) {
        (false, hour) => hour,
        (true, 12) => 12 * i8::from(afternoon),
        (true, hour) => hour + 12 * i8::from(afternoon),
    };
    Some(PrintedTimestamp {
        date,
        time: Time::new(hour, clock.minute, clock.second, 0).ok()?,
        offset,
        twelve_hours,
    })
}

/// A line without the decoration that scripts put around a time (`--- 10:31:04 ---`), and without OSWatcher's mark
/// (`zzz ***Tue Mar 4 10:31:04 EST 2025`).
fn unadorned(line: &str) -> &str {
    let is_sign = |c: char| !c.is_alphanumeric();
    let line = line.trim_matches(is_sign);
    match line.strip_prefix("zzz") {
        Some(time) if time.starts_with(is_sign) => time.trim_start_matches(is_sign),
        _ => line,
    }
}

/// The word before the time in sysstat before version 9, in each language.
const LABELS: [&str; 15] = [
    "Time", "Aika", "Čas", "Czas", "Heure", "Hora", "Ora", "Tid", "Tiempo", "Tijd", "Tyd", "Waktu",
    "Zeit", "时间", "時間",
];

/// A line without the word that announces a time.
fn without_label(line: &str) -> &str {
    let labelled = line.split_once([':', '：']);
    match labelled.filter(|(label, _)| LABELS.contains(&label.trim_end())) {
        Some((_, time)) => time.trim_start(),
        None => line,
    }
}

/// Month names, as `date` and syslog print them.
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// True if a date begins with this word.
pub(crate) fn is_weekday(word: &str) -> bool {
    WEEKDAYS.contains(&word)
}

/// Output of `date` (`Fri Apr 10 12:38:33 EDT 2020`) with the date in numbers. Without a year, as in syslog, only the
/// time is kept.
fn in_numbers(line: &str) -> Cow<'_, str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = match words.as_slice() {
        [first, rest @ ..] if is_weekday(first) => rest,
        words => words,
    };
    let month = |word: &str| 1 + MONTHS.iter().position(|month| *month == word).unwrap_or(12);
    let (month, day, rest) = match words {
        [a, day, rest @ ..] if month(a) <= 12 => (month(a), day, rest),
        [day, b, rest @ ..] if month(b) <= 12 => (month(b), day, rest),
        _ => return Cow::Borrowed(line),
    };
    let Ok(day) = day.parse::<u8>() else {
        return Cow::Borrowed(line);
    };
    let is_year = |word: &&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    let (years, rest): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| is_year(word));
    let rest = rest.join(" ");
    Cow::Owned(match years.as_slice() {
        [] => rest,
        years => format!("{}-{month:02}-{day:02} {rest}", years.join(" ")),
    })
}

/// A line with the dots in its time, as in Finland (`22.11.2026 05.52.46`), replaced by colons.
fn with_colons(line: &str) -> Cow<'_, str> {
    let Some((date, time)) = line.rsplit_once(' ') else {
        return Cow::Borrowed(line);
    };
    let parts: Vec<&str> = time.split('.').collect();
    let is_number = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if parts.len() == 3 && parts.iter().all(is_number) {
        return Cow::Owned(format!("{date} {}", parts.join(":")));
    }
    Cow::Borrowed(line)
}

/// Offset of the hour: the number before a colon or a sign for hours.
fn hour(line: &str) -> Option<usize> {
    let mark = line.find([':', '時', '时', '시'])?;
    let digits = line[..mark]
        .bytes()
        .rev()
        .take_while(u8::is_ascii_digit)
        .count();
    (1..=2).contains(&digits).then_some(mark - digits)
}

/// Reads a date of three numbers.
pub(crate) fn raw_date(text: &str) -> Option<RawDate> {
    let text = text.trim();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .collect();
    let others = text.chars().filter(|c| !c.is_ascii_digit());
    let allowed = |c: char| "/.- ".contains(c) || "年月日년월일".contains(c);
    let [a, b, c] = words[..] else { return None };
    if text.len() > MAX_LINE_BYTES
        || words.iter().any(|w| w.len() > 4)
        || !others.clone().all(allowed)
    {
        return None;
    }
    let numbers = [a.parse().ok()?, b.parse().ok()?, c.parse().ok()?];
    Some(RawDate {
        numbers,
        year_first: a.len() == 4 || numbers[0] > 31,
        long_year: a.len() == 4 || c.len() == 4,
        separator: others.clone().next()?,
    })
}

#[derive(Default)]
struct Clock {
    hour: i8,
    minute: i8,
    second: i8,
}

impl Clock {
    /// Reads `05:52:46` or `05時52分46秒`, and returns the rest.
    fn numbers<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let mut rest = text;
        for place in [&mut self.hour, &mut self.minute, &mut self.second] {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            *place = rest[..end].parse().ok().filter(|_| end <= 2)?;
            rest = rest[end..].trim_start_matches([':', '時', '时', '分', '秒', '시', '분', '초']);
            rest = rest.trim_start_matches(' ');
        }
        // Fractions of a second, in timestamps that another program added.
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        Some(rest.trim())
    }
}

/// Parses the text after a time: AM or PM, offset from UTC, name of the zone. Returns twelve-hour clock, PM, offset.
fn suffix(text: &str) -> Option<(bool, bool, Option<Offset>)> {
    let (mut twelve, mut afternoon, mut offset) = (false, false, None);
    for word in text.split_whitespace() {
        let letters = word.replace('.', "");
        match letters.to_uppercase().as_str() {
            "AM" | "午前" | "上午" | "오전" | "ΠΜ" => twelve = true,
            "PM" | "午後" | "下午" | "오후" | "ΜΜ" => (twelve, afternoon) = (true, true),
            "Z" | "UTC" | "GMT" => offset = Some(Offset::UTC),
            _ if word.starts_with(['+', '-']) => offset = Some(numeric_offset(word)?),
            // Names of zones are ambiguous.
            zone if (2..=5).contains(&zone.len())
                && zone.bytes().all(|b| b.is_ascii_uppercase()) => {}
            _ => return None,
        }
    }
    Some((twelve, afternoon, offset))
}

/// Reads `+0100` or `-03:30`.
fn numeric_offset(word: &str) -> Option<Offset> {
    let sign = if word.starts_with('-') { -1 } else { 1 };
    let digits = word[1..].replace(':', "");
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    let seconds = (number / 100) * 3600 + (number % 100) * 60;
    Offset::from_seconds(sign * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_locales_are_read() {
        for (line, numbers, time, offset) in [
            ("11/22/26 05:52:40", [11, 22, 26], (5, 52, 40), None),
            ("22.11.2026 05:52:46", [22, 11, 2026], (5, 52, 46), None),
            ("22.11.2026 05.52.46", [22, 11, 2026], (5, 52, 46), None),
            ("11/22/2026 12:00:01 AM", [11, 22, 2026], (0, 0, 1), None),
            ("11/22/2026 12:00:01 PM", [11, 22, 2026], (12, 0, 1), None),
            (
                "2026年11月22日 05時52分50秒",
                [2026, 11, 22],
                (5, 52, 50),
                None,
            ),
            ("2026-11-22 05:52:53 PM", [2026, 11, 22], (17, 52, 53), None),
            (
                "22/11/26 05:52:55 AM UTC",
                [22, 11, 26],
                (5, 52, 55),
                Some(0),
            ),
            (
                "2026-11-22T05:52:56+0000",
                [2026, 11, 22],
                (5, 52, 56),
                Some(0),
            ),
            (
                "2026-11-22T00:52:56-0330",
                [2026, 11, 22],
                (0, 52, 56),
                Some(-12600),
            ),
            ("2026. 11. 22. 오후 05:52:56", [0; 3], (0, 0, 0), None),
            // As `date` prints them.
            (
                "Fri Apr 10 12:38:33 EDT 2020",
                [2020, 4, 10],
                (12, 38, 33),
                None,
            ),
            (
                "Sun Nov  2 17:52:53 UTC 2026",
                [2026, 11, 2],
                (17, 52, 53),
                Some(0),
            ),
            (
                "Sun 22 Nov 2026 05:52:53 PM CET",
                [2026, 11, 22],
                (17, 52, 53),
                None,
            ),
            // As scripts decorate them.
            (
                "zzz ***Fri Apr 10 12:38:33 EDT 2020",
                [2020, 4, 10],
                (12, 38, 33),
                None,
            ),
            (
                "===== 2026-11-22 05:52:53 =====",
                [2026, 11, 22],
                (5, 52, 53),
                None,
            ),
            (
                "[2026-11-22T05:52:56+0000]",
                [2026, 11, 22],
                (5, 52, 56),
                Some(0),
            ),
        ] {
            let Some(stamp) = stamp(line) else {
                assert_eq!(numbers, [0; 3], "{line}");
                continue;
            };
            assert_eq!(stamp.date.unwrap().numbers, numbers, "{line}");
            assert_eq!(stamp.time, Time::new(time.0, time.1, time.2, 0).unwrap());
            assert_eq!(
                stamp.offset.map(|offset| offset.seconds()),
                offset,
                "{line}"
            );
        }
    }

    #[test]
    fn old_versions_print_the_time_alone() {
        let read = |line: &str| stamp(line).map(|stamp| (stamp.date, stamp.time));
        let expected = Some((None, Time::new(22, 31, 4, 0).unwrap()));
        assert_eq!(read("Time: 10:31:04 PM"), expected);
        assert!(stamp("Time: 10:31:04 PM").unwrap().twelve_hours);
        for line in [
            "Zeit: 22:31:04",
            "Heure : 22:31:04",
            "Ora:  22:31:04",
            "Aika: 22:31:04",
            "時間: 22時31分04秒",
            "時間： 22時31分04秒",
            "时间: 22时31分04秒",
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn logs_of_a_system_print_no_year() {
        let stamp = stamp("Nov  2 17:52:53").unwrap();
        assert_eq!((stamp.date, stamp.time.hour()), (None, 17));
    }

    #[test]
    fn other_lines_are_no_times() {
        for line in [
            "",
            "Nov",
            "Fri Apr",
            "May I at 10:00:00",
            "Mon 10 Apr",
            "Apr 10 2020",
            "vda 0.00 0.00",
            "25:61:00",
            "11/22/26 05:52",
            "05.52.46",
            "22.11.2026 05.52",
            "sda 05.52.46",
            "11/22/26 05:52:40 vda 1.00",
            "at 10:31:04 it broke",
            "Uptime: 10:31:04",
            "sda: 10:31:04",
            "1:2:3:4",
            "99/99/99/99 10:00:00",
            "時分秒",
            "11/22/26 05:52:40 +é",
            "11/22/26 05:52:40 +99999",
        ] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }
}
