//! The volume that is warmed: which devices are volumes, and one warming of them at a time.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use linux::Root;
use linux::block::{Device, Devices, Kind};

use reader::{NotOpened, Volume};

/// Opens the volume of a path.
///
/// # Errors
/// A sentence that says why it cannot be warmed.
pub(crate) fn open(path: &Path, devices: &Devices, root: &Root) -> Result<Volume, String> {
    let volume = Volume::open(path, devices, root).map_err(|error| match error {
        NotOpened::File(shown) => format!(
            "{shown} is a file; name the volume that it lies on, and the file with --first: \
             disksmith warm DEVICE --first {shown}"
        ),
        NotOpened::Other(why) => why,
    })?;
    stands_alone(&volume.device, devices)?;
    Ok(volume)
}

/// The names of the disks, each once: several partitions of one may be read together.
///
/// # Errors
/// When another process has one of them, or it cannot be had.
pub(crate) fn lock_disks<'a>(
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

/// Makes sure that no other process warms this device, or another part of the same disk, or reads it from
/// end to end (`scrub --read`): each would yield to the other. The name
/// goes with the process, however it ends, and leaves no file behind (unix(7), abstract sockets);
/// it is seen by all processes of a network namespace, and not from others, such as containers.
///
/// # Errors
/// When another one has it.
fn lock(volume: &Volume) -> Result<UnixDatagram, String> {
    bind(volume).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another disksmith is reading {}, or another part of its disk, from end to end already (warm, \
             or scrub --read): two would share what the volume gives, or read everything twice. Wait for \
             it, or end it",
            volume.path.display()
        ),
        _ => format!(
            "the name that keeps others from reading {} at the same time cannot be had: {error}",
            volume.path.display()
        ),
    })
}

/// Whether another process is warming it.
pub(crate) fn is_locked(volume: &Volume) -> bool {
    bind(volume).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn bind(volume: &Volume) -> io::Result<UnixDatagram> {
    let disk = volume.disk.number;
    let name = format!("disksmith-warm-{disk}");
    let address = SocketAddr::from_abstract_name(name.as_bytes())?;
    UnixDatagram::bind_addr(&address)
}

/// Arrays and mapped devices are no volumes: of two copies, a read of an array warms one.
fn stands_alone(device: &Device, devices: &Devices) -> Result<(), String> {
    match device.kind {
        Kind::Raid { .. } | Kind::Mapper { .. } => {}
        Kind::Disk | Kind::Partition { .. } | Kind::Loop { .. } | Kind::Ram => return Ok(()),
    }
    let below: Vec<String> = devices
        .below(device.number)
        .iter()
        .filter(|below| below.slaves.is_empty() && below.partition_of().is_none())
        .map(|below| below.node().display().to_string())
        .collect();
    Err(format!(
        "{} is no volume of its own, and a read of it need not reach every block below it. Name the \
         volumes that it lies on: disksmith warm {}",
        device.label(),
        below.join(" ")
    ))
}
