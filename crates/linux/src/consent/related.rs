//! Claims and locks on what shares storage with a target.
//!
//! The kernel's claim on a device keeps others from that device, its partitions and its disk. Another loop device
//! over the same file, or the device that a loop device shows, is mounted and claimed all the same, so each of
//! them is claimed too, for as long as the target is.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::identity::Storage;
use super::lock::{LockKind, lock, persists};
use super::programs::ProgramUse;
use super::reason::{Reason, Relation};
use super::users::DeviceUsers;
use crate::block::{Device, DeviceNumber};

impl DeviceUsers {
    /// Claims and locks what shares storage with a device and is not claimed together with it. To be called where
    /// no use is known. What is claimed stays so until the files are dropped.
    pub(super) fn claim_related(
        &self,
        number: DeviceNumber,
        reasons: &mut Vec<Reason>,
    ) -> Vec<File> {
        let mut claims = Vec::new();
        for device in self.related(number) {
            match self.claim(device) {
                Ok(claim) if lock(&claim, LockKind::Shared) => {
                    claims.push(claim);
                }
                Ok(_) => reasons.push(Reason::Unseen {
                    path: device.node(),
                    hold: ProgramUse::Locked,
                }),
                Err(Errno::BUSY) => reasons.push(Reason::BusyBeside {
                    device: device.label(),
                    relation: Relation::Sibling,
                }),
                // It has gone, and with it the use of it.
                Err(Errno::NXIO | Errno::NODEV) => {}
                Err(error) => reasons.push(Reason::Unknown {
                    error: format!(
                        "{}, which shares its storage, cannot be opened: {}",
                        device.label(),
                        io::Error::from(error)
                    ),
                }),
            }
        }
        for (path, file) in self.files_below(number) {
            if lock(&file, LockKind::Shared) {
                claims.push(file);
            } else {
                let hold = ProgramUse::Locked;
                reasons.push(Reason::Unseen {
                    path: path.to_path_buf(),
                    hold,
                });
            }
        }
        claims
    }

    /// Opens a device with a claim, for reading: closing one that was open for writing makes udev probe it again.
    fn claim(&self, device: &Device) -> Result<File, Errno> {
        let path = self.root.locate(&device.node());
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&path, flags, Mode::empty());
        let mut opened = open();
        persists(|| {
            opened = open();
            matches!(opened, Err(Errno::BUSY))
        });
        let file = File::from(opened?);
        let found = file.metadata().map_err(|_| Errno::IO)?;
        match Storage::of(&found) == Some(Storage::Device(device.number)) {
            true => Ok(file),
            false => Err(Errno::STALE),
        }
    }

    /// The devices that share storage with one, without those that the kernel claims together with it, and those
    /// that what lies on them has claimed, such as the members of an array.
    fn related(&self, number: DeviceNumber) -> Vec<&Device> {
        let disk = |device: &Device| device.partition_of().unwrap_or(device.number);
        let devices = self.devices();
        let Some(target) = devices.get(number) else {
            return Vec::new();
        };
        let storage = self.storage_of(number);
        let all: Vec<&Device> = devices
            .iter()
            .filter(|device| storage.contains(&Storage::Device(device.number)))
            .filter(|device| disk(device) != disk(target))
            .collect();
        let below = devices.below(number);
        let is_below = |device: &Device| below.iter().any(|known| known.number == device.number);
        let is_held = |device: &Device| {
            let parts = devices
                .iter()
                .filter(|part| part.partition_of() == Some(device.number));
            parts.chain([device]).any(|part| !part.holders.is_empty())
        };
        // Of a disk of which only a partition lies below, other partitions may be in use; the claim of that one
        // is refused where the disk is claimed as a whole. Otherwise the disk's claim is one of all its partitions.
        let is_cut = |device: &Device| {
            is_below(device)
                && all
                    .iter()
                    .any(|part| part.partition_of() == Some(device.number) && is_below(part))
        };
        let is_covered = |device: &Device| {
            let whole = device.partition_of().and_then(|whole| devices.get(whole));
            whole.is_some_and(|whole| {
                all.iter().any(|known| known.number == whole.number) && !is_cut(whole)
            })
        };
        all.iter()
            .copied()
            .filter(|device| !is_cut(device) && !is_covered(device) && !is_held(device))
            .collect()
    }

    /// The files that loop devices at or below a device show, where their paths still lead to them.
    fn files_below(&self, number: DeviceNumber) -> Vec<(&Path, File)> {
        let devices = self.devices();
        let family = devices.below(number).into_iter().chain(devices.get(number));
        let opened = |device| {
            let (path, shown) = self.file_shown(device)?;
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
            let found = Storage::of(&file.metadata().ok()?);
            (found == Some(shown)).then_some((path, file))
        };
        family.filter_map(opened).collect()
    }
}
