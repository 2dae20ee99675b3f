//! The devices to record.

use std::fs;
use std::path::{Path, PathBuf};

use linux::Root;
use linux::block::{self, Device as BlockDevice, DeviceNumber, Devices};

use crate::io::{Device, WriteCache};
use crate::pair::IoLayer;
use crate::tracepoints::traced;
use ui::exit::{ExitClass as _, Failure};

/// A device to record.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) device: BlockDevice,
    /// Partitions of the device, whose bios carry the partition's number.
    pub(super) partitions: Vec<DeviceNumber>,
    pub(super) traced: IoLayer,
}

impl Target {
    /// Description of the device in the trace.
    pub(super) fn described(&self) -> Device {
        Device {
            name: self.device.name.clone(),
            size: Some(self.device.size),
            write_cache: match self.device.write_cache.as_deref() {
                Some("write back") => Some(WriteCache::Back),
                Some("write through") => Some(WriteCache::Through),
                _ => None,
            },
        }
    }
}

/// The devices at these paths.
pub(super) fn find(
    root: &Root,
    devices: &Devices,
    paths: &[PathBuf],
) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for path in paths {
        let device = devices.at_path(root, path).or_else(|| {
            let name = path.to_str()?;
            devices.named(name)
        });
        let Some(device) = device else {
            return Err(Failure::refused(format!(
                "{} is no block device; name one, such as /dev/nvme1n1",
                path.display()
            )));
        };
        if let Some(disk) = device.partition_of().and_then(|disk| devices.get(disk)) {
            return Err(Failure::refused(format!(
                "{} is a partition, and the kernel traces requests by the whole disk: record {}",
                path.display(),
                disk.node().display()
            )));
        }
        if targets
            .iter()
            .all(|target| target.device.number != device.number)
        {
            let parts = devices
                .iter()
                .filter(|part| part.partition_of() == Some(device.number));
            targets.push(Target {
                device: device.clone(),
                partitions: parts.map(|part| part.number).collect(),
                traced: traced(root, device),
            });
        }
    }
    Ok(targets)
}

/// Refuses to write the trace to a recorded device, since the recording would record itself.
pub(super) fn is_elsewhere(
    root: &Root,
    devices: &Devices,
    targets: &[Target],
    output: &Path,
) -> Result<(), Failure> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder).map_err(|error| {
        Failure::refused(format!(
            "the folder {} of the trace: {error}",
            folder.display()
        ))
    })?;
    let place = block::place_of(root, devices, &folder).refused()?;
    for number in place.devices {
        let below = devices
            .below(number)
            .into_iter()
            .map(|device| device.number);
        for number in below.chain([number]) {
            if let Some(target) = targets.iter().find(|target| target.device.number == number) {
                return Err(Failure::refused(format!(
                    "the trace {} would lie on {}, which is recorded: each block of it would be recorded too. Name a \
                     file on another disk, or in memory: -o /dev/shm/trace.dst",
                    output.display(),
                    target.device.node().display()
                )));
            }
        }
    }
    Ok(())
}
