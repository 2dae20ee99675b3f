//! Space of a volume that its file systems use.

use std::fs::File;

use linux::block::{DeviceNumber, Devices};
use linux::mapping::Map;
use linux::mounts::Mounts;
use linux::{Root, spacemap};
use record::Ranges;

use super::finding::{Finding, FindingCode};
use reader::Volume;

/// The bytes of a volume that are not known to be free: all but what the mounted file systems on it,
/// and on what is built on it, list as free. `None` where none of them lists that, and once
/// `is_unwanted` says that nobody waits for it any more.
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

/// The free bytes of a file system, as bytes of the volume.
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
    // A block that has a used byte is used; the plan rounds outwards what is used, and so this.
    Ok(map.ranges(&space.free))
}

fn unknown(why: &str) -> Finding {
    Finding::note(
        FindingCode::NotMapped,
        format!("What is in use there is not known, and all of it is taken to be: {why}."),
    )
}
