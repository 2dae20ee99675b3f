//! systemd's units on disk: their settings with drop-ins, and whether they are masked and enabled
//! (systemd.unit(5)). systemd itself is not asked, so that a host that is not running can be read too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where units are, what comes first wins (systemd.unit(5), unit file load path).
const FOLDERS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// The units of a host.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// The folder that is `/` of the host.
    root: PathBuf,
}

/// A unit as it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// It leads to `/dev/null`, or is empty: systemd does not start it.
    Masked,
    /// Its settings.
    Loaded(Settings),
}

/// The settings of a unit, its drop-ins included: by section and name, in the order in which they
/// are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    values: BTreeMap<(String, String), Vec<String>>,
}

impl Settings {
    /// All values of a setting, since it was last reset by an empty one.
    pub(crate) fn all(&self, section: &str, name: &str) -> &[String] {
        self.values
            .get(&(section.to_owned(), name.to_owned()))
            .map_or(&[], Vec::as_slice)
    }

    /// The value that counts where there can be only one: the last.
    pub(crate) fn last(&self, section: &str, name: &str) -> Option<&str> {
        self.all(section, name).last().map(String::as_str)
    }

    /// Adds what a file says.
    fn add(&mut self, text: &str) {
        let mut section = String::new();
        for line in joined(text) {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((name, value)) = line.split_once('=') {
                self.set(&section, name.trim(), value.trim());
            }
        }
    }

    fn set(&mut self, section: &str, name: &str, value: &str) {
        if !value.is_empty() {
            let key = (section.to_owned(), name.to_owned());
            self.values.entry(key).or_default().push(value.to_owned());
        } else if is_trigger(section, name) {
            // One that is emptied resets them all (systemd.timer(5)).
            self.values
                .retain(|(section, name), _| !is_trigger(section, name));
        } else {
            self.values.remove(&(section.to_owned(), name.to_owned()));
        }
    }
}

/// Whether a setting says when a timer elapses.
fn is_trigger(section: &str, name: &str) -> bool {
    section == "Timer"
        && (name == "OnCalendar" || (name.starts_with("On") && name.ends_with("Sec")))
}

/// The lines of a unit, without comments; those that end with a backslash go on in the next.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut begun = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(part) => {
                begun.push_str(part);
                begun.push(' ');
            }
            None => lines.push(std::mem::take(&mut begun) + line),
        }
    }
    lines.push(begun);
    lines
}

impl Units {
    /// The units of the host whose `/` is at `root`.
    pub(crate) fn under(root: &Path) -> Units {
        Units {
            root: root.to_path_buf(),
        }
    }

    /// Whether systemd runs on it (sd_booted(3)).
    pub(crate) fn is_running(&self) -> bool {
        self.root.join("run/systemd/system").is_dir()
    }

    /// The names of all timers, sorted. A folder that cannot be listed is as good as empty.
    pub(crate) fn timers(&self) -> Vec<String> {
        let mut names: Vec<String> = FOLDERS
            .iter()
            .flat_map(|folder| names_in(&self.root.join(folder)))
            .filter(|name| name.ends_with(".timer"))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// A unit; `None` where there is none of the name.
    ///
    /// # Errors
    /// When it, or a drop-in of it, cannot be read.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Unit>> {
        let found = FOLDERS
            .iter()
            .map(|folder| self.root.join(folder).join(name))
            .find(|path| path.symlink_metadata().is_ok());
        let Some(path) = found else {
            return Ok(None);
        };
        if is_null(&path) {
            return Ok(Some(Unit::Masked));
        }
        let text = fs::read(self.followed(&path))?;
        if text.is_empty() {
            return Ok(Some(Unit::Masked));
        }
        let mut settings = Settings::default();
        settings.add(&String::from_utf8_lossy(&text));
        for path in self.drop_ins(name) {
            if !is_null(&path) {
                settings.add(&String::from_utf8_lossy(&fs::read(path)?));
            }
        }
        Ok(Some(Unit::Loaded(settings)))
    }

    /// The drop-ins of a unit, in the order in which they are read: by their names, and of one name
    /// the one in the folder that comes first.
    fn drop_ins(&self, unit: &str) -> Vec<PathBuf> {
        let mut by_name: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in FOLDERS {
            let folder = self.root.join(folder).join(format!("{unit}.d"));
            for name in names_in(&folder) {
                if name.ends_with(".conf") {
                    let path = folder.join(&name);
                    by_name.entry(name).or_insert(path);
                }
            }
        }
        by_name.into_values().collect()
    }

    /// The links that enable a unit: those of its name in folders `*.wants` and `*.requires`, as
    /// paths on the host. `/lib` may be another name of `/usr/lib`, and is left out then.
    pub(crate) fn links(&self, unit: &str) -> Vec<PathBuf> {
        let lib_is_linked = self.root.join("lib").is_symlink();
        let mut links = Vec::new();
        for folder in FOLDERS {
            if lib_is_linked && folder.starts_with("lib/") {
                continue;
            }
            for name in names_in(&self.root.join(folder)) {
                if !(name.ends_with(".wants") || name.ends_with(".requires")) {
                    continue;
                }
                let link = Path::new(folder).join(&name).join(unit);
                let own = self.root.join(&link);
                if own.symlink_metadata().is_ok() && !is_null(&own) {
                    links.push(Path::new("/").join(link));
                }
            }
        }
        links
    }

    /// Where a link below the root leads to on the host that the root stands for.
    fn followed(&self, path: &Path) -> PathBuf {
        match fs::read_link(path) {
            Ok(target) if target.is_absolute() => {
                self.root.join(target.strip_prefix("/").unwrap_or(&target))
            }
            _ => path.to_path_buf(),
        }
    }
}

/// Whether a path is a link to nothing, which masks.
fn is_null(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target == Path::new("/dev/null"))
}

/// The names in a folder; none where it cannot be listed.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name())
        .filter_map(|name: OsString| name.into_string().ok())
        .collect();
    names.sort();
    names
}

/// A span of time as systemd writes it (systemd.time(7)), such as `6 hours`, `1h 30min` or `90`, in
/// seconds; `None` where it is not understood.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let each = match unit {
            "" | "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hr" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 7 * 86_400,
            _ => return None,
        };
        let number: u64 = number.parse().ok()?;
        total = total.checked_add(number.checked_mul(each)?)?;
        rest = after.trim_start();
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(texts: &[&str]) -> Settings {
        let mut settings = Settings::default();
        texts.iter().for_each(|text| settings.add(text));
        settings
    }

    #[test]
    fn settings_are_read_as_systemd_reads_them() {
        let unit = "# c\n[Unit]\nDescription=a\n[Timer]\nOnCalendar= 1:05:00\nOnBootSec=5\n\
                    [Service]\nExecStart=/bin/a \\\n; no\n  b\n";
        let own = settings(&[unit]);
        assert_eq!(own.all("Timer", "OnCalendar"), ["1:05:00"]);
        assert_eq!(own.last("Service", "ExecStart"), Some("/bin/a    b"));
        let changed = settings(&[unit, "[Timer]\nOnCalendar=\nOnCalendar=daily\n"]);
        assert_eq!(changed.all("Timer", "OnCalendar"), ["daily"]);
        assert!(changed.all("Timer", "OnBootSec").is_empty());
    }

    #[test]
    fn spans_are_read_in_seconds() {
        for (text, wanted) in [
            ("6 hours", Some(21_600)),
            ("1h 30min", Some(5400)),
            ("90", Some(90)),
            ("2d12h", Some(216_000)),
            ("", None),
            ("h", None),
            ("1.5h", None),
            ("3 moons", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = (seconds(&text), settings(&[&text]));
        }
    }
}
