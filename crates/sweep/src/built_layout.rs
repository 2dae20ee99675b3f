//! The layout that is currently built, as saved in the ledger: what is needed to take it down after a kill, a power
//! cut or a reboot.

use std::path::{Path, PathBuf};

use linux::block::{Device, DeviceNumber, Devices};
use linux::exec::Exec;
use linux::mounts::Mounts;
use linux::{Root, process, root};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use array::host::ArrayHost;
use array::plan::{md_uuid, new_uuid};
use array::steps::UndoResult;
use array::teardown;

/// The ids of a layout, chosen before it is built, and the earlier settings of the disks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuiltLayout {
    /// Number of the devices that are its members.
    pub members: usize,
    /// UUID of the array, as mdadm writes it.
    pub array: String,
    /// UUID of the file system.
    pub fs: String,
    /// Device node of the array.
    pub node: PathBuf,
    /// Mount point.
    pub mount: PathBuf,
    /// Former schedulers of the disks.
    pub schedulers: Vec<SavedScheduler>,
    /// Id of the boot: after a reboot the schedulers are the system's.
    pub boot: String,
}

/// The scheduler of a disk before the layout changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedScheduler {
    /// The disk's name in sysfs.
    pub disk: String,
    /// Identity of the disk: another one may have taken its name meanwhile.
    pub id: Option<String>,
    /// The scheduler.
    pub was: String,
}

impl BuiltLayout {
    /// Chooses the ids for a layout on these devices.
    ///
    /// # Errors
    /// When the kernel returns no random id, or does not list a device.
    pub(crate) fn choose(
        root: &Root,
        layout: &Layout,
        members: &[DeviceNumber],
        node: PathBuf,
        mount: &Path,
    ) -> anyhow::Result<BuiltLayout> {
        let devices = Devices::read(root)?;
        let mut schedulers: Vec<SavedScheduler> = Vec::new();
        if layout.scheduler.is_some() {
            for &member in members {
                let was = scheduler_of(&devices, member);
                schedulers.extend(was.filter(|was| !schedulers.contains(was)));
            }
        }
        Ok(BuiltLayout {
            members: layout.members,
            array: md_uuid(&new_uuid(root)?),
            fs: new_uuid(root)?,
            node,
            mount: mount.to_path_buf(),
            schedulers,
            boot: process::boot_id(root)?,
        })
    }

    /// Takes the layout down, on the devices at these paths. The layout may exist in part or not at all, and the call
    /// may be repeated. Without `arrays` it is a single disk.
    pub(crate) fn take_down(
        &self,
        host: &mut ArrayHost,
        devices: &[PathBuf],
        arrays: bool,
    ) -> Vec<UndoResult> {
        let mut undone = self.unmount(host);
        if undone.iter().any(|undone| undone.left().is_some()) {
            // A mounted file system is in use, even if it is ours: nothing below it is changed.
            return undone;
        }
        if arrays {
            undone.extend(teardown::stop(host, &self.array, &self.node));
        }
        for path in devices.iter().take(self.members) {
            if arrays {
                undone.extend(teardown::release(host, &self.array, path));
            }
            undone.extend(teardown::erase(host, &self.fs, path));
        }
        undone.extend(self.reset_schedulers(&host.root));
        host.array = None;
        undone
    }

    /// Unmounts everything in the folder, the last mount first: the folder belongs to the sweep.
    fn unmount(&self, host: &mut ArrayHost) -> Vec<UndoResult> {
        let count = Mounts::read(&host.root).map_or(0, |mounts| {
            mounts
                .iter()
                .filter(|mount| mount.point == self.mount)
                .count()
        });
        let shown = self.mount.display();
        let mut undone = Vec::new();
        for _ in 0..count {
            undone.push(
                match host.run(&Exec::new("umount").arg(&self.mount).bound()) {
                    Ok(_) => UndoResult::Reverted(format!("{shown} was unmounted")),
                    Err(error) => {
                        UndoResult::Leftover(format!("{shown} is mounted: {error}; umount {shown}"))
                    }
                },
            );
        }
        // The folder is kept while a file system is mounted on it.
        let _ = std::fs::remove_dir(&self.mount);
        undone
    }

    fn reset_schedulers(&self, root: &Root) -> Vec<UndoResult> {
        if process::boot_id(root).ok().as_ref() != Some(&self.boot) {
            return Vec::new();
        }
        let devices = Devices::read(root).ok();
        let is_there = |scheduler: &SavedScheduler| {
            let mut all = devices.iter().flat_map(Devices::iter);
            all.any(|device| {
                device.sysfs_name() == scheduler.disk && device.identity() == scheduler.id
            })
        };
        let left = |scheduler: &SavedScheduler| {
            // The scheduler of a removed disk disappeared with it.
            is_there(scheduler).then_some(())?;
            let error = set_scheduler(root, &scheduler.disk, &scheduler.was).err()?;
            Some(UndoResult::Leftover(format!(
                "the scheduler of {}, which was {}: {error}",
                scheduler.disk, scheduler.was
            )))
        };
        self.schedulers.iter().filter_map(left).collect()
    }
}

/// Sets the schedulers of these devices.
///
/// # Errors
/// The file that cannot be written.
pub(crate) fn set_schedulers(
    root: &Root,
    layout: &Layout,
    underway: &BuiltLayout,
) -> anyhow::Result<()> {
    let Some(wanted) = &layout.scheduler else {
        return Ok(());
    };
    for SavedScheduler { disk, .. } in &underway.schedulers {
        set_scheduler(root, disk, wanted)?;
    }
    Ok(())
}

/// The schedulers that a device can have: the words of its disk's `queue/scheduler`, where the current one is in
/// brackets (Documentation/block/switching-sched.rst).
pub(crate) fn schedulers(root: &Root, devices: &Devices, number: DeviceNumber) -> Vec<String> {
    let Some(disk) = disk_of(devices, number) else {
        return Vec::new();
    };
    let text = root::read_text(&file(root, &disk.sysfs_name())).unwrap_or_default();
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    text.split_whitespace().map(plain).collect()
}

fn file(root: &Root, disk: &str) -> PathBuf {
    root.sys
        .join("class/block")
        .join(disk)
        .join("queue/scheduler")
}

fn set_scheduler(root: &Root, disk: &str, name: &str) -> anyhow::Result<()> {
    let file = file(root, disk);
    std::fs::write(&file, name)
        .map_err(|error| anyhow::anyhow!("{} cannot be written: {error}", file.display()))
}

/// The disk whose queue a device uses: a partition has that of its disk.
fn disk_of(devices: &Devices, number: DeviceNumber) -> Option<&Device> {
    let device = devices.get(number)?;
    match device.partition_of() {
        Some(of) => devices.get(of),
        None => Some(device),
    }
}

fn scheduler_of(devices: &Devices, number: DeviceNumber) -> Option<SavedScheduler> {
    let disk = disk_of(devices, number)?;
    Some(SavedScheduler {
        disk: disk.sysfs_name(),
        id: disk.identity(),
        was: disk.scheduler.clone()?,
    })
}
