//! The state of systemd's units.

use std::path::Path;

use array::programs::Programs;
use jiff::Timestamp;
use linux::exec::Exec;

/// Folders of units, below `/` (systemd.unit(5)).
const UNIT_FOLDERS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// True if systemd runs on the host whose `/` is at `root` (sd_booted(3)).
pub(crate) fn is_running(root: &Path) -> bool {
    root.join("run/systemd/system").is_dir()
}

/// The names of all timers on the host whose `/` is at `root`, sorted. A folder that cannot be listed counts as empty.
pub(super) fn timers(root: &Path) -> Vec<String> {
    let entries = UNIT_FOLDERS.iter().flat_map(|folder| {
        let entries = root.join(folder).read_dir().into_iter().flatten();
        entries.flatten()
    });
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".timer") && !name.contains('@'))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Properties of a unit, as `systemctl show` prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit(Vec<(String, String)>);

impl Unit {
    /// A property; empty where it is not set.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    /// The command lines that a service runs, one per line.
    pub(super) fn commands(&self) -> String {
        let started = self.0.iter().filter(|(name, _)| name == "ExecStart");
        let words = |value: &str| {
            let (_, words) = value.split_once("argv[]=")?;
            Some(words.split(" ; ").next()?.to_owned())
        };
        let commands = started.filter_map(|(_, value)| words(value));
        commands.collect::<Vec<String>>().join("\n")
    }

    /// A property that is a time in UTC, such as `Sun 2026-03-01 01:00:00 UTC`.
    pub(super) fn moment(&self, name: &str) -> Option<Timestamp> {
        let words: Vec<&str> = self.get(name).split(' ').collect();
        let [_, day, time, "UTC"] = words[..] else {
            return None;
        };
        format!("{day}T{time}Z").parse().ok()
    }
}

/// Properties of units, in the order of the units.
///
/// # Errors
/// When systemctl fails.
pub(super) fn show(
    programs: &mut dyn Programs,
    units: &[String],
    properties: &str,
) -> anyhow::Result<Vec<Unit>> {
    if units.is_empty() {
        return Ok(Vec::new());
    }
    let show = Exec::new("systemctl").args(["show", "--property", properties, "--"]);
    let text = programs.run(&show.args(units).zone("UTC"))?.text();
    let property = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    let unit = |block: &str| Unit(block.lines().filter_map(property).collect());
    Ok(text.split("\n\n").map(unit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_service_are_its_words() {
        let started = |words: &str| {
            let value = format!("{{ path=/bin/a ; argv[]={words} ; ignore_errors=no ; pid=0 }}");
            ("ExecStart".to_owned(), value)
        };
        let unit = Unit(vec![started("/bin/a --b c"), started("/bin/d")]);
        assert_eq!(unit.commands(), "/bin/a --b c\n/bin/d");
        assert_eq!(Unit::default().commands(), "");
    }
}
