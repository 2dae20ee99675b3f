//! Devices that hold the data of a path.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::{DeviceNumber, Devices};
use crate::mounts::{Mount, Mounts};
use crate::root::{self, Error, Result, Root};

/// Maximum depth of overlays on overlays; a deeper one is a cycle.
const MAX_OVERLAY_DEPTH: usize = 8;

/// Location of a path's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataLocation {
    /// The block devices: usually one, several for a btrfs over more than one. Empty without a block device: tmpfs,
    /// NFS, FUSE, ZFS.
    pub devices: Vec<DeviceNumber>,
    /// The mount that the path is on; `None` for a device's node, whose data is not on the mount that contains the
    /// node.
    pub mount: Option<Mount>,
}

/// The first device of [`place_of`]: the node's own, or that of the file system.
///
/// # Errors
/// When the path, or the list of mounts, cannot be read.
pub fn device_of(root: &Root, devices: &Devices, path: &Path) -> Result<Option<DeviceNumber>> {
    Ok(place_of(root, devices, path)?.devices.first().copied())
}

/// The devices that hold a path's data.
///
/// # Errors
/// When the path, or the list of mounts, cannot be read.
pub fn place_of(root: &Root, devices: &Devices, path: &Path) -> Result<DataLocation> {
    let failed = |source: io::Error| Error::Read {
        path: path.to_path_buf(),
        source,
    };
    let located = root.locate(path);
    let metadata = fs::metadata(&located).map_err(failed)?;
    if metadata.file_type().is_block_device() {
        return Ok(DataLocation {
            devices: vec![DeviceNumber::from_raw(metadata.rdev())],
            mount: None,
        });
    }
    let mounts = Mounts::read(root)?;
    let absolute = fs::canonicalize(&located).map_err(failed)?;
    let mount = mount_id(&located)
        .and_then(|id| mounts.by_id(id))
        .or_else(|| mounts.containing(&absolute));
    let own = DeviceNumber::from_raw(metadata.dev());
    let found = if own.is_anonymous() {
        mount.map_or_else(Vec::new, |mount| mount.devices(root, devices, &mounts))
    } else {
        vec![own]
    };
    Ok(DataLocation {
        devices: found,
        mount: mount.cloned(),
    })
}

/// The id of the mount that a path is on (statx(2), Linux 5.8); it is right even if one mount hides another, which the
/// paths alone do not show.
fn mount_id(path: &Path) -> Option<u64> {
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let known = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    known.then_some(found.stx_mnt_id)
}

impl Mount {
    /// The block devices of the mounted file system.
    pub fn devices(&self, root: &Root, devices: &Devices, mounts: &Mounts) -> Vec<DeviceNumber> {
        self.devices_to_depth(root, devices, mounts, MAX_OVERLAY_DEPTH)
    }

    fn devices_to_depth(
        &self,
        root: &Root,
        devices: &Devices,
        mounts: &Mounts,
        depth: usize,
    ) -> Vec<DeviceNumber> {
        if !self.device.is_anonymous() {
            return vec![self.device];
        }
        let mut found = match self.kind.as_str() {
            "btrfs" => btrfs_devices(root, devices, Path::new(&self.source)),
            "overlay" if depth > 0 => self
                .overlay_folders()
                .iter()
                .filter_map(|folder| mounts.containing(folder))
                .flat_map(|mount| mount.devices_to_depth(root, devices, mounts, depth - 1))
                .collect(),
            // bcachefs names all its devices, with colons between. A source such as NFS's
            // `host:/dev/pool` is no path of this machine.
            _ => self
                .source
                .to_str()
                .filter(|source| source.starts_with("/dev/"))
                .unwrap_or_default()
                .split(':')
                .filter_map(|path| devices.at_path(root, Path::new(path)))
                .map(|device| device.number)
                .collect(),
        };
        let mut seen = Vec::new();
        found.retain(|number| {
            let new = !seen.contains(number);
            seen.push(*number);
            new
        });
        found
    }
}

/// Devices of a btrfs, which may be several while mountinfo names one. All are listed under
/// `/sys/fs/btrfs/UUID/devices` (Documentation of btrfs, section sysfs interface).
fn btrfs_devices(root: &Root, devices: &Devices, source: &Path) -> Vec<DeviceNumber> {
    let Some(named) = devices.at_path(root, source) else {
        return Vec::new();
    };
    let file_systems = root.sys.join("fs/btrfs");
    let members = |uuid: &PathBuf| -> Vec<DeviceNumber> {
        root::names_in(&file_systems.join(uuid).join("devices"))
            .unwrap_or_default()
            .iter()
            .filter_map(|name| devices.named(&name.to_string_lossy().replace('!', "/")))
            .map(|device| device.number)
            .collect()
    };
    let mut all = vec![named.number];
    let file_system = root::names_in(&file_systems)
        .unwrap_or_default()
        .into_iter()
        .map(|uuid| members(&PathBuf::from(uuid)))
        .find(|members| members.contains(&named.number));
    let others = file_system.unwrap_or_default();
    all.extend(others.into_iter().filter(|&number| number != named.number));
    all
}
