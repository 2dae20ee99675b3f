//! Errors of a machine.

use std::io;
use std::path::{Path, PathBuf};

use linux::exec;

/// An error of a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that a machine is made of cannot be had here: the sentence says what, and what to
    /// do. Nothing was started.
    #[error("{0}")]
    Unavailable(String),
    /// The user wanted the end while the kernel and the tools were being fetched.
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
    /// The kernel of this host refused something that a machine needs.
    #[error("{what}: {source}")]
    Host {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The machine was started and did not end as it should.
    #[error("{what}{}", last_lines_text(last_lines))]
    Guest {
        /// The event.
        what: String,
        /// The end of its console.
        last_lines: Vec<String>,
    },
    /// The command's output could not be passed on.
    #[error("the output of the command could not be written: {0}")]
    Output(#[source] io::Error),
}

/// The result of making or running a machine.
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
