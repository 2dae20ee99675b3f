//! Disks below the ledger: its commits write there, and must not be taken for foreground I/O.

use std::path::Path;

use linux::Root;
use linux::block::{self, DeviceNumber, Devices};

/// Devices below the ledger at this path, down to the disks; empty if not known.
pub fn below_ledger(root: &Root, devices: &Devices, path: &Path) -> Vec<DeviceNumber> {
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.exists()) else {
        return Vec::new();
    };
    let Ok(place) = block::place_of(root, devices, folder) else {
        return Vec::new();
    };
    let of = |number: DeviceNumber| {
        let below = devices.below(number).into_iter().map(|below| below.number);
        std::iter::once(number).chain(below).collect::<Vec<_>>()
    };
    place.devices.into_iter().flat_map(of).collect()
}
