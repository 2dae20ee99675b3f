//! Mapping of an array's bytes up to the devices on it: partitions, logical volumes, arrays of arrays.

use std::ops::Range;

use linux::mapping::Map;
use record::{Bytes, Ranges};

/// Granularity of the mapping, in bytes: a sector.
const SECTOR: u64 = 512;

/// The ranges of an upper device of `size` bytes that lie on these ranges of the lower one. `map` leads downwards only:
/// the upper device is halved repeatedly, and parts that lead elsewhere are dropped. The number of steps is that of the
/// ranges times the depth of the halving.
pub(crate) fn above(map: &Map, size: Bytes, lower: &Ranges) -> Ranges {
    let mut found = Vec::new();
    // A stack, whose top is the range with the lowest offset.
    let mut open = Vec::from([(0, size.0)]);
    while let Some((start, end)) = open.pop() {
        let range = start..end;
        let down = map.ranges(&Ranges::from(range.clone()));
        let hit = down.intersect(lower);
        if hit.is_empty() {
            continue;
        }
        let length = range.end - range.start;
        // With striping, only part of the range lies on the lower device, and all of that part may be wanted.
        let is_whole = hit == down && down.total().0 >= length;
        if is_whole || length <= SECTOR {
            found.push(range);
            continue;
        }
        let half = middle(&range);
        open.push((half, end));
        open.push((start, half));
    }
    found.into_iter().collect()
}

/// A sector boundary near the middle of a range that is longer than a sector.
fn middle(range: &Range<u64>) -> u64 {
    let half = range.start + (range.end - range.start) / 2;
    let cut = half / SECTOR * SECTOR;
    if cut > range.start { cut } else { half }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::Root;
    use linux::block::Devices;
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;

    /// Map from a partition of a disk, or from a stripe of two disks, to the first disk, and the size of the upper
    /// device, in a simulated tree.
    fn map(place: &Path, striped: bool) -> (Map, Bytes) {
        let root = Root::under(place);
        let class = root.sys.join("class/block");
        let write = |path: &str, text: &str| {
            let path = class.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (disk, number) in [("sda", "8:0\n"), ("sdb", "8:16\n")] {
            write(&format!("{disk}/dev"), number);
            write(&format!("{disk}/size"), "2048\n");
        }
        let upper = if striped {
            write("md0/dev", "9:0\n");
            write("md0/size", "4096\n");
            write("md0/md/level", "raid0\n");
            write("md0/md/raid_disks", "2\n");
            write("md0/md/chunk_size", "65536\n");
            for (slot, disk) in ["sda", "sdb"].iter().enumerate() {
                write(&format!("md0/slaves/{disk}"), "");
                write(&format!("{disk}/holders/md0"), "");
                write(&format!("md0/md/dev-{disk}/slot"), &slot.to_string());
                write(&format!("md0/md/dev-{disk}/offset"), "0\n");
                write(&format!("md0/md/dev-{disk}/size"), "1024\n");
            }
            "md0"
        } else {
            fs::create_dir_all(root.sys.join("devices/sda/sda1")).unwrap();
            fs::remove_dir_all(class.join("sda")).unwrap();
            std::os::unix::fs::symlink(root.sys.join("devices/sda"), class.join("sda")).unwrap();
            std::os::unix::fs::symlink(root.sys.join("devices/sda/sda1"), class.join("sda1"))
                .unwrap();
            write("sda/dev", "8:0\n");
            write("sda/size", "2048\n");
            write("sda1/dev", "8:1\n");
            write("sda1/partition", "1\n");
            write("sda1/start", "63\n");
            write("sda1/size", "1000\n");
            "sda1"
        };
        let devices = Devices::read(&root).unwrap();
        let (top, disk) = (devices.named(upper).unwrap(), devices.named("sda").unwrap());
        let map = Map::down(&root, &devices, top.number, disk.number).unwrap();
        (map, top.size)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn volumes_on_the_bytes_below_are_found_and_nothing_else(
            striped: bool,
            places in prop::collection::vec((0_u64..2048, 1_u64..400), 0..6),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (map, size) = map(folder.path(), striped);
            let lower: Ranges = places
                .iter()
                .map(|(start, length)| start * SECTOR..(start + length) * SECTOR)
                .collect();
            let wanted: Ranges = (0..size.0)
                .step_by(SECTOR as usize)
                .map(|start| start..start + SECTOR)
                .filter(|sector| {
                    let down = map.ranges(&Ranges::from(sector.clone()));
                    !down.intersect(&lower).is_empty()
                })
                .collect();
            prop_assert_eq!(above(&map, size, &lower), wanted);
        }
    }
}
