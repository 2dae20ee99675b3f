//! Errors of a machine.

use std::io;
use std::path::{Path, PathBuf};

use linux::exec;

/// An error of a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A part of the machine is not available on this host: a sentence with the reason and advice. Nothing was
    /// started.
    #[error("{0}")]
    Unavailable(String),
    /// The user interrupted while the kernel and the tools were being downloaded.
    #[error("the kernel and tools of the lab's machine were not fetched: it was interrupted")]
    Interrupted,
    /// A file or folder could not be used.
    #[error("{} could not be {what}: {source}", path.display())]
    File {
        /// The operation: "read", "written".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A program that prepares the machine failed.
    #[error(transparent)]
    Program(#[from] exec::Error),
    /// A system call that a machine needs failed.
    #[error("{what}: {source}")]
    Host {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The machine was started, and ended unexpectedly.
    #[error("{what}{}", last_lines_text(last_lines))]
    Guest {
        /// Description of the event.
        what: String,
        /// The end of its console.
        last_lines: Vec<String>,
    },
    /// The command's output could not be forwarded.
    #[error("the output of the command could not be written: {0}")]
    Output(#[source] io::Error),
}

/// The result of preparing or running a machine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(super) fn file(what: &'static str, path: &Path, source: io::Error) -> Error {
        Error::File {
            what,
            path: path.to_path_buf(),
            source,
        }
    }
}

fn last_lines_text(lines: &[String]) -> String {
    if lines.is_empty() {
        return "; its console shows nothing".to_owned();
    }
    format!("; the end of its console:\n    {}", lines.join("\n    "))
}
