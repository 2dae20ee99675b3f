//! Limits of open files that logins get: limits.conf(5), and whether pam_limits(8) is used.

use std::path::Path;

use linux::root::{attribute, names_in};

/// A line of limits.conf that sets the hard limit of open files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileLimit {
    /// File and line.
    pub(crate) place: String,
    /// User, group or `*`.
    pub(crate) domain: String,
    /// `None` is unlimited.
    pub(crate) files: Option<u64>,
}

/// The lines that set the hard limit of open files, in the order in which they are read.
pub(crate) fn hard_file_limits(etc: &Path) -> Vec<FileLimit> {
    let folder = etc.join("security/limits.d");
    let more = names_in(&folder).unwrap_or_default().into_iter();
    let paths = std::iter::once(etc.join("security/limits.conf"))
        .chain(more.map(|name| folder.join(name)))
        .filter(|path| path.extension().is_some_and(|ending| ending == "conf"));
    let mut found = Vec::new();
    for path in paths {
        let text = attribute(&path).unwrap_or_default();
        for (at, line) in text.lines().enumerate() {
            found.extend(file_limit(
                line,
                format!("{}, line {}", path.display(), at + 1),
            ));
        }
    }
    found
}

fn file_limit(line: &str, place: String) -> Option<FileLimit> {
    let line = line.split('#').next()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [domain, kind, "nofile", value] = words[..] else {
        return None;
    };
    if !matches!(kind, "hard" | "-") {
        return None;
    }
    let files = match value {
        "unlimited" | "infinity" | "-1" => None,
        number => Some(number.parse().ok()?),
    };
    Some(FileLimit {
        place,
        domain: domain.to_owned(),
        files,
    })
}

/// True if a service of PAM sets limits.
pub(crate) fn uses_pam_limits(etc: &Path) -> bool {
    let folder = etc.join("pam.d");
    let names = names_in(&folder).unwrap_or_default();
    names.iter().any(|name| {
        let text = attribute(&folder.join(name)).unwrap_or_default();
        text.lines()
            .any(|line| !line.trim_start().starts_with('#') && line.contains("pam_limits.so"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hard_limits_of_files_are_read() {
        let read = |line| file_limit(line, String::new()).map(|one| (one.domain, one.files));
        for (line, expected) in [
            ("* hard nofile 2000000", Some(("*", Some(2_000_000)))),
            ("mysql - nofile unlimited # all", Some(("mysql", None))),
            ("@db hard nofile -1", Some(("@db", None))),
            ("* soft nofile 9", None),
            ("* hard nproc 9", None),
            ("# * hard nofile 9", None),
            ("* hard nofile many", None),
            ("", None),
        ] {
            let expected = expected.map(|(domain, files)| (domain.to_owned(), files));
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
