//! Names that one process has at a time (unix(7), abstract sockets). They go with the process,
//! however it ends, and leave no file behind; they are seen by all processes of a network namespace,
//! and not from others, such as containers.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use linux::block::DevNum;

/// Why an array that another process scrubs cannot be.
pub(super) const TAKEN: &str = "another disksmith is scrubbing it already; wait for it, or end it";

/// Takes a name.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when another process has it.
pub(super) fn bind(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
}

/// Makes sure that no other process scrubs a device, or another one that shares one of its disks.
///
/// # Errors
/// A sentence, when another one does.
pub(super) fn take(device: DevNum, disks: &[DevNum]) -> Result<Vec<UnixDatagram>, String> {
    let own = format!("disksmith-scrub-{device}");
    std::iter::once(own)
        .chain(disks.iter().map(|disk| format!("disksmith-scrub-disk-{disk}")))
        .map(|name| {
            bind(&name).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse if name.contains("-disk-") => {
                    "another disksmith is scrubbing its disk, or an array that shares a disk with it; \
                     wait for it, or end it"
                        .to_owned()
                }
                io::ErrorKind::AddrInUse => TAKEN.to_owned(),
                _ => format!("the name that keeps others from scrubbing it cannot be had: {error}"),
            })
        })
        .collect()
}

/// Whether another process scrubs an array.
pub(super) fn is_taken(target: &linux::block::Device) -> bool {
    bind(&format!("disksmith-scrub-{}", target.number))
        .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}
