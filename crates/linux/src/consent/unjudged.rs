//! Reasons for which a target cannot be judged.

use std::path::PathBuf;
use std::{fmt, io};

use rustix::io::Errno;

use crate::remedy;

/// A target that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The kernel refused.
    Refused {
        /// Path of the target.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },
    /// The path leads neither to a file nor to a block device.
    Unsuited {
        /// Path of the target.
        path: PathBuf,
        /// Kind of the node, such as a folder.
        what: &'static str,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Refused { path, errno } => {
                let why = io::Error::from(*errno);
                write!(f, "{} cannot be opened: {why}", path.display())?;
                match *errno {
                    Errno::ACCESS | Errno::PERM => write!(f, "; {}", remedy::as_root()),
                    Errno::NOENT => f.write_str("; disks are listed by: disksmith devices"),
                    _ => Ok(()),
                }
            }
            OpenError::Unsuited { path, what } => write!(
                f,
                "{} is {what}; name a regular file or a block device",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// Reason for which it cannot be determined which storage a loop device shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackingUnknown {
    /// The type of the file system that hides it, such as `overlay`.
    Hidden(String),
    /// Neither the device nor its path tells: its node is missing or may not be opened, or its file system is
    /// mounted nowhere that can be seen.
    Unknown,
}
