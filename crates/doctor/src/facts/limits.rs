//! Limits of open files: those of logins (limits.conf(5), pam_limits(8)), and those of systemd units.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use linux::root::{attribute, names_in};

/// A line of limits.conf that sets the hard limit of open files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileLimit {
    /// File and line that set the limit.
    pub(crate) place: String,
    /// User, group or `*`.
    pub(crate) domain: String,
    /// Limit of open files; `None` is unlimited.
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

/// Folders of units, in descending order of precedence (systemd.unit(5)).
const UNITS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// Soft limit of open files that a unit gives its processes by LimitNOFILE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitLimit {
    /// The file that sets it.
    pub(crate) place: PathBuf,
    /// Limit of open files; `None` is unlimited.
    pub(crate) files: Option<u64>,
}

/// The limit in a unit's files now, which may differ from that of a running process.
pub(crate) fn unit_file_limit(system: &Path, unit: &str) -> Option<UnitLimit> {
    let mut of_files = unit_files(system, unit).into_iter().filter_map(|path| {
        let files = limit_of_unit(&attribute(&path)?)?;
        Some(UnitLimit { place: path, files })
    });
    of_files.next_back()
}

/// The files of a unit in the order in which they are read: its own, then its drop-ins by name.
fn unit_files(system: &Path, unit: &str) -> Vec<PathBuf> {
    // postgresql@15-main.service is an instance of postgresql@.service.
    let template = unit
        .split_once('@')
        .map(|(name, _)| format!("{name}@.service"));
    let names: Vec<&str> = std::iter::once(unit).chain(template.as_deref()).collect();
    let folders = UNITS.map(|folder| system.join(folder));
    let mut own = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let mut drop_ins: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for name in &names {
        for folder in &folders {
            let folder = folder.join(format!("{name}.d"));
            for file in names_in(&folder).unwrap_or_default() {
                if Path::new(&file)
                    .extension()
                    .is_some_and(|ending| ending == "conf")
                {
                    let path = folder.join(&file);
                    drop_ins.entry(file).or_insert(path);
                }
            }
        }
    }
    let own = own.find(|path| path.exists());
    own.into_iter().chain(drop_ins.into_values()).collect()
}

/// The soft limit in the last LimitNOFILE of a unit's file.
fn limit_of_unit(text: &str) -> Option<Option<u64>> {
    let mut values = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("LimitNOFILE"))
        .filter_map(|rest| rest.trim_start().strip_prefix('='));
    let soft = values.next_back()?.split(':').next()?.trim();
    match soft {
        "infinity" => Some(None),
        number => number.parse().ok().map(Some),
    }
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

    #[test]
    fn the_last_drop_in_of_a_unit_counts() {
        let system = tempfile::tempdir().unwrap();
        let limit = |unit: &str| unit_file_limit(system.path(), unit).map(|limit| limit.files);
        assert_eq!(limit("postgresql@15-main.service"), None);
        for (path, line, expected) in [
            (
                "lib/systemd/system/postgresql@.service",
                "LimitNOFILE=1024:9999",
                Some(1024),
            ),
            (
                "lib/systemd/system/postgresql@.service.d/20.conf",
                " LimitNOFILE = 2048",
                Some(2048),
            ),
            (
                "etc/systemd/system/postgresql@15-main.service.d/10.conf",
                "LimitNOFILE=3",
                Some(2048),
            ),
            // Replaces a file with the same name.
            (
                "etc/systemd/system/postgresql@15-main.service.d/20.conf",
                "# LimitNOFILE=9",
                Some(3),
            ),
            (
                "run/systemd/system/postgresql@.service.d/30.conf",
                "LimitNOFILE=infinity",
                None,
            ),
        ] {
            let path = system.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("[Service]\n{line}\n")).unwrap();
            assert_eq!(
                limit("postgresql@15-main.service"),
                Some(expected),
                "{line}"
            );
        }
    }
}
