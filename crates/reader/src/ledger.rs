//! Disks that the ledger lies on: its commits are writes there that are no foreground.

use std::path::Path;

use linux::Root;
use linux::block::{self, DeviceNumber, Devices};

/// Devices that a ledger of this path lies on, down to the disks. Empty where that is not known.
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
