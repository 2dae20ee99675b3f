//! Files without a name on the host that QEMU opens: they are open here, and QEMU finds them under this
//! process in /proc. So nothing is left behind, however both end.

use std::fs::File;
use std::io::PipeReader;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use super::{Error, Result};

/// The path by which another process of this user opens what this one has open: pipes need no name
/// in a folder then, and nothing is left behind.
pub(super) fn path_of(open: &impl AsRawFd) -> PathBuf {
    let number: RawFd = open.as_raw_fd();
    PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()))
}

/// The ends of the pipes that QEMU opens by their paths. They stay open here while it runs.
#[derive(Default)]
pub(super) struct MachinePipes {
    pub open: Vec<OwnedFd>,
}

impl MachinePipes {
    /// A pipe that the machine writes to, and the path of the end for it.
    pub(super) fn pipe(&mut self) -> Result<(PipeReader, PathBuf)> {
        let what = "a pipe for the machine could not be made";
        let (reader, writer) = std::io::pipe().map_err(|source| Error::Host { what, source })?;
        let path = path_of(&writer);
        self.open.push(writer.into());
        Ok((reader, path))
    }
}

/// A file in memory, without a name.
pub(super) fn unnamed_file(name: &str) -> Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let file = memfd_create(name, MemfdFlags::CLOEXEC).map_err(|errno| Error::Host {
        what: "memory for the machine's first files could not be had",
        source: errno.into(),
    })?;
    Ok(file.into())
}
