//! `scrub --install-timer` and `--uninstall-timer`: a systemd timer that replaces the checks that the distribution
//! schedules, and its removal.

mod keys;
mod record;
#[cfg(test)]
mod tests;
mod units;

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use jiff::Zoned;
use linux::exec::{self, Exec};

pub(crate) use units::TimerSettings;

use super::schedule::{self, Checker, ScheduleSource, Scheduled, ScheduledChecks, below, systemd};
use array::programs::Programs;
use record::{DisabledCheck, ReplacedCheck, replace};
use ui::exit::{ExitClass as _, Failure};
use units::FIRST_LINE;

/// Folder of the units, below `/`.
const UNIT_FOLDER: &str = "etc/systemd/system";
const SERVICE: &str = "disksmith-scrub.service";
const TIMER: &str = "disksmith-scrub.timer";
/// Record of the checks that were turned off. systemd ignores files with this suffix.
const REPLACED_RECORD: &str = "disksmith-scrub.replaced.json";

/// The host that is changed.
pub(crate) struct TimerHost<'a> {
    /// The folder that represents its `/`.
    pub root: PathBuf,
    /// Runner of the host's programs, such as systemctl.
    pub programs: &'a mut dyn Programs,
    /// Reports the changes that are made, or would be.
    pub report: &'a mut dyn FnMut(&str),
    /// True if changes are only to be reported.
    pub dry: bool,
}

/// Writes and starts the timer, and turns off the checks that the distribution schedules. A second call changes only
/// the timer.
///
/// # Errors
/// Refused where systemd does not run, an argument cannot be written into a unit, systemd rejects the units, or units
/// with these names belong to another program. Midway when a file cannot be written or systemctl fails: the checks that
/// were turned off until then are recorded, and `--uninstall-timer` turns them on again.
pub(crate) fn install(host: &mut TimerHost, wanted: &TimerSettings) -> Result<(), Failure> {
    check(host, wanted)?;
    let found = schedule::find(&host.root, &Zoned::now(), host.programs);
    let record_path = host.at(REPLACED_RECORD);
    let mut kept = ReplacedCheck::read(&record_path).refused()?;
    let (plan, left) = plan(host, &found).refused()?;
    for (name, text) in [(SERVICE, wanted.service()), (TIMER, wanted.timer())] {
        (host.report)(&format!("+ write /{UNIT_FOLDER}/{name}\n"));
        if host.dry {
            (host.report)(&text);
        } else {
            replace(&host.at(name), &text).midway()?;
        }
    }
    for off in plan {
        // Recorded before it is turned off: after a kill in between, the record has one check too many, which is
        // harmless.
        if !host.dry && !kept.list.contains(&off) {
            kept.list.push(off.clone());
            kept.write(&record_path).midway()?;
        }
        host.turn_off(&off).midway()?;
    }
    host.systemctl(&["daemon-reload"]).midway()?;
    host.systemctl(&["enable", "--now", TIMER]).midway()?;
    // Otherwise a timer that is already running keeps its old time.
    host.systemctl(&["restart", TIMER]).midway()?;
    left.iter().for_each(|text| (host.report)(text));
    if !host.dry {
        (host.report)("To undo this: disksmith scrub --uninstall-timer\n");
    }
    Ok(())
}

/// Stops and removes the timer, and turns on the checks again that it replaced. Files that another program has changed
/// since are left, and reported.
///
/// # Errors
/// Refused where the timer is not installed. Midway when systemctl fails or a file cannot be written: the same command
/// continues.
pub(crate) fn uninstall(host: &mut TimerHost) -> Result<(), Failure> {
    let record_path = host.at(REPLACED_RECORD);
    let mut kept = ReplacedCheck::read(&record_path).refused()?;
    let ours = host.installed_units().refused()?;
    if ours.is_empty() && !record_path.exists() {
        return Err(Failure::refused(
            "there is no timer of this program to remove: `disksmith scrub --install-timer` installs it",
        ));
    }
    require_systemd(host)?;
    if ours.contains(&TIMER) {
        host.systemctl(&["disable", "--now", TIMER]).midway()?;
    }
    for name in &ours {
        (host.report)(&format!("+ rm /{UNIT_FOLDER}/{name}\n"));
        if !host.dry {
            remove(&host.at(name)).midway()?;
        }
    }
    host.systemctl(&["daemon-reload"]).midway()?;
    while let Some(off) = kept.list.pop() {
        host.turn_on(&off).midway()?;
        if !host.dry {
            kept.write(&record_path).midway()?;
        }
    }
    if !host.dry {
        remove(&record_path).midway()?;
    }
    Ok(())
}

/// Checks that the timer can work.
fn check(host: &mut TimerHost, wanted: &TimerSettings) -> Result<(), Failure> {
    require_systemd(host)?;
    if let Some(bad) = wanted.unwritable() {
        return Err(Failure::refused(format!(
            "{bad:?} cannot be written into a unit of systemd: it is not UTF-8, or has control characters"
        )));
    }
    for name in [SERVICE, TIMER] {
        let path = host.at(name);
        if path.symlink_metadata().is_ok() && !is_own_unit(&path).refused()? {
            return Err(Failure::refused(format!(
                "{} is there and was not written by this program; it is left as it is. Remove or rename \
                 it first",
                path.display()
            )));
        }
    }
    let faults = faults(host.programs, wanted).refused()?;
    if !faults.is_empty() {
        return Err(Failure::refused(format!(
            "systemd rejects the units: {}",
            faults.join("; ")
        )));
    }
    Ok(())
}

/// The errors that `systemd-analyze` reports for the units; empty where it is not installed.
pub(crate) fn faults(
    programs: &mut dyn Programs,
    wanted: &TimerSettings,
) -> anyhow::Result<Vec<String>> {
    if !programs.has("systemd-analyze") {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir()?;
    let paths = [SERVICE, TIMER].map(|name| folder.path().join(name));
    fs::write(&paths[0], wanted.service())?;
    fs::write(&paths[1], wanted.timer())?;
    let verify = Exec::new("systemd-analyze").arg("verify").args(&paths);
    let text = match programs.run(&verify) {
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(exec::Error::Failed { stderr, .. }) => stderr,
        Err(error) => return Err(error.into()),
    };
    // Messages about other units of the host are ignored.
    let ours = text.lines().filter(|line| line.contains("disksmith-scrub"));
    Ok(ours.map(str::to_owned).collect())
}

fn require_systemd(host: &TimerHost) -> Result<(), Failure> {
    if systemd::is_running(&host.root) {
        return Ok(());
    }
    Err(Failure::refused(
        "systemd does not run on this host (there is no /run/systemd/system), so a timer of it would do \
         nothing; let cron run `disksmith scrub` instead",
    ))
}

/// Actions that turn off the active checks, and sentences on checks that are left and on files that could not be read.
fn plan(
    host: &TimerHost,
    found: &ScheduledChecks,
) -> anyhow::Result<(Vec<DisabledCheck>, Vec<String>)> {
    let (mut plan, mut left) = (Vec::new(), Vec::new());
    for scheduled in found.running() {
        match off(host, scheduled)? {
            // One setting may apply to several lines.
            Some(off) if plan.contains(&off) => {}
            Some(off) => plan.push(off),
            None => left.push(format!(
                "{} runs {} and is left as it is: take it out yourself.\n",
                scheduled.source,
                scheduled.checker.name()
            )),
        }
    }
    left.extend(found.unread.iter().map(|text| format!("{text}\n")));
    Ok((plan, left))
}

/// Action that turns a check off; `None` for a check that an administrator has made.
fn off(host: &TimerHost, scheduled: &Scheduled) -> anyhow::Result<Option<DisabledCheck>> {
    if scheduled.checker == Checker::Own {
        return Ok(None);
    }
    if let ScheduleSource::Timer {
        unit,
        is_enabled,
        is_active,
    } = &scheduled.source
    {
        let (unit, active) = (unit.clone(), *is_active);
        // A timer that runs without being enabled in /etc would be started again, so it is masked.
        return Ok(Some(match is_enabled {
            true => DisabledCheck::Disabled { unit },
            false => DisabledCheck::Masked { unit, active },
        }));
    }
    let (file, line) = match scheduled.checker {
        Checker::Checkarray if scheduled.heeds_autocheck() => (schedule::DEBIAN, "AUTOCHECK=false"),
        Checker::RaidCheck => (schedule::RED_HAT, "ENABLED=no"),
        _ => return Ok(None),
    };
    let file = PathBuf::from(file);
    let (_, change) = keys::set(&host.text(&file)?, line);
    Ok(Some(DisabledCheck::Set { file, change }))
}

impl TimerHost<'_> {
    /// Path of one of the units.
    fn at(&self, name: &str) -> PathBuf {
        self.root.join(UNIT_FOLDER).join(name)
    }

    /// Text of a file of the host; empty where the file does not exist.
    fn text(&self, file: &Path) -> anyhow::Result<String> {
        match fs::read_to_string(below(&self.root, file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text.with_context(|| format!("{} could not be read", file.display())),
        }
    }

    fn systemctl(&mut self, args: &[&str]) -> anyhow::Result<()> {
        let command = Exec::new("systemctl").args(args.iter().copied());
        (self.report)(&format!("+ {}\n", command.line()));
        if !self.dry {
            self.programs.run(&command)?;
        }
        Ok(())
    }

    /// The installed units that this program has written.
    fn installed_units(&self) -> io::Result<Vec<&'static str>> {
        let mut ours = Vec::new();
        for name in [TIMER, SERVICE] {
            if is_own_unit(&self.at(name))? {
                ours.push(name);
            }
        }
        Ok(ours)
    }

    fn turn_off(&mut self, off: &DisabledCheck) -> anyhow::Result<()> {
        match off {
            DisabledCheck::Disabled { unit } => self.systemctl(&["disable", "--now", unit]),
            DisabledCheck::Masked { unit, .. } => self.systemctl(&["mask", "--now", unit]),
            DisabledCheck::Set { file, change } => {
                (self.report)(&format!("+ set {} in {}\n", change.after, file.display()));
                let (text, _) = keys::set(&self.text(file)?, &change.after);
                self.edit(file, &text)
            }
        }
    }

    fn turn_on(&mut self, off: &DisabledCheck) -> anyhow::Result<()> {
        match off {
            DisabledCheck::Disabled { unit } => self.systemctl(&["enable", "--now", unit]),
            DisabledCheck::Masked { unit, active } => {
                self.systemctl(&["unmask", unit])?;
                match active {
                    true => self.systemctl(&["start", unit]),
                    false => Ok(()),
                }
            }
            DisabledCheck::Set { file, change } => {
                let (after, name) = (&change.after, file.display());
                let before = change.before.as_deref().unwrap_or("without it");
                let Some(text) = keys::put_back(&self.text(file)?, change) else {
                    (self.report)(&format!(
                        "{name} has no line {after} any more and is left as it is; before, it read: {before}\n"
                    ));
                    return Ok(());
                };
                (self.report)(&format!("+ set {after} in {name} back: {before}\n"));
                self.edit(file, &text)
            }
        }
    }

    fn edit(&self, file: &Path, text: &str) -> anyhow::Result<()> {
        match self.dry {
            true => Ok(()),
            false => replace(&below(&self.root, file), text),
        }
    }
}

/// True if the timer is installed on the host whose `/` is at `root`.
pub(crate) fn is_installed(root: &Path) -> bool {
    is_own_unit(&root.join(UNIT_FOLDER).join(TIMER)).unwrap_or(false)
}

/// True if a unit exists and was written by this program.
fn is_own_unit(path: &Path) -> io::Result<bool> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes.starts_with(FIRST_LINE.as_bytes())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} could not be removed", path.display()))
        }
        _ => Ok(()),
    }
}
