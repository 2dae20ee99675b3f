//! Lines added to files in /etc: with a copy of the earlier contents, replaced atomically, and removed again if the
//! work fails.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::building::{BuildStage, SavedLine};
use super::host::ArrayHost;
use super::steps::{BuildStep, UndoResult};

/// Suffix of the copy of a file before its change.
const COPY: &str = "before-disksmith";

/// Suffix of a file while it is written.
const NEW: &str = "disksmith-new";

/// Adds a line to a file.
pub(crate) struct AddLine {
    file: PathBuf,
    line: String,
    /// Content before and content written; `None` until the line was added.
    change: Option<(Option<Vec<u8>>, Vec<u8>)>,
}

impl AddLine {
    /// A line for a file, which need not be there yet.
    pub(crate) fn new(file: PathBuf, line: String) -> AddLine {
        AddLine {
            file,
            line,
            change: None,
        }
    }
}

/// A file's content; `None` when it does not exist.
pub(crate) fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl BuildStep<ArrayHost<'_>> for AddLine {
    fn name(&self) -> String {
        format!("adding a line to {}", self.file.display())
    }

    fn run(&mut self, host: &mut ArrayHost) -> anyhow::Result<()> {
        let shown = self.file.display().to_string();
        // A link is followed, so that it stays one.
        if let Ok(real) = fs::canonicalize(&self.file) {
            self.file = real;
        }
        host.note(BuildStage::Persisting)?;
        let before = content(&self.file).with_context(|| format!("{shown} cannot be read"))?;
        let mut after = before.clone().unwrap_or_default();
        if after.last().is_some_and(|&byte| byte != b'\n') {
            after.push(b'\n');
        }
        after.extend_from_slice(self.line.as_bytes());
        after.push(b'\n');
        if let Some(before) = &before {
            let copy = sibling(&self.file, COPY);
            replace(&copy, before, &self.file)
                .with_context(|| format!("{} cannot be written", copy.display()))?;
        }
        replace(&self.file, &after, &self.file)
            .with_context(|| format!("{shown} cannot be written"))?;
        self.change = Some((before, after));
        (host.report)(&format!("+ echo '{}' >> {shown}\n", self.line));
        Ok(())
    }

    fn undo(&mut self, _: &mut ArrayHost) -> Vec<UndoResult> {
        let Some((before, after)) = self.change.take() else {
            return Vec::new();
        };
        let shown = self.file.display();
        let is_ours = content(&self.file).is_ok_and(|now| now.as_deref() == Some(&after[..]));
        if !is_ours {
            return vec![UndoResult::Leftover(format!(
                "{shown} was changed by something else too: remove the line '{}'",
                self.line
            ))];
        }
        let restored = match &before {
            Some(before) => replace(&self.file, before, &self.file),
            None => fs::remove_file(&self.file),
        };
        // The copy is no longer needed; it may not exist.
        let _ = fs::remove_file(sibling(&self.file, COPY));
        vec![match restored {
            Ok(()) => UndoResult::Reverted(format!("{shown} is as it was")),
            Err(error) => UndoResult::Leftover(format!(
                "the line '{}' in {shown}, which could not be taken out: {error}",
                self.line
            )),
        }]
    }
}

/// Removes a line that a killed process has added; true if it was there. Everything else in the file stays as it is.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn take_out(kept: &SavedLine) -> io::Result<bool> {
    let file = &kept.file;
    // Remains of a write that the kill interrupted.
    for left in [sibling(file, NEW), sibling(&sibling(file, COPY), NEW)] {
        remove_if_there(&left)?;
    }
    let Some(now) = content(file)? else {
        return Ok(false);
    };
    let copy = sibling(file, COPY);
    let Some(mut before) = without(&now, kept.line.as_bytes()) else {
        // The copy was made, and the line was not added yet.
        if content(&copy)?.as_deref() == Some(&now[..]) {
            remove_if_there(&copy)?;
        }
        return Ok(false);
    };
    let copied = content(&copy)?;
    // The file may have had no line feed at its end, and was given one.
    let is_copy = copied.as_ref().is_some_and(|copied| {
        before.strip_suffix(b"\n").unwrap_or(&before)
            == copied.strip_suffix(b"\n").unwrap_or(copied)
    });
    if let Some(copied) = copied.filter(|_| is_copy) {
        before = copied;
    }
    if before.is_empty() && !kept.existed {
        fs::remove_file(file)?;
    } else {
        replace(file, &before, file)?;
    }
    if is_copy {
        remove_if_there(&copy)?;
    }
    Ok(true)
}

/// The text without the last line that is equal to `line`; `None` where there is none.
fn without(text: &[u8], line: &[u8]) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let is_it = |found: &&[u8]| found.strip_suffix(b"\n").unwrap_or(found) == line;
    let at = lines.iter().rposition(is_it)?;
    let (before, from) = lines.split_at(at);
    Some([before.concat(), from.get(1..)?.concat()].concat())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sibling(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Writes a file atomically, with the owner and mode of `like`.
fn replace(file: &Path, bytes: &[u8], like: &Path) -> io::Result<()> {
    let new = sibling(file, NEW);
    let written = write_new(&new, bytes, like).and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(new: &Path, bytes: &[u8], like: &Path) -> io::Result<()> {
    let mut to = fs::File::create(new)?;
    if let Ok(found) = fs::metadata(like) {
        to.set_permissions(fs::Permissions::from_mode(found.mode()))?;
        std::os::unix::fs::fchown(&to, Some(found.uid()), Some(found.gid()))?;
    }
    to.write_all(bytes)?;
    to.sync_all()
}
