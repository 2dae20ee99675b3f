//! Opening of the volume that is warmed: which devices are volumes.

use std::path::Path;

use linux::Root;
use linux::block::{BlockDeviceKind, Device, Devices};

use reader::{OpenError, Volume};

/// Opens the volume at a path.
///
/// # Errors
/// The reason, as a sentence, why it cannot be warmed.
pub(crate) fn open(path: &Path, devices: &Devices, root: &Root) -> Result<Volume, String> {
    let volume = Volume::open(path, devices, root).map_err(|error| match error {
        OpenError::File(shown) => format!(
            "{shown} is a file; name the volume that it lies on, and the file with --first: \
             disksmith warm DEVICE --first {shown}"
        ),
        OpenError::Other(why) => why,
    })?;
    check_is_volume(&volume.device, devices)?;
    Ok(volume)
}

/// Checks that a device is a volume. Arrays and mapped devices are not: a read of a mirror warms only one of its
/// copies.
fn check_is_volume(device: &Device, devices: &Devices) -> Result<(), String> {
    match device.kind {
        BlockDeviceKind::Raid { .. } | BlockDeviceKind::Mapper { .. } => {}
        BlockDeviceKind::Disk
        | BlockDeviceKind::Partition { .. }
        | BlockDeviceKind::Loop { .. }
        | BlockDeviceKind::Ram => return Ok(()),
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
