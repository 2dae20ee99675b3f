//! Opening of a log: a file, standard input, or the output of `sadf` for a binary file of sar.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::anyhow;
use formats::disk_log::is_binary;
use linux::exec::{Exec, Streaming};
use linux::remedy;
use rustix::fs::{FileType, fstat, tell};

use ui::charset::printable;
use ui::exit::{ExitClass as _, Failure};

/// Source of a log. It may be a pipe without data for hours.
pub(super) trait Origin: Read + AsFd {}

impl<S: Read + AsFd> Origin for S {}

/// A log with its length.
pub(super) struct Log {
    pub(super) source: Box<dyn Origin>,
    /// Length in bytes; `None` where the log comes through a pipe.
    pub(super) bytes: Option<u64>,
    /// True where sadf reads it.
    pub(super) is_binary: bool,
}

impl Log {
    pub(super) fn open(path: &Path) -> Result<Log, Failure> {
        if path == Path::new("-") {
            let input = StandardInput(io::stdin());
            return Ok(Log {
                bytes: bytes_left(&input),
                source: Box::new(input),
                is_binary: false,
            });
        }
        let open = || -> io::Result<(File, std::fs::Metadata)> {
            let file = File::open(path)?;
            let facts = file.metadata()?;
            Ok((file, facts))
        };
        let unread = |error: io::Error| {
            let written = "a log is written by: iostat -dxty 1 60 > iostat.log";
            let reason = remedy::file(&error, written);
            Failure::refused(format!("{} cannot be read: {reason}", path.display()))
        };
        let (file, facts) = open().map_err(unread)?;
        if facts.is_dir() {
            return Err(unread(io::ErrorKind::IsADirectory.into()));
        }
        let mut head = [0; 2];
        if facts.is_file() && file.read_exact_at(&mut head, 0).is_ok() && is_binary(&head) {
            return Ok(Log {
                source: Box::new(sadf(path).refused()?),
                bytes: None,
                is_binary: true,
            });
        }
        Ok(Log {
            source: Box::new(file),
            bytes: facts.is_file().then_some(facts.len()),
            is_binary: false,
        })
    }
}

/// The disk statistics of a binary file of sar, printed by the installed sadf.
fn sadf(path: &Path) -> anyhow::Result<Streaming> {
    // A name that begins with a dash would be an option.
    let path = std::path::absolute(path)?;
    let sadf = Exec::new("sadf").arg("-d").arg(&path);
    let started = sadf.args(["--", "-d", "-p"]).stream();
    started.map_err(|error| match error {
        linux::exec::Error::Missing(_) => anyhow!(
            "{} is a binary file of sar, which sadf reads, and sadf is not installed; install sysstat, or run \
             'sadf -d FILE -- -d' on the host that wrote it and give what it prints",
            path.display()
        ),
        error => error.into(),
    })
}

/// Name of the log in messages.
pub(super) fn place(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    printable(&path.display().to_string()).into_owned()
}

/// Number of bytes of an open file that are still to be read; `None` except for a regular file.
fn bytes_left(input: &StandardInput) -> Option<u64> {
    let facts = fstat(input).ok()?;
    let is_file = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
    let length = u64::try_from(facts.st_size).ok().filter(|_| is_file)?;
    Some(length.saturating_sub(tell(input).ok()?))
}

/// Standard input, which another thread could read too.
struct StandardInput(io::Stdin);

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().read(buffer)
    }
}

impl AsFd for StandardInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
