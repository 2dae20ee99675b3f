//! Storage that a target shares under other names.
//!
//! Two loop devices over one file are one storage, as are the file itself and its hard links; to write to one
//! is to write to all of them. The kernel compares only devices, so a mount of one does not claim the other.

use std::fs::File;
use std::path::Path;

use record::Ranges;

use crate::block::{Device, DeviceNumber};
use crate::mapping::Map;
use crate::mounts::Mount;
use crate::signature::Partition;

use super::file_system::{FileSystem, file_system_of};
use super::identity::Storage;
use super::unjudged::BackingUnknown;
use super::users::DeviceUsers;

/// File systems whose inodes say nothing about the storage behind them: another path to the same bytes has another
/// number. mountinfo gives FUSE's subtypes as `fuse.bindfs`.
const PASS_THROUGH: [&str; 4] = ["overlay", "ecryptfs", "fuse", "aufs"];

impl DeviceUsers {
    /// The devices that share storage with a device, without those that it is built on or that are built on it: loop
    /// devices that show the same file as it or as a device below it, and whatever lies on the same bytes of a
    /// device below it, such as overlapping partitions, tables of the device mapper, or loop devices over a disk.
    pub(super) fn siblings(&self, number: DeviceNumber) -> Vec<&Device> {
        let Some(target) = self.devices().get(number) else {
            return Vec::new();
        };
        let mut family: Vec<&Device> = self.devices().below(number);
        family.push(target);
        let shown: Vec<Storage> = family
            .iter()
            .filter_map(|device| self.shown(device))
            .collect();
        family.extend(self.devices().stack_above(number));
        self.devices()
            .iter()
            .filter(|device| !family.iter().any(|known| known.number == device.number))
            .filter(|device| {
                self.shown(device).is_some_and(|file| shown.contains(&file))
                    || self.overlap(target, device)
            })
            .collect()
    }

    /// True if two devices lie on the same bytes of a device below both, as far as it is known how they lie there.
    fn overlap(&self, one: &Device, other: &Device) -> bool {
        let below = self.devices().below(other.number);
        let bytes = |device: &Device, on: DeviceNumber| {
            let map = Map::down(&self.root, self.devices(), device.number, on).ok()?;
            Some(map.ranges(&Ranges::all(device.size)))
        };
        let on_same = |lower: &Device| {
            let shared = Some((bytes(one, lower.number)?, bytes(other, lower.number)?));
            shared.filter(|(one, other)| !one.intersect(other).is_empty())
        };
        let common = self.devices().below(one.number).into_iter();
        let mut common = common.filter(|lower| below.iter().any(|it| it.number == lower.number));
        common.any(|lower| on_same(lower).is_some()) || self.is_within(one, other)
    }

    /// True if one is an extended partition, of which the kernel shows only the beginning, and the other a logical one
    /// in it.
    fn is_within(&self, one: &Device, other: &Device) -> bool {
        const SHOWN_OF_EXTENDED: u64 = 4096;
        const FIRST_LOGICAL: u32 = 5;
        let (Some(a), Some(b)) = (self.partition(one), self.partition(other)) else {
            return false;
        };
        let is_in = |extended: &Partition, logical: &Partition| {
            extended.number < FIRST_LOGICAL
                && extended.size <= SHOWN_OF_EXTENDED
                && logical.number >= FIRST_LOGICAL
        };
        one.partition_of() == other.partition_of() && (is_in(&a, &b) || is_in(&b, &a))
    }

    /// The loop devices that show a file.
    pub(super) fn loops_over(&self, file: Storage) -> Vec<&Device> {
        self.devices()
            .iter()
            .filter(|device| self.shown(device) == Some(file))
            .collect()
    }

    /// All storage whose use is a use of the device: itself, what lies on it, what shares its storage and what
    /// lies on that, and the files that loop devices among these show.
    pub(super) fn storage_of(&self, number: DeviceNumber) -> Vec<Storage> {
        let mut devices = vec![number];
        devices.extend(self.siblings(number).iter().map(|device| device.number));
        let above: Vec<DeviceNumber> = devices
            .iter()
            .flat_map(|&number| self.devices().stack_above(number))
            .map(|device| device.number)
            .collect();
        devices.extend(above);
        let whole = self.devices().below(number);
        devices.extend(whole.iter().map(|device| device.number));
        let files = devices
            .iter()
            .filter_map(|&number| self.shown(self.devices().get(number)?));
        let mut storage: Vec<Storage> = files.collect();
        storage.extend(devices.into_iter().map(Storage::Device));
        storage.sort_unstable();
        storage.dedup();
        storage
    }

    /// A loop device in use of which it cannot be determined which storage it shows, and thus which other names that
    /// has.
    pub(super) fn unclear_loop(&self) -> Option<(&Device, BackingUnknown)> {
        self.devices()
            .iter()
            .filter_map(|device| Some((device, self.unclear(device, device.backing_file()?)?)))
            .next()
    }

    /// Reason why the storage that a loop device shows cannot be determined; `None` where it can.
    ///
    /// Its file system must be known, by a mount or by the file at the device's path, and keep its files itself.
    fn unclear(&self, device: &Device, path: &Path) -> Option<BackingUnknown> {
        if device.loop_on().is_some() {
            return None;
        }
        let Some(shown @ Storage::File(dev, _)) = self.shown(device) else {
            return Some(BackingUnknown::Unknown);
        };
        let number = DeviceNumber::from_raw(dev);
        let mounts = || self.mounts_of_all().filter(|mount| mount.device == number);
        if let Some(mount) = mounts().find(|mount| is_pass_through(mount)) {
            return Some(BackingUnknown::Hidden(mount.kind.clone()));
        }
        // A subvolume of btrfs has a device number of its own, which no mount lists.
        let by_path = || {
            let file = File::open(self.root.locate(path)).ok()?;
            (Storage::of(&file.metadata().ok()?)? == shown).then(|| file_system_of(&file).ok())?
        };
        match mounts().next() {
            Some(_) => None,
            None => match by_path() {
                Some(FileSystem::Plain) => None,
                Some(FileSystem::PassThrough(kind)) => {
                    Some(BackingUnknown::Hidden(kind.to_owned()))
                }
                Some(FileSystem::Kernel) | None => Some(BackingUnknown::Unknown),
            },
        }
    }
}

fn is_pass_through(mount: &Mount) -> bool {
    let kind = mount.kind.split('.').next().unwrap_or_default();
    PASS_THROUGH.contains(&kind)
}
