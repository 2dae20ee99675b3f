//! Files: read from the position that the stores have, once to the end, or as they grow (`--follow`), across rotation.
//!
//! A file is identified by its inode, birth time and first line, not by its name: a log that a rotation renames is read
//! to its end, and a new file that reuses its inode is recognized as another.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ui::format::hex;

use super::{Delivery, Identity, Intake, PollResult, Source, Stopped};
use crate::identity::fingerprint;
use crate::lines::Lines;

/// Bytes of the first line that identify a file.
const HEAD: usize = 1024;
/// Wait before a file that has not grown is read again.
const POLL: Duration = Duration::from_millis(100);

/// Time for which a replaced file is still read: its writer may open the new file later.
const RENAMED_FILE_TIME: Duration = Duration::from_secs(3);

/// Source that reads a file, and follows it through rotation.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    address: String,
    follow: bool,
    open: Option<OpenLog>,
    /// The file as opened at the start, when it must exist; after a rotation it may not exist yet.
    first: Option<File>,
    /// Rotated files, the oldest first. Those that were partly read are read to their end before the current file.
    rotated: VecDeque<PathBuf>,
    /// Time of the last write to the first file that was rotated while this ran. Files rotated later belong to the log
    /// too, although no store has any of their events.
    since: Option<SystemTime>,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    inode: u64,
    /// Identity of the file; `None` until it has a first line.
    identity: Option<String>,
    /// True if it was rotated before it was opened: it does not grow.
    is_rotated: bool,
    /// Moment at which another file was seen under its name.
    replaced: Option<Instant>,
    /// Position of the first byte that was not taken.
    at: u64,
    /// True if the file belongs to the log: a store has some of its events, or it was rotated while this ran.
    is_begun: bool,
    lines: Lines,
}

/// Opens a regular file.
///
/// # Errors
/// Where it cannot be read.
pub(super) fn regular(path: &Path) -> anyhow::Result<File> {
    let cannot = |error| {
        let forms = "the forms of sources are listed by: disksmith tally --help";
        let reason = linux::remedy::file(&error, forms);
        anyhow::anyhow!("{} cannot be read: {reason}", path.display())
    };
    // Opening a pipe would wait for its writer.
    let kind = std::fs::metadata(path).map_err(cannot)?;
    anyhow::ensure!(
        kind.is_file(),
        "{} is no regular file; pass it as standard input, with --from -",
        path.display()
    );
    File::open(path).map_err(cannot)
}

impl FileSource {
    /// Opens a file.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn open(path: &Path, follow: bool) -> anyhow::Result<FileSource> {
        let first = regular(path)?;
        Ok(FileSource {
            path: path.to_owned(),
            address: path.display().to_string(),
            follow,
            open: None,
            first: Some(first),
            rotated: match follow {
                true => rotated(path),
                false => VecDeque::new(),
            },
            since: None,
        })
    }

    fn step(&mut self, intake: &mut dyn Intake) -> io::Result<PollResult> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let (file, is_rotated, is_begun) = match self.rotated.pop_front() {
                    // A file that was compressed or removed meanwhile is not read.
                    Some(path) => match File::open(&path) {
                        Ok(file) => {
                            let is_later = self.since.is_some_and(|since| {
                                is_numbered(&self.path, &path)
                                    && modified(&file).is_some_and(|at| at >= since)
                            });
                            (file, true, is_later)
                        }
                        Err(_) => return Ok(PollResult::More),
                    },
                    None => match self.first.take() {
                        Some(file) => (file, false, false),
                        None => (File::open(&self.path)?, false, false),
                    },
                };
                let inode = file.metadata()?.ino();
                self.open.insert(OpenLog {
                    file,
                    inode,
                    identity: None,
                    is_rotated,
                    replaced: None,
                    at: 0,
                    is_begun,
                    lines: Lines::default(),
                })
            }
        };
        if open.replaced.is_none() && !open.is_rotated && replaced(&self.path, open.inode) {
            open.replaced = Some(Instant::now());
            self.since = self.since.or(modified(&open.file));
        }
        let lingers = open
            .replaced
            .is_none_or(|at| at.elapsed() < RENAMED_FILE_TIME);
        let grows = self.follow && !open.is_rotated && lingers;
        if open.identity.is_none() {
            match open.recognize(intake, grows) {
                Ok(true) if open.is_rotated && !open.is_begun => return Ok(self.end()),
                Ok(true) => {}
                Ok(false) if grows => return Ok(PollResult::Idle),
                Ok(false) => return Ok(self.end()),
                Err(ReadFailure::Stopped(Stopped)) => return Ok(PollResult::Idle),
                Err(ReadFailure::Read(error)) => return Err(error),
            }
        }
        match open.read(intake, grows)? {
            true => Ok(PollResult::More),
            // A truncated file has ended.
            false if !grows || open.file.metadata()?.len() < open.at => Ok(self.end()),
            false => Ok(PollResult::Idle),
        }
    }

    /// Ends this file: the source ends, or the next file begins.
    fn end(&mut self) -> PollResult {
        let ended = self.open.take();
        if !self.follow {
            return PollResult::End;
        }
        if ended.is_some_and(|ended| ended.replaced.is_some()) {
            // The file may have been rotated more than once.
            self.rotated = rotated(&self.path);
        }
        PollResult::More
    }
}

enum ReadFailure {
    Stopped(Stopped),
    Read(io::Error),
}

impl From<Stopped> for ReadFailure {
    fn from(stopped: Stopped) -> ReadFailure {
        ReadFailure::Stopped(stopped)
    }
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> ReadFailure {
        ReadFailure::Read(error)
    }
}

impl OpenLog {
    /// Finds the file's identity, and the position up to which it was read; false while it has no line.
    fn recognize(&mut self, intake: &mut dyn Intake, follow: bool) -> Result<bool, ReadFailure> {
        let mut head = vec![0; HEAD];
        let count = self.file.read_at(&mut head, 0)?;
        let line = memchr::memchr(b'\n', &head[..count]).unwrap_or(count);
        if count == 0 || (follow && line == count && count < HEAD) {
            return Ok(false);
        }
        let hash = hex(&fingerprint(&head[..line])[..8]);
        let facts = self.file.metadata()?;
        let born = facts.created().ok();
        let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born = born.unwrap_or_default().as_nanos();
        let name = |generation: u32| format!("file:{}:{born}:{hash}:{generation}", self.inode);
        // A file that was truncated in place and begins with the same line again is a new generation: the last one that
        // a store knows, or the next.
        let (mut generation, mut last) = (0, None);
        while let Some(position) = intake.position(&name(generation))? {
            last = Some(position);
            generation += 1;
        }
        let at = match last {
            Some(position) if position <= facts.len() => {
                generation -= 1;
                position
            }
            _ => 0,
        };
        self.is_begun |= last.is_some();
        self.identity = Some(name(generation));
        self.file.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(true)
    }

    /// Reads once, and passes on whole lines; at the end of a file that does not grow, also the rest. False if nothing
    /// was read.
    fn read(&mut self, intake: &mut dyn Intake, grows: bool) -> io::Result<bool> {
        let Some(identity) = &self.identity else {
            return Ok(false);
        };
        let count = self.lines.fill(|room| self.file.read(room))?;
        let lines = match count {
            0 if grows => return Ok(false),
            0 => self.lines.rest(),
            _ => self.lines.whole_lines(),
        };
        if lines.is_empty() {
            return Ok(count > 0);
        }
        let to = self.at + lines.len() as u64;
        let delivery = Delivery {
            identity: Identity::Step {
                source: identity,
                from: self.at,
                to,
            },
            lines,
        };
        if intake.take(&[delivery]).is_ok() {
            self.at = to;
            self.lines.consume();
        }
        Ok(true)
    }
}

/// The files in a path's folder whose names begin with the path's, as a rotation names them; the oldest first.
fn rotated(path: &Path) -> VecDeque<PathBuf> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten()
        .flatten();
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found: Vec<_> = entries
        .filter(|entry| {
            let rest = entry
                .file_name()
                .as_encoded_bytes()
                .strip_prefix(name)
                .map(<[u8]>::to_vec);
            rest.is_some_and(|rest| matches!(rest.first(), Some(b'.' | b'-')))
        })
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((facts.modified().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// True if the rest of a rotated file's name is a number or a date; with letters it may be compressed, or another log.
fn is_numbered(path: &Path, rotated: &Path) -> bool {
    let length = path.file_name().map_or(0, std::ffi::OsStr::len);
    let name = rotated.file_name().unwrap_or_default().as_encoded_bytes();
    !name.iter().skip(length).any(u8::is_ascii_alphabetic)
}

/// Time of the last write.
fn modified(file: &File) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

/// True if the path now names another file. False if the path does not exist: the next file may still be created.
fn replaced(path: &Path, inode: u64) -> bool {
    path.metadata().is_ok_and(|facts| facts.ino() != inode)
}

impl Source for FileSource {
    fn address(&self) -> &str {
        &self.address
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        match self.step(intake) {
            Ok(PollResult::Idle) => {
                std::thread::sleep(wait.min(POLL));
                PollResult::Idle
            }
            Ok(polled) => polled,
            Err(error) => PollResult::Down(error.to_string()),
        }
    }

    fn lag(&self) -> Option<u64> {
        let open = self.open.as_ref()?;
        Some(open.file.metadata().ok()?.len().saturating_sub(open.at))
    }

    fn rewind(&mut self) {
        self.open = None;
        if self.follow {
            self.rotated = rotated(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
