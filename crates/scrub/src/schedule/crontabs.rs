//! Lines of crontabs, and scripts in cron's folders, that start a check. Their times are reported as written.

use std::path::{Path, PathBuf};

use super::files::{below, read};
use super::scheduled::{Checker, ScheduleSource, Scheduled, ScheduledChecks};

/// Paths of root's own crontab, whose lines name no user, on Debian and on Red Hat.
const ROOT_CRONTABS: [&str; 2] = ["/var/spool/cron/crontabs/root", "/var/spool/cron/root"];
/// Suffixes of the folders whose scripts cron runs once in such a period.
const PERIOD_SUFFIXES: [&str; 4] = ["hourly", "daily", "weekly", "monthly"];
/// Suffixes of files that editors and package managers leave, and that cron ignores.
const IGNORED_SUFFIXES: [&str; 7] = [
    "~",
    ".rpmsave",
    ".rpmnew",
    ".rpmorig",
    ".dpkg-old",
    ".dpkg-dist",
    ".dpkg-new",
];

/// Finds the checks that cron starts.
pub(super) fn find(root: &Path, found: &mut ScheduledChecks) {
    let mut crontabs = vec![PathBuf::from("/etc/crontab")];
    crontabs.extend(files(root, "/etc/cron.d"));
    for file in crontabs {
        crontab(root, &file, 1, found);
    }
    for file in ROOT_CRONTABS {
        crontab(root, Path::new(file), 0, found);
    }
    for period in PERIOD_SUFFIXES {
        for file in files(root, &format!("/etc/cron.{period}")) {
            let text = read(root, &file, &mut found.unread).unwrap_or_default();
            let lines = text.lines().filter(|line| !is_comment(line));
            let command = lines.collect::<Vec<&str>>().join("\n");
            push(ScheduleSource::Cron(file, None), &command, period, found);
        }
    }
}

/// Finds the lines of a crontab (crontab(5)) that start a check. A line has five time fields or a word such as
/// `@weekly`, then `users` words that name the user (0 or 1), and the command.
fn crontab(root: &Path, file: &Path, users: usize, found: &mut ScheduledChecks) {
    let text = read(root, file, &mut found.unread).unwrap_or_default();
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut zone = String::new();
    for (number, line) in lines.filter(|(_, line)| !is_comment(line)) {
        // An extension of cronie: the time zone of the following lines.
        if let Some((name, value)) = line.split_once('=')
            && name.trim_end() == "CRON_TZ"
        {
            zone = format!(" {}", value.trim());
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let fields = if line.starts_with('@') { 1 } else { 5 };
        if let Some((times, rest)) = words.split_at_checked(fields) {
            let command = rest.get(users..).unwrap_or_default().join(" ");
            let times = format!("at '{}'{zone}", times.join(" "));
            let source = ScheduleSource::Cron(file.to_owned(), Some(number));
            push(source, &command, &times, found);
        }
    }
}

/// Adds a command, if it starts a check.
fn push(source: ScheduleSource, command: &str, times: &str, found: &mut ScheduledChecks) {
    if let Some(checker) = Checker::of(command) {
        found.scheduled.push(Scheduled {
            times: Some(format!("cron starts it {times}.")),
            ..Scheduled::new(source, checker, command)
        });
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// The files of a folder that cron reads, sorted by name.
fn files(root: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = below(root, Path::new(folder)).read_dir();
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_left = |name: &str| IGNORED_SUFFIXES.iter().any(|end| name.ends_with(end));
    let names = names.filter(|name| !name.starts_with('.') && !is_left(name));
    let mut files: Vec<PathBuf> = names.map(|name| Path::new(folder).join(name)).collect();
    files.sort();
    files
}
