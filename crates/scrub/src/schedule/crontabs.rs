//! Lines of crontabs, and scripts in cron's folders, that start a check.

use std::path::{Path, PathBuf};
use std::{fs, io};

use array::programs::Programs;
use jiff::Zoned;

use super::cron::{self, Line, Users, When};
use super::scheduled::{Checker, Scheduled, ScheduledChecks, Source};
use super::systemd::next_elapse;

/// Finds them: in `/etc/crontab`, `/etc/cron.d`, root's own crontab, and the folders whose scripts
/// are run once in a while.
pub(super) fn find(
    root: &Path,
    now: &Zoned,
    programs: &mut dyn Programs,
    found: &mut ScheduledChecks,
) {
    let mut files = vec![(PathBuf::from("/etc/crontab"), Users::Named)];
    for name in names(root, "/etc/cron.d") {
        files.push((Path::new("/etc/cron.d").join(name), Users::Named));
    }
    // Debian's place for a user's own crontab, and Red Hat's.
    for own in ["/var/spool/cron/crontabs/root", "/var/spool/cron/root"] {
        files.push((own.into(), Users::Own));
    }
    for (file, users) in files {
        let Some(text) = text(root, &file, found) else {
            continue;
        };
        for line in cron::lines(&text, users) {
            let Some(checker) = Checker::of(&line.command) else {
                continue;
            };
            let source = Source::CronLine(file.clone(), line.number);
            let mut scheduled = Scheduled::new(source, checker, &line.command);
            set_next(&mut scheduled, &line, now, programs);
            found.scheduled.push(scheduled);
        }
    }
    for period in ["hourly", "daily", "weekly", "monthly"] {
        scripts(root, period, now, programs, found);
    }
}

/// A file's text; `None` where it is not there, or is no file. What cannot be read is reported.
fn text(root: &Path, file: &Path, found: &mut ScheduledChecks) -> Option<String> {
    match fs::read(below(root, file)) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            let is_none = [io::ErrorKind::NotFound, io::ErrorKind::IsADirectory];
            if !is_none.contains(&error.kind()) {
                found.unread.push(format!(
                    "{} could not be read ({error}); a check that it schedules is not seen.",
                    file.display()
                ));
            }
            None
        }
    }
}

/// Path of the host below the folder that stands for its `/`.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The files of a folder of cron's that cron heeds, by name.
fn names(root: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(below(root, Path::new(folder)));
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            // What editors and package managers leave behind.
            let left = [
                "~",
                ".rpmsave",
                ".rpmnew",
                ".rpmorig",
                ".dpkg-old",
                ".dpkg-dist",
                ".dpkg-new",
            ];
            !(name.starts_with('.') || left.iter().any(|ending| name.ends_with(ending)))
        })
        .collect();
    names.sort();
    names
}

/// Notes when a line runs next. Its times are judged by systemd, as calendar events.
fn set_next(scheduled: &mut Scheduled, line: &Line, now: &Zoned, programs: &mut dyn Programs) {
    match &line.when {
        When::At(events) => {
            let next = events.iter().map(|event| next_elapse(programs, event, now));
            match next.collect::<anyhow::Result<Vec<_>>>() {
                Ok(next) => {
                    let next = next.into_iter().flatten();
                    scheduled.next = next.chain(scheduled.next.take()).min();
                }
                Err(_) => scheduled.unclear.push(format!(
                    "systemd-analyze does not report when that is: {}.",
                    events.join("; ")
                )),
            }
        }
        When::AtBoot => scheduled.unclear.push("It begins at boot.".to_owned()),
        When::Unclear(text) => scheduled
            .unclear
            .push(format!("When that is, is not understood: {text}.")),
    }
}

/// The scripts of `/etc/cron.weekly` and its kin that start a check. cron runs such a folder at the
/// time of a line in `/etc/crontab`; where anacron is installed, that does, at a time of its own.
fn scripts(
    root: &Path,
    period: &str,
    now: &Zoned,
    programs: &mut dyn Programs,
    found: &mut ScheduledChecks,
) {
    let folder = format!("/etc/cron.{period}");
    for name in names(root, &folder) {
        let file = Path::new(&folder).join(name);
        let Some(content) = text(root, &file, found) else {
            continue;
        };
        let run: Vec<&str> = content
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .collect();
        let command = run.join("\n");
        let Some(checker) = Checker::of(&command) else {
            continue;
        };
        let mut scheduled = Scheduled::new(Source::CronScript(file), checker, &command);
        let crontab = text(root, Path::new("/etc/crontab"), found).unwrap_or_default();
        let has_anacron = root.join("usr/sbin/anacron").exists();
        for line in cron::lines(&crontab, Users::Named) {
            if line.command.contains(&folder) && !has_anacron {
                set_next(&mut scheduled, &line, now, programs);
            }
        }
        if scheduled.next.is_none() && scheduled.unclear.is_empty() {
            scheduled.unclear.push(format!(
                "It begins {period}, at a time that anacron chooses."
            ));
        }
        found.scheduled.push(scheduled);
    }
}
