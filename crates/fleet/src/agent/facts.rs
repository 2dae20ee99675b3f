//! Facts about this host.

use std::time::{SystemTime, UNIX_EPOCH};

use linux::block::{BlockDeviceKind, Device, Devices};
use linux::{Root, cloud, machine, process};

use crate::protocol::{DiskFacts, HostFacts};

/// Facts about this host. Unknown values stay empty.
pub(super) fn facts(root: &Root) -> HostFacts {
    let machine = machine::facts(root, None, None);
    let devices = Devices::read(root).unwrap_or_default();
    let disk = |device: &Device| DiskFacts {
        name: device.name.clone(),
        size_bytes: device.size.0,
        model: device.model.clone(),
        serial: device.serial.clone(),
    };
    let cloud = cloud::detect(root);
    // Read last, so that it is as recent as possible on arrival.
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    HostFacts {
        hostname: machine.hostname,
        kernel: machine.kernel,
        arch: machine.arch,
        cores: machine.cores,
        memory_bytes: machine.memory.0,
        boot: process::boot_id(root).unwrap_or_default(),
        disks: devices
            .iter()
            .filter(|device| is_disk(device))
            .map(disk)
            .collect(),
        cloud,
        clock_ms: clock.map_or(0, |since| since.as_millis() as i64),
    }
}

/// True for a disk, and not for a device that is built on disks.
fn is_disk(device: &Device) -> bool {
    matches!(device.kind, BlockDeviceKind::Disk) && !device.is_empty() && !device.hidden
}
