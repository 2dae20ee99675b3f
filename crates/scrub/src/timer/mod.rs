//! `scrub --install-timer` and `--uninstall-timer`: a timer of systemd that replaces what the
//! distribution has scheduled, and the way back.

mod keys;
mod record;
#[cfg(test)]
mod tests;
pub(super) mod units;

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use jiff::Zoned;
use linux::exec::{self, Exec};

pub(crate) use units::Wanted;

use super::schedule::{self, Checker, Scheduled, ScheduledChecks, Source, systemd};
use array::programs::Programs;
use record::{Off, Replaced, replace};
use ui::exit::{ExitClass as _, Failure};
use units::MARK;

/// Folder of the units, below `/`.
const FOLDER: &str = "etc/systemd/system";
const SERVICE: &str = "disksmith-scrub.service";
const TIMER: &str = "disksmith-scrub.timer";
/// Record of what was turned off. systemd heeds no file with this ending.
const RECORD: &str = "disksmith-scrub.replaced.json";

/// The host that is changed.
pub(crate) struct TimerHost<'a> {
    /// The folder that is its `/`.
    pub root: PathBuf,
    /// Its programs: systemctl.
    pub programs: &'a mut dyn Programs,
    /// Shows what is done, or would be.
    pub say: &'a mut dyn FnMut(&str),
    /// True if it is only to be printed.
    pub dry: bool,
}

/// Writes and starts the timer, and turns off what the distribution has scheduled. To do so again
/// changes the timer and nothing else.
///
/// # Errors
/// Refused where systemd does not run, something cannot be written into a unit, systemd finds fault with
/// the units, or units of these names are another program's. Midway when a file cannot be written or
/// systemctl fails: what was turned off until then is kept, and `--uninstall-timer` turns it on again.
pub(crate) fn install(host: &mut TimerHost, wanted: &Wanted) -> Result<(), Failure> {
    check(host, wanted)?;
    let found = schedule::find(&host.root, &Zoned::now(), host.programs);
    let record_path = host.at(RECORD);
    let mut kept = Replaced::read(&record_path).refused()?;
    let plan = plan(host, &found).refused()?;
    for (name, text) in [(SERVICE, wanted.service()), (TIMER, wanted.timer())] {
        (host.say)(&format!("+ write /{FOLDER}/{name}\n"));
        if host.dry {
            (host.say)(&text);
        } else {
            let path = host.at(name);
            make_folder(&path).midway()?;
            replace(&path, &text)
                .with_context(|| format!("{} could not be written", path.display()))
                .midway()?;
        }
    }
    for off in plan {
        // What is done is kept before it is done: a kill between the two leaves one too many.
        if !host.dry {
            if !kept.list.contains(&off) {
                kept.list.push(off.clone());
            }
            kept.write(&record_path)
                .with_context(|| format!("{} could not be written", record_path.display()))
                .midway()?;
        }
        host.turn_off(&off).midway()?;
    }
    host.systemctl(&["daemon-reload"]).midway()?;
    host.systemctl(&["enable", "--now", TIMER]).midway()?;
    // A timer that ran already keeps its old time otherwise.
    host.systemctl(&["restart", TIMER]).midway()?;
    host.report_the_rest(&found);
    if !host.dry {
        (host.say)("To undo this: disksmith scrub --uninstall-timer\n");
    }
    Ok(())
}

/// Stops the timer, removes it, and turns on again what it had replaced. What another program has changed
/// since is left, and reported.
///
/// # Errors
/// Refused where there is no such timer. Midway when systemctl fails or a file cannot be written: the
/// same command goes on.
pub(crate) fn uninstall(host: &mut TimerHost) -> Result<(), Failure> {
    let record_path = host.at(RECORD);
    let mut kept = Replaced::read(&record_path).refused()?;
    let ours = host.ours().refused()?;
    if ours.is_empty() && !record_path.exists() {
        return Err(Failure::refused(
            "there is no timer of this program to take out: `disksmith scrub --install-timer` writes it",
        ));
    }
    require_systemd(host)?;
    if ours.contains(&TIMER) {
        host.systemctl(&["disable", "--now", TIMER]).midway()?;
    }
    for name in &ours {
        (host.say)(&format!("+ rm /{FOLDER}/{name}\n"));
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

/// Refuses what cannot go well.
fn check(host: &mut TimerHost, wanted: &Wanted) -> Result<(), Failure> {
    require_systemd(host)?;
    if !wanted.program.is_absolute() {
        return Err(Failure::refused(format!(
            "{} is not the absolute path of a program, which a unit needs",
            wanted.program.display()
        )));
    }
    if let Some(bad) = wanted.unwritable() {
        return Err(Failure::refused(format!(
            "{bad:?} cannot be written into a unit of systemd: it is not UTF-8, or has control characters"
        )));
    }
    for name in [SERVICE, TIMER] {
        let path = host.at(name);
        if path.symlink_metadata().is_ok() && !is_ours(&path).refused()? {
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
            "systemd would not take the units: {}",
            faults.join("; ")
        )));
    }
    Ok(())
}

/// The faults that systemd finds with the units; none where its program is not installed.
fn faults(programs: &mut dyn Programs, wanted: &Wanted) -> anyhow::Result<Vec<String>> {
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
    // What it says of other units of the host is not about these.
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

/// Schedules to turn off: all that run and that are known. The lines that have it in one file are changed
/// once.
fn plan(host: &TimerHost, found: &ScheduledChecks) -> io::Result<Vec<Off>> {
    let mut plan: Vec<Off> = Vec::new();
    for scheduled in found.running() {
        if let Some(off) = off(host, scheduled)?
            && !plan.contains(&off)
        {
            plan.push(off);
        }
    }
    Ok(plan)
}

/// Way to turn one of them off; `None` for what somebody has made himself.
fn off(host: &TimerHost, scheduled: &Scheduled) -> io::Result<Option<Off>> {
    match (&scheduled.source, scheduled.checker) {
        (_, Checker::Own) => Ok(None),
        (Source::Timer(timer), _) => {
            let unit = timer.unit.clone();
            // What is not enabled in /etc, and runs all the same, would run again.
            Ok(Some(match timer.is_enabled {
                true => Off::Disabled { unit },
                false => Off::Masked {
                    unit,
                    active: timer.is_active,
                },
            }))
        }
        (_, Checker::Checkarray) if !scheduled.heeds_autocheck() => Ok(None),
        (_, Checker::Checkarray) => set(host, schedule::DEBIAN, "AUTOCHECK", "false").map(Some),
        (_, Checker::RaidCheck) => set(host, schedule::RED_HAT, "ENABLED", "no").map(Some),
        (_, Checker::Mdcheck) => Ok(None),
    }
}

/// Change of a variable in a file.
fn set(host: &TimerHost, file: &str, name: &str, value: &str) -> io::Result<Off> {
    let file = PathBuf::from(file);
    let text = fs::read_to_string(host.below(&file))?;
    let (_, change) = keys::set(&text, name, value);
    Ok(Off::Set { file, change })
}

impl TimerHost<'_> {
    /// Where one of the units is.
    fn at(&self, name: &str) -> PathBuf {
        self.root.join(FOLDER).join(name)
    }

    /// Where a path of the host is.
    fn below(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn systemctl(&mut self, args: &[&str]) -> anyhow::Result<()> {
        let command = Exec::new("systemctl").args(args.iter().copied());
        (self.say)(&format!("+ {}\n", command.line()));
        if !self.dry {
            self.programs.run(&command)?;
        }
        Ok(())
    }

    /// The units that this program has written and that are there.
    fn ours(&self) -> io::Result<Vec<&'static str>> {
        let mut ours = Vec::new();
        for name in [TIMER, SERVICE] {
            if is_ours(&self.at(name))? {
                ours.push(name);
            }
        }
        Ok(ours)
    }

    fn turn_off(&mut self, off: &Off) -> anyhow::Result<()> {
        match off {
            Off::Disabled { unit } => self.systemctl(&["disable", "--now", unit]),
            Off::Masked { unit, .. } => self.systemctl(&["mask", "--now", unit]),
            Off::Set { file, change } => {
                let (name, value) = change.after.split_once('=').unwrap_or((&change.after, ""));
                (self.say)(&format!("+ set {} in {}\n", change.after, file.display()));
                if self.dry {
                    return Ok(());
                }
                let path = self.below(file);
                let text = fs::read_to_string(&path)?;
                let (text, _) = keys::set(&text, name, value);
                replace(&path, &text)
                    .with_context(|| format!("{} could not be written", path.display()))
            }
        }
    }

    fn turn_on(&mut self, off: &Off) -> anyhow::Result<()> {
        match off {
            Off::Disabled { unit } => self.systemctl(&["enable", "--now", unit]),
            Off::Masked { unit, active } => {
                self.systemctl(&["unmask", unit])?;
                match active {
                    true => self.systemctl(&["start", unit]),
                    false => Ok(()),
                }
            }
            Off::Set { file, change } => self.put_back(file, change),
        }
    }

    fn put_back(&mut self, file: &Path, change: &keys::Change) -> anyhow::Result<()> {
        let was = change.before.as_deref().unwrap_or("without it");
        let path = self.below(file);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let Some(back) = keys::put_back(&text, change) else {
            (self.say)(&format!(
                "{} has no line {} any more and is left as it is; before, it read: {was}\n",
                file.display(),
                change.after
            ));
            return Ok(());
        };
        (self.say)(&format!(
            "+ set {} in {} back: {was}\n",
            change.after,
            file.display()
        ));
        if self.dry {
            return Ok(());
        }
        replace(&path, &back).with_context(|| format!("{} could not be written", path.display()))
    }

    /// Reports what still runs, because this program does not know how to turn it off.
    fn report_the_rest(&mut self, found: &ScheduledChecks) {
        let left: Vec<String> = found
            .running()
            .filter(|scheduled| matches!(off(self, scheduled), Ok(None)))
            .map(|scheduled| {
                format!(
                    "{} runs {} and is left as it is: take it out yourself.\n",
                    scheduled.source,
                    scheduled.checker.name()
                )
            })
            .chain(found.unread.iter().map(|text| format!("{text}\n")))
            .collect();
        left.iter().for_each(|text| (self.say)(text));
    }
}

/// True if the timer is there, below a system's `/`.
pub(crate) fn is_installed(root: &Path) -> bool {
    is_ours(&root.join(FOLDER).join(TIMER)).unwrap_or(false)
}

/// True if a unit is there and was written by this program.
fn is_ours(path: &Path) -> io::Result<bool> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes.starts_with(MARK.as_bytes())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn make_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} could not be removed", path.display()))
        }
        _ => Ok(()),
    }
}
