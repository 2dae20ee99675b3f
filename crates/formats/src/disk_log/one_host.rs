//! The host of a log. Disks are distinguished by their names, which are the same on all hosts, so that a log of
//! several hosts cannot be read.

use super::LogError;

/// Verifies that a log is of one host; holds the host that was named first.
#[derive(Debug, Default)]
pub(crate) struct OneHost(Option<String>);

/// Names of a host that has not been given a name.
const PLACEHOLDER_NAMES: [&str; 3] = ["localhost", "(none)", "unknown"];
/// Words that, followed by a number, count runs.
const COUNTS: [&str; 13] = [
    "run",
    "round",
    "pass",
    "iteration",
    "loop",
    "trial",
    "sample",
    "interval",
    "report",
    "snapshot",
    "cycle",
    "step",
    "tick",
];
/// Maximum length of a name.
const MAX_NAME_BYTES: usize = 255;

impl OneHost {
    /// Verifies the name of a host in this line.
    ///
    /// # Errors
    /// Where another host was named first.
    pub(crate) fn check(&mut self, line: u64, name: &str) -> Result<(), LogError> {
        let name = name.trim();
        if !is_given(name) {
            return Ok(());
        }
        let first = self.0.get_or_insert_with(|| name.to_owned());
        match label(first).eq_ignore_ascii_case(label(name)) {
            true => Ok(()),
            false => Err(several(line, first, name)),
        }
    }

    /// True if two words before lines are names of hosts. If the tool itself named a host that is neither of them, they
    /// may instead be counts, such as numbers of runs, or aliases.
    pub(crate) fn are_hosts(&self, one: &str, other: &str) -> bool {
        let is_one_of = |name: &String| {
            [one, other]
                .iter()
                .any(|word| label(word).eq_ignore_ascii_case(label(name)))
        };
        self.0.as_ref().is_none_or(is_one_of)
    }
}

/// True if this is a name that a host was given, not a placeholder.
pub(crate) fn is_given(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !PLACEHOLDER_NAMES.contains(&label(name))
}

/// The error for a log of several hosts.
pub(crate) fn several(line: u64, first: &str, other: &str) -> LogError {
    LogError::Hosts {
        line,
        first: first.to_owned(),
        other: other.to_owned(),
    }
}

/// The name without its domain; an IP address unchanged.
fn label(name: &str) -> &str {
    let label = name.split('.').next().unwrap_or(name);
    match label.bytes().all(|byte| byte.is_ascii_digit()) {
        true => name,
        false => label,
    }
}

/// Words by which the texts before two lines name two hosts: the same word with another number, as `db1` and `db2`.
pub(crate) fn differing_hosts<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let letters = |word: &'a str| {
        word.split(|c: char| c.is_ascii_digit())
            .filter(|part| !part.is_empty())
    };
    let mut pairs = candidate_words(one).zip(candidate_words(other));
    pairs.find(|&(a, b)| a != b && is_name(a) && is_name(b) && letters(a).eq(letters(b)))
}

/// Words of the text before a line that may be names of hosts.
pub(crate) fn names(front: &str) -> impl Iterator<Item = &str> {
    candidate_words(front).filter(|word| is_name(word))
}

fn candidate_words(front: &str) -> impl Iterator<Item = &str> {
    front
        .split(|c: char| c.is_whitespace() || "|:;,=+()[]<>'\"".contains(c))
        .filter(|word| !word.is_empty())
}

/// True if a word with a number may be the name of a host. A number alone, or after a word that counts, is a count or a
/// time.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic())
        && word.contains(|c: char| c.is_ascii_digit())
        && !is_count(word)
}

fn is_count(word: &str) -> bool {
    let counted = word.trim_end_matches(|c: char| c.is_ascii_digit() || "-_#".contains(c));
    COUNTS
        .iter()
        .any(|count| count.eq_ignore_ascii_case(counted))
}

/// True for the number that clush prints after a node set, such as `(3)`.
fn is_number_of_hosts(word: &str) -> bool {
    let number = word
        .strip_prefix('(')
        .and_then(|word| word.strip_suffix(')'));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Headings of the output of several hosts, as `dshbak` and `clush -b` print them: a name between two lines of dashes.
#[derive(Debug, Default)]
pub(crate) struct Headings {
    /// Length of the previous line, if it consists of dashes.
    rule: Option<usize>,
    /// Name in the previous line, with the length of the line of dashes above it.
    name: Option<(usize, String)>,
    first: Option<String>,
    now: Option<String>,
}

/// Number of dashes above and below a name: of clush, and of dshbak.
const RULES: [usize; 2] = [15, 16];

impl Headings {
    /// Reads a line.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        let dashes = line.len();
        if RULES.contains(&dashes) && line.bytes().all(|byte| byte == b'-') {
            match self.name.take() {
                Some((above, name)) if above == dashes => {
                    self.first.get_or_insert_with(|| name.clone());
                    self.now = Some(name);
                    self.rule = None;
                }
                _ => self.rule = Some(dashes),
            }
            return;
        }
        let name = || {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let is_name =
                words.all(is_number_of_hosts) && name.len() <= MAX_NAME_BYTES && !is_count(name);
            is_name.then(|| name.to_owned())
        };
        let above = self.rule.take();
        self.name = above.and_then(|above| Some((above, name()?)));
    }

    /// The host in the last heading.
    pub(crate) fn now(&self) -> Option<&str> {
        self.now.as_deref()
    }

    /// The first and the current host, if they differ.
    pub(crate) fn hosts(&self) -> Option<(&str, &str)> {
        let both = self.first.as_deref().zip(self.now());
        both.filter(|(first, now)| first != now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_name_with_its_domain_and_without() {
        let mut host = OneHost::default();
        for name in [
            "localhost",
            "localhost.localdomain",
            "",
            "db1",
            "DB1.example.com",
            "db1",
        ] {
            assert!(host.check(1, name).is_ok(), "{name}");
        }
        let message = |result: Result<(), LogError>| result.unwrap_err().to_string();
        let of_db2 = message(host.check(7, "db2.example.com"));
        assert!(
            of_db2.starts_with("line 7 is of the host db2.example.com, and those before it of db1"),
            "{of_db2}"
        );
        let mut host = OneHost::default();
        assert!(host.check(1, "10.0.0.5").is_ok());
        assert!(host.check(2, "10.0.0.6").is_err());
    }

    #[test]
    fn words_in_front_are_hosts_unless_the_tool_names_another() {
        let mut host = OneHost::default();
        assert!(host.are_hosts("phase1", "phase2"));
        host.check(1, "db1.example.com").unwrap();
        assert!(!host.are_hosts("phase1", "phase2"));
        assert!(host.are_hosts("db1", "db2") && host.are_hosts("db2", "DB1"));
    }

    #[test]
    fn a_name_between_two_lines_of_dashes_is_a_heading() {
        let rule = |length| "-".repeat(length);
        let after = |lines: &[String]| {
            let mut headings = Headings::default();
            lines.iter().for_each(|line| headings.read(line));
            let hosts = headings.hosts();
            hosts.map(|(first, now)| format!("{first} {now}"))
        };
        for (name, length, expected) in [
            ("beta", 16, Some("alpha beta")),
            ("beta", 15, Some("alpha beta")),
            ("alpha", 16, None),
            ("beta", 20, None),
            ("run2", 16, None),
            ("the second", 16, None),
            ("beta (2)", 15, Some("alpha beta")),
            ("beta (again)", 15, None),
        ] {
            let heading = |name: &str| [rule(length), name.to_owned(), rule(length)];
            let lines = [&heading("alpha")[..], &["sda".to_owned()], &heading(name)].concat();
            assert_eq!(after(&lines).as_deref(), expected, "{name} {length}");
        }
    }

    #[test]
    fn a_name_with_another_number_is_another_host_and_a_number_alone_is_none() {
        for (one, other, expected) in [
            ("db1: ", "db2: ", Some(("db1", "db2"))),
            ("db9 | ", "db10 | ", Some(("db9", "db10"))),
            (
                "Nov 22 12:01:05 ip-10-0-0-5 iostat[77]: ",
                "Nov 22 12:01:06 ip-10-0-0-6 iostat[77]: ",
                Some(("ip-10-0-0-5", "ip-10-0-0-6")),
            ),
            (
                "Nov 22 12:01:05 db1 iostat[77]: ",
                "Nov 23 00:01:06 db1 iostat[78]: ",
                None,
            ),
            (
                "2026-11-22T12:01:05.123Z ",
                "2026-11-22T12:01:06.124Z ",
                None,
            ),
            ("12:01:05 PM UTC+1 ", "12:01:06 PM UTC+2 ", None),
            ("  7. ", "12. ", None),
            ("run1: ", "run2: ", None),
            ("[Round-1] ", "[Round-2] ", None),
            ("runner1: ", "runner2: ", Some(("runner1", "runner2"))),
            ("> ", "> > ", None),
        ] {
            assert_eq!(differing_hosts(one, other), expected, "{one} {other}");
        }
    }
}
