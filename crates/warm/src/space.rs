//! Space of a volume that its file systems use.

use std::fs::File;

use linux::block::{DeviceNumber, Devices};
use linux::mapping::Map;
use linux::mounts::Mounts;
use linux::{Root, spacemap};
use record::Ranges;

use super::finding::{Finding, FindingCode};
use reader::Volume;

/// The ranges of a volume that are not known to be free: all except the free space of the mounted file systems on it
/// and on devices that are built on it. `None` where no such file system lists its free space, and once `is_unwanted`
/// returns true because the result is no longer needed.
pub(crate) fn used_space(
    volume: &Volume,
    devices: &Devices,
    root: &Root,
    is_unwanted: &dyn Fn() -> bool,
    findings: &mut Vec<Finding>,
) -> Option<Ranges> {
    let mounts = match Mounts::read(root) {
        Ok(mounts) => mounts,
        Err(error) => {
            findings.push(unknown(&format!("the mounts cannot be read: {error}")));
            return None;
        }
    };
    let above = devices.stack_above(volume.number());
    let own = std::iter::once(volume.number());
    let mut free: Option<Ranges> = None;
    for number in own.chain(above.iter().map(|device| device.number)) {
        // One file system may be mounted in several places.
        let Some(mount) = mounts.on(number).next() else {
            continue;
        };
        if is_unwanted() {
            return None;
        }
        match free_on(volume, number, &mount.point, (devices, root), is_unwanted) {
            Ok(found) => free = Some(free.unwrap_or_default().union(&found)),
            Err(why) => findings.push(unknown(&format!("{}: {why}", mount.point.display()))),
        }
    }
    free.map(|free| Ranges::all(volume.size).subtract(&free))
}

/// The free space of a file system, as ranges of the volume.
fn free_on(
    volume: &Volume,
    number: DeviceNumber,
    point: &std::path::Path,
    (devices, root): (&Devices, &Root),
    is_unwanted: &dyn Fn() -> bool,
) -> Result<Ranges, String> {
    let folder = File::open(point).map_err(|error| error.to_string())?;
    let space = spacemap::of_file(&folder, is_unwanted).map_err(|error| error.to_string())?;
    if space.device != number {
        return Err("something else is mounted over it".to_owned());
    }
    let map =
        Map::down(root, devices, number, volume.number()).map_err(|error| error.to_string())?;
    // A block that has any used byte counts as used: the plan rounds used ranges outwards to blocks.
    Ok(map.ranges(&space.free))
}

fn unknown(why: &str) -> Finding {
    Finding::note(
        FindingCode::NotMapped,
        format!("The space in use is not known, and all space counts as used: {why}."),
    )
}
