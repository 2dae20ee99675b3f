//! Bytes of an array at the unreadable extents of a member.

use linux::Root;
use linux::block::{Device, DeviceNumber, Devices};
use linux::mapping::Map;
use linux::md::sync::Sync;
use record::Ranges;

use super::super::locate::{above, geometry};

/// The ranges of an array that lie on the ranges `bad` of a member in the slot `slot`. The array's data begins at
/// `offset` on the member. All are in bytes.
///
/// # Errors
/// A sentence, where the layout of the array on its members is not known.
pub(crate) fn of_array(
    (root, devices): (&Root, &Devices),
    array: &Device,
    member: DeviceNumber,
    (slot, offset): (u32, u64),
    bad: &Ranges,
) -> Result<Ranges, String> {
    if let Ok(geometry) = geometry(Sync::of(root, array).folder(), array) {
        let within = bad
            .iter()
            .map(|range| range.start.saturating_sub(offset)..range.end.saturating_sub(offset))
            .collect();
        return Ok(geometry.above(slot, &within));
    }
    let map = Map::down(root, devices, array.number, member).map_err(|error| error.to_string())?;
    Ok(above(&map, array.size, bad))
}
