//! Files without a name on the host that QEMU opens: this process has them open, and QEMU opens them through /proc.
//! Nothing remains, however both processes end.

use std::fs::File;
use std::io::PipeReader;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use super::{Error, Result};

/// A path by which another process of this user can open a file that this process has open. Pipes thus need no name in
/// a folder, and nothing remains.
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
    /// A pipe that the machine writes to, and the path of its write end.
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
