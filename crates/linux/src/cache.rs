//! Layers below a device that may serve requests from memory or from a faster disk.
//!
//! `O_DIRECT` only bypasses the page cache of the file system or device that it is used on, and no cache below: a loop
//! device reads its file through the page cache again, unless it is set to direct I/O (loop(4), `LOOP_SET_DIRECT_IO`).

use std::path::{Path, PathBuf};

use record::{Cache, CacheKind};

use crate::block::{self, BlockDeviceKind, Device, DeviceNumber, Devices};
use crate::mapping;
use crate::root::{Root, attribute};

/// File systems in memory (ramfs is like tmpfs, without a size limit).
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];
/// File systems with a cache of their own that O_DIRECT does not bypass.
const CACHING_FILE_SYSTEMS: [&str; 4] = ["zfs", "virtiofs", "9p", "overlay"];
/// Maximum depth of loop devices on loop devices; a deeper one is a cycle.
const MAX_LOOP_DEPTH: usize = 8;

/// The caches below a device, nearest first, through partitions, arrays, volumes and the backing files of loop
/// devices.
pub fn below(root: &Root, devices: &Devices, number: DeviceNumber) -> Vec<Cache> {
    let mut found = Vec::new();
    add_below(root, devices, number, MAX_LOOP_DEPTH, &mut found);
    found
}

fn add_below(
    root: &Root,
    devices: &Devices,
    number: DeviceNumber,
    depth: usize,
    found: &mut Vec<Cache>,
) {
    let below = devices.get(number).into_iter().chain(devices.below(number));
    for device in below {
        let cache = own_cache(root, device);
        found.extend(cache.map(|kind| Cache {
            layer: device.label(),
            kind,
        }));
        if let Some(file) = shown_file(device)
            && depth > 0
        {
            add_below_file(root, devices, file, depth - 1, found);
        }
    }
}

/// The backing file of a loop device, which is not in the list of devices.
fn shown_file(device: &Device) -> Option<&PathBuf> {
    match &device.kind {
        BlockDeviceKind::Loop {
            backing_file,
            backing_device: None,
        } => backing_file.as_ref(),
        _ => None,
    }
}

fn add_below_file(
    root: &Root,
    devices: &Devices,
    file: &Path,
    depth: usize,
    found: &mut Vec<Cache>,
) {
    // A file that was removed, or is in another mount namespace, cannot be followed.
    let Ok(place) = block::place_of(root, devices, file) else {
        return;
    };
    if let Some(mount) = &place.mount {
        let kind = mount.kind.as_str();
        let cache = if IN_MEMORY.contains(&kind) {
            Some(CacheKind::Memory)
        } else if CACHING_FILE_SYSTEMS.contains(&kind) || kind.starts_with("fuse") {
            Some(CacheKind::FileSystem(kind.to_owned()))
        } else {
            None
        };
        found.extend(cache.map(|kind| Cache {
            layer: mount.point.display().to_string(),
            kind,
        }));
    }
    for number in place.devices {
        add_below(root, devices, number, depth, found);
    }
}

/// The cache that the device itself is or has; `None` without one.
fn own_cache(root: &Root, device: &Device) -> Option<CacheKind> {
    let sys = root.sys.join("class/block").join(device.sysfs_name());
    match &device.kind {
        BlockDeviceKind::Ram => Some(CacheKind::Memory),
        BlockDeviceKind::Loop { .. } => {
            let direct = attribute(&sys.join("loop/dio"));
            (direct.as_deref() == Some("0")).then_some(CacheKind::PageCache)
        }
        // `none` is in brackets where there is no cache (Documentation/admin-guide/bcache.rst).
        BlockDeviceKind::Disk => attribute(&sys.join("bcache/cache_mode"))
            .is_some_and(|modes| !modes.contains("[none]"))
            .then(|| CacheKind::FasterDisk("bcache".to_owned())),
        BlockDeviceKind::Mapper { .. } => {
            mapping::target_kinds(root, device)
                .iter()
                .find_map(|kind| match kind.as_str() {
                    "cache" | "writecache" => Some(CacheKind::FasterDisk(format!("dm-{kind}"))),
                    _ => None,
                })
        }
        BlockDeviceKind::Partition { .. } | BlockDeviceKind::Raid { .. } => None,
    }
}
