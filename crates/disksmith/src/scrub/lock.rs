//! Names that one process has at a time (unix(7), abstract sockets). They go with the process,
//! however it ends, and leave no file behind; they are seen by all processes of a network namespace,
//! and not from others, such as containers.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::target::Target;

/// Takes a name.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when another process has it.
pub(super) fn bind(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
}

/// Makes sure that no other process scrubs an array, or another one that shares a disk with it.
///
/// # Errors
/// A sentence, when another one does.
pub(super) fn take(target: &Target) -> Result<Vec<UnixDatagram>, String> {
    let of_disks = target
        .disks
        .iter()
        .map(|disk| (format!("disksmith-scrub-disk-{disk}"), "a disk of it"));
    let own = (format!("disksmith-scrub-{}", target.device.number), "it");
    std::iter::once(own)
        .chain(of_disks)
        .map(|(name, what)| {
            bind(&name).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => {
                    format!("another disksmith is scrubbing {what} already; wait for it, or end it")
                }
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
