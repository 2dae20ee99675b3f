//! Block devices as sysfs shows them, and how they are stacked
//! (Documentation/ABI/stable/sysfs-block and testing/sysfs-block).

mod describe;
mod device;
mod place;
mod serial;
mod stack;

pub use device::{BlockDeviceKind, Device};
pub use place::{DataLocation, device_of, place_of};
pub use record::sample::DeviceNumber;

use std::path::Path;

use crate::root::{self, Result, Root, last_part};
use serial::{Serial, Wait};

/// The block devices at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Sorted by name, with numbers in names by value: sda2 before sda10.
    list: Vec<Device>,
}

impl Devices {
    /// Reads all block devices. A device that is removed meanwhile is left out.
    ///
    /// # Errors
    /// When the list itself, or the holders of a device, cannot be read.
    pub fn read(root: &Root) -> Result<Devices> {
        Devices::read_with(root, |_, _| Serial::FromDevice(Wait::Always))
    }

    /// Like [`Devices::read`], for callers that must not be delayed by a disk that hangs. `known` returns the serial
    /// number of a device by its number and its name in sysfs, if it is known. Any other device that does not return
    /// its serial number within a tenth of a second has none; virtio disks do not while their queue is full.
    ///
    /// # Errors
    /// As [`Devices::read`].
    pub fn read_without_waiting(
        root: &Root,
        known: impl Fn(DeviceNumber, &str) -> Option<String>,
    ) -> Result<Devices> {
        Devices::read_with(root, |number, name| match known(number, name) {
            Some(serial) => Serial::Known(serial),
            None => Serial::FromDevice(Wait::Briefly),
        })
    }

    fn read_with(root: &Root, serial: impl Fn(DeviceNumber, &str) -> Serial) -> Result<Devices> {
        let folder = root.sys.join("class/block");
        let mut found = Vec::new();
        for name in root::names_in(&folder)? {
            if let Some(raw) = describe::read_device(&folder.join(&name), &serial)? {
                found.push(raw);
            }
        }
        let mut devices = describe::link(found);
        devices.sort_by_cached_key(|device| natural(&device.name));
        let mut devices = Devices { list: devices };
        devices.find_loops_on_devices(root);
        Ok(devices)
    }

    /// All devices.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.list.iter()
    }

    /// The device with this number.
    pub fn get(&self, number: DeviceNumber) -> Option<&Device> {
        self.list.iter().find(|device| device.number == number)
    }

    /// The device with this name, such as `nvme1n1` or `cciss/c0d0`.
    pub fn named(&self, name: &str) -> Option<&Device> {
        self.list.iter().find(|device| device.name == name)
    }

    /// The device of a path below `/dev`, through symbolic links. If the node does not exist, as in a container or a
    /// captured tree, the device is searched for by name.
    pub fn at_path(&self, root: &Root, path: &Path) -> Option<&Device> {
        let below = path.strip_prefix("/dev").ok()?;
        let located = root.dev.join(below);
        if let Some(number) = device::number_of_node(&located) {
            return self.get(number);
        }
        let followed = std::fs::canonicalize(&located).unwrap_or_else(|_| located.clone());
        let by_folder = |path: &Path| {
            let name = path.strip_prefix(&root.dev).ok()?.to_str()?;
            self.named(name).or_else(|| self.mapped(path))
        };
        by_folder(&followed)
            .or_else(|| by_folder(&located))
            .or_else(|| self.named(&last_part(&followed)?))
    }

    /// The device-mapper device whose name is the last part of a path below `/dev/mapper`.
    fn mapped(&self, path: &Path) -> Option<&Device> {
        let folder = path.parent().and_then(last_part)?;
        let wanted = last_part(path)?;
        self.list.iter().find(|device| {
            matches!(&device.kind, BlockDeviceKind::Mapper { name: Some(name), .. } if *name == wanted)
                && folder == "mapper"
        })
    }

    /// Notes which loop devices are backed by another block device instead of a file: sysfs shows that neither as a
    /// slave nor as a holder.
    fn find_loops_on_devices(&mut self, root: &Root) {
        for index in 0..self.list.len() {
            let BlockDeviceKind::Loop {
                backing_file: Some(path),
                ..
            } = &self.list[index].kind
            else {
                continue;
            };
            let Some(below) = self.at_path(root, path).map(|device| device.number) else {
                continue;
            };
            self.put_loop_on(self.list[index].number, below);
        }
    }

    /// Notes that a loop device is backed by a block device, where the path in sysfs does not show it: the path is
    /// that of a node outside `/dev`, or in another mount namespace.
    pub(crate) fn put_loop_on(&mut self, number: DeviceNumber, below: DeviceNumber) {
        for device in self.numbered(number) {
            if let BlockDeviceKind::Loop { backing_device, .. } = &mut device.kind {
                *backing_device = Some(below);
            }
        }
    }

    /// Notes that a loop device is no longer in use.
    pub(crate) fn put_loop_free(&mut self, number: DeviceNumber) {
        for device in self.numbered(number) {
            if matches!(device.kind, BlockDeviceKind::Loop { .. }) {
                device.kind = BlockDeviceKind::Loop {
                    backing_file: None,
                    backing_device: None,
                };
            }
        }
    }

    fn numbered(&mut self, number: DeviceNumber) -> impl Iterator<Item = &mut Device> {
        let all = self.list.iter_mut();
        all.filter(move |device| device.number == number)
    }
}

/// A sort key that compares numbers within names by value: `sda2` before `sda10`.
pub fn natural(name: &str) -> Vec<(String, Option<u64>)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        key.push((word.to_owned(), number.parse().ok()));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn numbers_in_names_sort_by_value() {
        let mut names = [
            "sda10",
            "nvme0n1p1",
            "sda2",
            "sdaa",
            "nvme10n1",
            "sda",
            "nvme0n1",
        ];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(
            names,
            [
                "nvme0n1",
                "nvme0n1p1",
                "nvme10n1",
                "sda",
                "sda2",
                "sda10",
                "sdaa"
            ]
        );
    }
}
