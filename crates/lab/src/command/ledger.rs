//! The machine's ledger on this host: its runs are added to the host's own, and it is copied to the requested path.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ledger::{Filter, Ledger};

use super::failure::all;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Files of a ledger: its logs, of which SQLite leaves one when it is not closed in order,
/// and the file itself. (SQLite recreates the `-shm` file when it opens the ledger.)
const LEDGER_FILES: [&str; 3] = ["-wal", "-journal", ""];

/// Refuses a path that exists, or at which no file can be created.
pub(super) fn check_new(path: &Path) -> Result<(), Failure> {
    for end in LEDGER_FILES {
        let path = with_suffix(path, end);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::refused(format!(
                "{} exists; name a new file for the machine's ledger, or remove that one",
                path.display()
            )));
        }
    }
    let failed = || format!("{} cannot be written", path.display());
    // It stays as it was: nothing is there.
    let made = File::options().write(true).create_new(true).open(path);
    made.and_then(|_| fs::remove_file(path))
        .with_context(failed)
        .refused()
}

/// Adds the runs of the ledger that the machine has written, if any, to this host's, and copies it to the requested
/// path.
pub(super) fn keep_ledger(
    copied: &Path,
    wanted: Option<&Path>,
    context: &Context,
) -> Result<(), Failure> {
    if !copied.is_file() {
        return Ok(());
    }
    let kept = keep_runs(copied, context);
    let placed = match wanted {
        Some(wanted) => copy_to(copied, wanted),
        None => Ok(()),
    };
    all(context, kept, [placed])
}

/// Copies the ledger to a new path. A file that another process creates there meanwhile is kept.
fn copy_to(copied: &Path, wanted: &Path) -> Result<(), Failure> {
    for end in LEDGER_FILES {
        let (from, to) = (with_suffix(copied, end), with_suffix(wanted, end));
        if !from.is_file() {
            continue;
        }
        let failed = || {
            format!(
                "the machine's ledger could not be written to {}",
                to.display()
            )
        };
        let opened = File::options().write(true).create_new(true).open(&to);
        let mut file = opened.with_context(failed).midway()?;
        let written = File::open(&from)
            .and_then(|mut from| io::copy(&mut from, &mut file))
            .and_then(|_| file.sync_all());
        if let Err(error) = written {
            // An incomplete copy would look complete.
            let _ = fs::remove_file(&to);
            return Err(error).with_context(failed).midway();
        }
    }
    Ok(())
}

/// A path with a suffix after its name.
fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Adds the machine's runs to this host's ledger, unless it already has them.
fn keep_runs(copied: &Path, context: &Context) -> Result<(), Failure> {
    let theirs = Ledger::open(copied).midway()?;
    let runs = theirs.list(&Filter::default()).midway()?;
    if runs.is_empty() {
        return Ok(());
    }
    let mut ours = context.open_ledger()?;
    let mut kept = 0;
    for summary in &runs {
        let id = summary.id.to_string();
        if ours.conclusion(&id).is_ok() {
            continue;
        }
        let run = theirs.load(&id).midway()?;
        let conclusion = theirs.conclusion(&id).midway()?;
        ours.save(&run, conclusion.verdict, &conclusion.findings)
            .midway()?;
        kept += 1;
    }
    // A sweep that was tried on virtual volumes can be shown on the host too.
    ours.adopt_finished_work(&theirs).midway()?;
    let path = ours.path().display();
    context.notice(&format!("{kept} runs of the machine are now in {path}."));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_placed_with_its_log_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("copied"), "runs").unwrap();
        fs::write(at("copied-wal"), "log").unwrap();
        copy_to(&at("copied"), &at("wanted")).unwrap();
        assert_eq!(fs::read(at("wanted")).unwrap(), b"runs");
        assert_eq!(fs::read(at("wanted-wal")).unwrap(), b"log");

        fs::write(at("wanted"), "older").unwrap();
        fs::remove_file(at("wanted-wal")).unwrap();
        fs::remove_file(at("copied-wal")).unwrap();
        copy_to(&at("copied"), &at("wanted")).unwrap_err();
        assert_eq!(fs::read(at("wanted")).unwrap(), b"older");
    }
}
