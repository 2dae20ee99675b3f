//! Facts about the host: disks, mounts, arrays, kernel settings and running database servers.

use std::path::{Path, PathBuf};

use linux::Root;
use linux::block::{BlockDeviceKind, DataLocation, Device, Devices, place_of};
use linux::cloud::Provider;
use linux::machine::memory;
use linux::md::Array;
use linux::mounts::{Mount, Mounts};
use linux::root::attribute;
use record::Bytes;

use super::server::{Server, servers};

/// A folder of a database, and the devices that it lies on.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// Part of the database that the folder holds, such as `data` or `redo log`.
    pub(crate) what: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) place: DataLocation,
}

/// The host.
pub(crate) struct HostFacts {
    pub(crate) root: Root,
    pub(crate) name: String,
    pub(crate) devices: Devices,
    pub(crate) mounts: Mounts,
    pub(crate) arrays: Vec<Array>,
    pub(crate) servers: Vec<Server>,
    pub(crate) provider: Option<Provider>,
    pub(crate) memory: Option<Bytes>,
    /// Folders of the data. Empty where none were named: checks are then about all disks.
    pub(crate) folders: Vec<Folder>,
}

impl HostFacts {
    /// Reads the host.
    pub(crate) fn read(root: &Root) -> linux::Result<HostFacts> {
        let devices = Devices::read(root)?;
        let arrays = linux::md::arrays(root, &devices)?;
        Ok(HostFacts {
            name: linux::machine::hostname(root),
            mounts: Mounts::read(root)?,
            servers: servers(root)?,
            provider: linux::cloud::provider(root),
            memory: memory(root),
            folders: Vec::new(),
            root: root.clone(),
            devices,
            arrays,
        })
    }

    /// Adds a folder of the data.
    ///
    /// # Errors
    /// When the folder cannot be examined.
    pub(crate) fn add_folder(&mut self, what: &'static str, path: &Path) -> linux::Result<()> {
        let place = place_of(&self.root, &self.devices, path)?;
        self.folders.push(Folder {
            what,
            path: path.to_path_buf(),
            place,
        });
        Ok(())
    }

    /// A setting of the kernel by its name, such as `vm.swappiness`.
    pub(crate) fn sysctl(&self, name: &str) -> Option<String> {
        attribute(&self.root.proc.join("sys").join(name.replace('.', "/")))
    }

    /// A setting of the kernel that is a whole number.
    pub(crate) fn sysctl_number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// An attribute of a device in sysfs.
    pub(crate) fn attribute(&self, device: &Device, path: &str) -> Option<String> {
        let folder = self.root.sys.join("class/block").join(device.sysfs_name());
        attribute(&folder.join(path))
    }

    /// Devices that checks are about: those of the folders with all devices below them, or all that are in use.
    pub(crate) fn checked_devices(&self) -> Vec<&Device> {
        let mut found: Vec<&Device> = match self.folders.is_empty() {
            true => self.devices.iter().collect(),
            false => {
                let numbers = self.folders.iter().flat_map(|folder| &folder.place.devices);
                let stacks = numbers.flat_map(|number| {
                    let own = self.devices.get(*number);
                    own.into_iter().chain(self.devices.stack_below(*number))
                });
                stacks.collect()
            }
        };
        found.retain(|device| !device.is_empty() && !device.removable && !device.hidden);
        found.sort_by_cached_key(|device| linux::block::natural(&device.name));
        found.dedup_by_key(|device| device.number);
        found
    }

    /// The disks among the devices that checks are about.
    pub(crate) fn disks(&self) -> Vec<&Device> {
        let all = self.checked_devices().into_iter();
        all.filter(|device| device.kind == BlockDeviceKind::Disk)
            .collect()
    }

    /// The arrays among the devices that checks are about.
    pub(crate) fn concerned_arrays(&self) -> Vec<&Array> {
        let devices = self.checked_devices();
        let is_concerned =
            |array: &&Array| devices.iter().any(|device| device.number == array.number);
        self.arrays.iter().filter(is_concerned).collect()
    }

    /// The file systems that checks are about: those of the folders, or all on a device.
    pub(crate) fn concerned_mounts(&self) -> Vec<&Mount> {
        let mut found: Vec<&Mount> = match self.folders.is_empty() {
            true => {
                let all = self.mounts.iter();
                all.filter(|mount| !mount.device.is_anonymous() && !mount.is_read_only())
                    .collect()
            }
            false => {
                let mounts = self.folders.iter();
                mounts
                    .filter_map(|folder| folder.place.mount.as_ref())
                    .collect()
            }
        };
        found.sort_by_key(|mount| mount.device);
        found.dedup_by_key(|mount| mount.device);
        found
    }

    /// The device that a folder lies on.
    pub(crate) fn device_of(&self, folder: &Folder) -> Option<&Device> {
        self.devices.get(*folder.place.devices.first()?)
    }

    /// Names of the device of a part of the database, such as `data`, and of all devices below it; empty where the
    /// part is not on this host.
    pub(crate) fn names_of(&self, what: &str) -> Vec<String> {
        let folder = self.folders.iter().find(|folder| folder.what == what);
        let device = folder.and_then(|folder| self.device_of(folder));
        device.map_or(Vec::new(), |device| self.names_below(device))
    }

    /// Names of a device and of all devices below it.
    pub(crate) fn names_below(&self, device: &Device) -> Vec<String> {
        let below = self.devices.stack_below(device.number).into_iter();
        let names = std::iter::once(device).chain(below);
        names.map(|device| device.name.clone()).collect()
    }

    /// First folder of the data, for commands that measure it; a placeholder where it is not known.
    pub(crate) fn data_path(&self) -> String {
        let first = self.folders.first();
        first.map_or("DIR".to_owned(), |folder| folder.path.display().to_string())
    }
}
