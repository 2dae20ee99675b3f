//! Removes the prefix that another program put before each line of a log: the quoting of a mail, a comment sign, a
//! number, or the time or the host of a log collector.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::LastHeader;
use super::landmark::BannerLine;
use super::one_host::{self, Headings};
use super::sar;
use super::stamp::{self, PrintedTimestamp};

/// Maximum length of a prefix.
const MAX_PREFIX_BYTES: usize = 120;
/// Beginning of iostat's header of the processors.
const CPU: &str = "avg-cpu:";
/// Maximum number of names kept.
const MAX_NAMES: usize = 10_000;

/// Prefix of the lines, as it was before the last line that was recognized with certainty.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    text: String,
    /// The time in the prefix, if it is a time.
    stamp: Option<PrintedTimestamp>,
    /// Words by which the prefixes of the last two headers differ, if they may be names of hosts.
    hosts: Option<(String, String)>,
    headings: Headings,
    /// Names in the headings above the first and the last header, if they differ.
    headed: Option<(String, String)>,
    /// Names before, and in headings above, the lines in which the tool names its host.
    named: BTreeSet<String>,
    /// Names before disk headers, each with its number of headers. A word that counts lines precedes only one header.
    headers: BTreeMap<String, u64>,
    last_header: LastHeader,
}

impl Prefix {
    /// Learns the prefix from a line that is a header of iostat or sar.
    pub(crate) fn learn(&mut self, line: &str) {
        self.headings.read(line);
        let Some(at) = landmark(line, &mut self.last_header) else {
            return;
        };
        let own = BannerLine::host_of(&line[at..]);
        let is_named = own.is_some_and(|own| one_host::is_given(&own));
        if is_named && self.named.len() < MAX_NAMES {
            let names = one_host::names(&line[..at]).chain(self.headings.now());
            self.named.extend(names.map(str::to_owned));
            self.headers.clear();
        }
        // The processors' header belongs to the same report as the disks' header.
        if !line[at..].starts_with(CPU) && self.headers.len() < MAX_NAMES {
            for name in one_host::names(&line[..at]) {
                *self.headers.entry(name.to_owned()).or_default() += 1;
            }
        }
        let headed = self.headings.hosts();
        self.headed = headed.map(|(first, other)| (first.to_owned(), other.to_owned()));
        if self.text != line[..at] {
            let hosts = one_host::differing_hosts(&self.text, &line[..at]);
            self.hosts = hosts.map(|(first, other)| (first.to_owned(), other.to_owned()));
            self.text.clear();
            if !line[..at].trim().is_empty() {
                self.text.push_str(&line[..at]);
            }
            self.stamp = stamp::stamp(self.text.trim_matches(|c: char| !c.is_alphanumeric()));
        }
    }

    /// Words before the last two headers that may be the names of two hosts.
    pub(crate) fn hosts(&self) -> Option<(&str, &str)> {
        let (first, other) = self.hosts.as_ref()?;
        Some((first, other))
    }

    /// Words that may be names of two hosts, although the tool itself has not named its host next to both of them:
    /// words before headers, if each precedes two headers, or the names in two headings. `None` if too many were named.
    pub(crate) fn unnamed_hosts(&self) -> Option<(&str, &str)> {
        if self.named.len() >= MAX_NAMES {
            return None;
        }
        let is_repeated = |name: &String| self.headers.get(name).is_some_and(|count| *count > 1);
        let are_repeated =
            |(first, other): &&(String, String)| is_repeated(first) && is_repeated(other);
        let is_unnamed = |(first, other): &&(String, String)| {
            !self.named.contains(first) || !self.named.contains(other)
        };
        let in_fronts = self.hosts.iter().filter(are_repeated);
        let mut both = in_fronts.chain(&self.headed);
        let (first, other) = both.find(is_unnamed)?;
        Some((first, other))
    }

    /// The line without the prefix, if it has it, and without the quoting of a mail. Numbers in the prefix may differ.
    pub(crate) fn strip<'a>(&self, line: &'a str) -> &'a str {
        if self.text.is_empty() {
            return unquoted(line);
        }
        unquoted(after_prefix(line, &self.text).unwrap_or(line))
    }

    /// The time in the prefix of the last header, if the prefix is a time and nothing else.
    pub(crate) fn stamp(&self) -> Option<PrintedTimestamp> {
        self.stamp
    }
}

/// A line without the `>` signs of quoted mail. No tool begins a line with such a sign.
pub(crate) fn unquoted(line: &str) -> &str {
    let mut rest = line;
    while let Some(quoted) = rest.trim_start().strip_prefix('>') {
        rest = quoted.strip_prefix(' ').unwrap_or(quoted);
    }
    rest
}

/// Offset of a header of iostat or `sar -d` in a line, if it has one.
fn landmark(line: &str, headers: &mut LastHeader) -> Option<usize> {
    let found = |word: &str| {
        let mut places = line.match_indices(word).map(|(at, _)| at);
        let begins = |at: &usize| {
            let before = line[..*at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && !"_-%".contains(c))
        };
        places.find(begins).filter(|at| *at <= MAX_PREFIX_BYTES)
    };
    let cpu = found(CPU);
    let devices = || found("Device").filter(|at| headers.columns(&line[*at..]).is_some());
    let machine = || found("Linux ").filter(|at| BannerLine::of_line(&line[*at..]).is_some());
    let disks = || sar_header(line).filter(|at| *at <= MAX_PREFIX_BYTES);
    cpu.or_else(devices).or_else(machine).or_else(disks)
}

/// Offset of the time in a header of `sar -d`.
fn sar_header(line: &str) -> Option<usize> {
    if !line.contains(sar::NAMES[0]) {
        return None;
    }
    let mut before = ' ';
    let mut starts = line.char_indices().filter_map(|(at, c)| {
        let is_start = !before.is_alphanumeric() && c.is_alphanumeric();
        before = c;
        is_start.then_some(at)
    });
    starts.find(|at| sar::disks(&line[*at..]).is_some())
}

/// The rest of a line after the prefix; `None` if the line does not have the prefix.
fn after_prefix<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = line.trim_start();
    let solid = prefix.trim();
    let mut pattern = solid.chars().peekable();
    while let Some(wanted) = pattern.next() {
        let mut chars = rest.chars();
        let found = chars.next()?;
        if wanted.is_ascii_digit() && found.is_ascii_digit() {
            while pattern.next_if(char::is_ascii_digit).is_some() {}
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if wanted.is_whitespace() && found.is_whitespace() {
            while pattern.next_if(|c| c.is_whitespace()).is_some() {}
            rest = rest.trim_start();
        } else if wanted == found {
            rest = chars.as_str();
        } else {
            return None;
        }
    }
    // The indent after the prefix belongs to the line.
    let gap = prefix.trim_start().chars().count() - solid.chars().count();
    for _ in 0..gap {
        rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s \
                          avgrq-sz avgqu-sz   await  svctm  %util";

    fn learned(line: &str) -> Prefix {
        let mut prefix = Prefix::default();
        prefix.learn(line);
        prefix
    }

    #[test]
    fn what_stands_in_front_of_a_header_stands_in_front_of_all_lines() {
        for (front, other) in [
            ("> ", "> "),
            ("> > > ", "> > > "),
            (">", ">"),
            ("# ", "# "),
            ("//", "//"),
            ("  7.  ", " 12.  "),
            ("9:", "103:"),
            ("12:01:05 ", "12:01:06 "),
            (
                "Nov  3 12:01:05 db1 iostat[8]: ",
                "Nov 13 00:00:59 db1 iostat[8]: ",
            ),
            ("[2026-11-23T12:01:05.123Z] ", "[2026-11-24T00:01:05.9Z] "),
        ] {
            for line in [
                HEADER,
                "avg-cpu:  %user   %idle",
                "Linux 6.1.0 (db1) \t11/22/2026",
            ] {
                let prefix = learned(&format!("{front}{line}"));
                assert_eq!(
                    prefix.strip(&format!("{other}sda 1.00")),
                    "sda 1.00",
                    "{front}"
                );
                // A name of a group has one space more.
                assert_eq!(
                    prefix.strip(&format!("{other} sda 1.00")),
                    " sda 1.00",
                    "{front}"
                );
                assert_eq!(prefix.strip(other.trim_end()), "", "{front}");
                assert_eq!(prefix.strip("sda 1.00"), "sda 1.00", "{front}");
            }
        }
    }

    #[test]
    fn lines_without_a_prefix_are_left_as_they_are() {
        let mut prefix = learned(&format!("   {HEADER}"));
        assert_eq!(prefix.strip("   sda 1.00"), "   sda 1.00");
        prefix.learn(&format!("> {HEADER}"));
        prefix.learn("> the Device of which I speak");
        assert_eq!(prefix.strip("> sda 1.00"), "sda 1.00");
        prefix.learn(HEADER);
        assert_eq!(prefix.strip("> sda 1.00"), "sda 1.00");
        assert_eq!(prefix.strip("# sda 1.00"), "# sda 1.00");
        // A quoting sign is not part of a device's name, with a header or without.
        assert_eq!(Prefix::default().strip("> >sda 1.00"), "sda 1.00");
        // Letters are no digits.
        let prefix = learned(&format!("disks {HEADER}"));
        assert_eq!(prefix.strip("sda 1.00"), "sda 1.00");
    }

    #[test]
    fn a_prefix_that_is_a_time_tells_it() {
        let stamp = |front: &str| learned(&format!("{front}{HEADER}")).stamp();
        assert_eq!(stamp("12:01:05 ").unwrap().time.second(), 5);
        assert!(stamp("[2026-11-23 12:01:05] ").unwrap().date.is_some());
        assert!(stamp("2026-11-23T12:01:05Z ").unwrap().offset.is_some());
        assert_eq!(stamp("> "), None);
        assert_eq!(stamp(""), None);
    }

    proptest! {
        #[test]
        fn any_line_is_stripped(front: String, line: String) {
            let prefix = learned(&format!("{front}{HEADER}"));
            prop_assert!(line.ends_with(prefix.strip(&line)));
            prefix.stamp();
        }
    }
}
