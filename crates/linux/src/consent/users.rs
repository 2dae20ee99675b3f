//! The kernel's lists of the users of each device.

use std::path::{Path, PathBuf};

use super::exports::{Export, exports};
use super::identity::Storage;
use super::loop_backing::shown_by_loops;
use crate::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use crate::mounts::{Mount, Mounts};
use crate::root::{self, Error, Result, Root};
use crate::signature::Partition;
use crate::swaps::{self, Swap};

/// The kernel's lists, at one moment, of the users of each device.
#[derive(Clone, Debug)]
pub struct DeviceUsers {
    pub(super) root: Root,
    pub(super) devices: Devices,
    /// The storage that each loop device in use shows, where that can be determined.
    shown: Vec<(DeviceNumber, Storage)>,
    pub(super) mounts: Vec<(Mount, Vec<DeviceNumber>)>,
    /// Mounts in other mount namespaces, each with a process that is there.
    pub(super) elsewhere: Vec<(u32, Mount, Vec<DeviceNumber>)>,
    pub(super) swaps: Vec<(Swap, Vec<DeviceNumber>)>,
    /// Storage that the kernel serves to other machines.
    pub(super) exports: Vec<Export>,
}

impl DeviceUsers {
    /// Reads the lists.
    ///
    /// # Errors
    /// When one of them cannot be read or understood: then nothing may be called unused.
    pub fn read(root: &Root) -> Result<DeviceUsers> {
        let mut devices = Devices::read(root)?;
        let shown = shown_by_loops(root, &mut devices);
        for (number, storage) in &shown {
            if let Storage::Device(below) = storage {
                devices.put_loop_on(*number, *below);
            }
        }
        let mounts = Mounts::read_everywhere(root)?;
        if mounts.iter().next().is_none() {
            // It was read from a mounted /proc, so an empty list is a damaged one.
            return Err(Error::Parse {
                path: root.proc.join("self/mountinfo"),
                line: 1,
                what: "no mount is listed, not even that of /proc".to_owned(),
            });
        }
        if !root.sys.join("class/block").is_dir() {
            return Err(Error::NoDevices(root.sys.join("class/block")));
        }
        let on = mounts
            .iter()
            .map(|mount| (mount.clone(), mount.devices(root, &devices, &mounts)))
            .collect();
        let mut elsewhere = Vec::new();
        for (process, there) in Mounts::read_elsewhere(root, &mounts)? {
            elsewhere.extend(there.iter().map(|mount| {
                let on = mount.devices(root, &devices, &there);
                (process, mount.clone(), on)
            }));
        }
        let swaps = swaps::read(root)?
            .into_iter()
            .map(|swap| {
                let on = swap.devices(root, &devices);
                (swap, on)
            })
            .collect();
        let uses = DeviceUsers {
            exports: exports(root, &devices),
            root: root.clone(),
            devices,
            shown,
            mounts: on,
            elsewhere,
            swaps,
        };
        match uses.hiding_mount() {
            Some(mount) => Err(Error::Hidden(mount.point.clone())),
            None => Ok(uses),
        }
    }

    /// The storage that a loop device shows; `None` for any other device, and where it cannot be determined.
    pub(super) fn shown(&self, device: &Device) -> Option<Storage> {
        let shown = self.shown.iter();
        shown
            .filter(|(number, _)| *number == device.number)
            .map(|(_, storage)| *storage)
            .next()
    }

    /// The file that a loop device shows, with its path in the mount namespace where the device was made.
    pub(super) fn file_shown<'a>(&self, device: &'a Device) -> Option<(&'a Path, Storage)> {
        let shown = self.shown(device)?;
        let is_file = matches!(shown, Storage::File(..));
        device
            .backing_file()
            .filter(|_| is_file)
            .map(|path| (path, shown))
    }

    /// The mounts of that moment.
    pub(super) fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().map(|(mount, _)| mount)
    }

    /// The same, and those in other mount namespaces.
    pub(super) fn mounts_of_all(&self) -> impl Iterator<Item = &Mount> {
        let elsewhere = self.elsewhere.iter().map(|(_, mount, _)| mount);
        self.mounts().chain(elsewhere)
    }

    /// The devices of that moment.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The partitions of a device that the kernel knows, which need not be those of its table.
    pub fn partitions(&self, number: DeviceNumber) -> Vec<Partition> {
        self.devices
            .children(number)
            .into_iter()
            .filter_map(|device| self.partition(device))
            .collect()
    }

    /// Place of a partition on its disk; `None` for any other device.
    pub(super) fn partition(&self, device: &Device) -> Option<Partition> {
        let BlockDeviceKind::Partition { number, .. } = device.kind else {
            return None;
        };
        // The kernel counts in sectors of 512 bytes (Documentation/ABI/stable/sysfs-block, partition `start`).
        let folder = self.root.sys.join("class/block").join(device.sysfs_name());
        let start = root::number::<u64>(&folder.join("start"))?;
        Some(Partition {
            start: start.saturating_mul(512),
            size: device.size.0,
            number,
        })
    }

    /// The mount that hides a part of the kernel's lists: with another folder instead of `/sys/class/block` or of a
    /// process in `/proc`, a device in use looks unused.
    fn hiding_mount(&self) -> Option<&Mount> {
        const LISTS: [(&str, &str); 6] = [
            ("/proc/swaps", "proc"),
            ("/proc/self/mountinfo", "proc"),
            ("/sys/class/block", "sysfs"),
            ("/sys/devices", "sysfs"),
            ("/sys/block", "sysfs"),
            ("/sys/dev/block", "sysfs"),
        ];
        // The folder of a file system of the kernel that belongs to a place below its usual mount point.
        let own = |place: &Path| Path::new("/").join(place.iter().skip(2).collect::<PathBuf>());
        let is_other =
            |mount: &Mount, kind: &str| mount.kind != kind || mount.root != own(&mount.point);
        let of_list = |(list, kind): &(&str, &str)| {
            let list = Path::new(list);
            // Of several mounts at one place the last covers the others.
            let covering = self
                .mounts()
                .filter(|mount| list.starts_with(&mount.point) && mount.point != Path::new("/"))
                .max_by_key(|mount| mount.point.components().count());
            let below = self.mounts().filter(|mount| mount.point.starts_with(list));
            let mut all = covering.into_iter().chain(below);
            all.find(|mount| is_other(mount, kind))
        };
        let mut processes = self.mounts().filter(|mount| is_of_process(&mount.point));
        let process = processes.find(|mount| is_other(mount, "proc"));
        process.or_else(|| LISTS.iter().find_map(of_list))
    }
}

/// True for a process's folder in `/proc`, and for what lies in it.
fn is_of_process(point: &Path) -> bool {
    let of_proc = point.strip_prefix("/proc").ok();
    let first = of_proc.and_then(|place| place.iter().next()?.to_str());
    first.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}
