//! Lock by which one process at a time reads a disk from end to end.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::Volume;

/// Takes the locks of the disks, each once: several partitions of a disk may be read together.
///
/// # Errors
/// When another process holds one of them, or it cannot be created.
pub fn lock_disks<'a>(
    volumes: impl IntoIterator<Item = &'a Volume>,
) -> Result<Vec<UnixDatagram>, String> {
    let mut disks = Vec::new();
    let mut locks = Vec::new();
    for volume in volumes {
        if !disks.contains(&volume.disk.number) {
            disks.push(volume.disk.number);
            locks.push(lock(volume)?);
        }
    }
    Ok(locks)
}

/// Takes the lock of a disk, so that no other process warms it, or a partition of it, or reads it from end to end
/// (`scrub --read`): each would yield to the other. The lock is an abstract socket (unix(7)): it ends with the process,
/// however that ends, and leaves no file. It is visible to all processes of a network namespace, but not from others,
/// such as containers.
///
/// # Errors
/// When another process holds it.
fn lock(volume: &Volume) -> Result<UnixDatagram, String> {
    bind(volume).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another disksmith is reading {}, or another part of its disk, from end to end already (warm, \
             or scrub --read): two would share what the volume gives, or read everything twice. Wait for \
             it, or end it; to see it: pgrep -a disksmith",
            volume.path.display()
        ),
        _ => format!(
            "the lock that keeps others from reading {} at the same time cannot be created: {error}",
            volume.path.display()
        ),
    })
}

/// True if another process holds the lock of the volume's disk.
pub fn is_locked(volume: &Volume) -> bool {
    bind(volume).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn bind(volume: &Volume) -> io::Result<UnixDatagram> {
    let disk = volume.disk.number;
    let name = format!("disksmith-warm-{disk}");
    let address = SocketAddr::from_abstract_name(name.as_bytes())?;
    UnixDatagram::bind_addr(&address)
}
