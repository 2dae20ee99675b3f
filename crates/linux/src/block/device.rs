//! One block device: its number, its kind and its attributes.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use record::Bytes;
use record::raid::MdLevel;

use crate::root::{Root, names_in, number};
use record::sample::DeviceNumber;

/// The number of a block device's node; `None` if the path is not such a node.
pub(super) fn number_of_node(path: &Path) -> Option<DeviceNumber> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata
        .file_type()
        .is_block_device()
        .then(|| DeviceNumber::from_raw(metadata.rdev()))
}

/// Kind of a block device, with what it lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockDeviceKind {
    /// A disk, real or virtual, or any device of another kind than those below.
    Disk,
    /// A part of a disk.
    Partition {
        /// Disk that it belongs to.
        of: DeviceNumber,
        /// Number in the partition table.
        number: u32,
    },
    /// A loop device (loop(4)).
    Loop {
        /// Path of the backing file; `None` if it is not in use.
        backing_file: Option<PathBuf>,
        /// The backing device, if the path is a device's node.
        backing_device: Option<DeviceNumber>,
    },
    /// A device-mapper device: LVM, dm-crypt, multipath.
    Mapper {
        /// Name under `/dev/mapper`.
        name: Option<String>,
        /// Id, which begins with the name of its owner: `LVM-`, `CRYPT-`, `mpath-`.
        uuid: Option<String>,
    },
    /// Linux software RAID.
    Raid {
        /// `raid0`, `raid1`, `raid10`, …; `None` while it is not assembled.
        level: Option<MdLevel>,
        /// Number of members that it should have.
        disks: Option<u32>,
        /// UUID of the array, where the kernel shows it.
        uuid: Option<String>,
    },
    /// Memory: zram or a RAM disk.
    Ram,
}

/// A block device. Partitions have the model, serial number and queue of their disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, such as `nvme1n1p2`; `cciss/c0d0` where sysfs says `cciss!c0d0`.
    pub name: String,
    /// Major and minor number of the device.
    pub number: DeviceNumber,
    /// Disk, partition, or another kind.
    pub kind: BlockDeviceKind,
    /// Size of the device; zero for a loop device that is not in use or a drive without medium.
    pub size: Bytes,
    /// True if its medium can be removed.
    pub removable: bool,
    /// True if it is set read-only.
    pub read_only: bool,
    /// True if it is one path of an NVMe multipath device and has no node of its own.
    pub hidden: bool,
    /// The maker's name for it.
    pub model: Option<String>,
    /// The serial number; on EBS the volume id.
    pub serial: Option<String>,
    /// The worldwide unique name (WWID).
    pub wwid: Option<String>,
    /// True if the kernel reports it as rotational; unreliable for virtual disks.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Size of read-ahead; `None` where the kernel shows none.
    pub read_ahead: Option<Bytes>,
    /// The kernel's view of its write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Logical block size: the smallest request.
    pub logical_block: Option<Bytes>,
    /// Physical block size: the smallest write without a read before.
    pub physical_block: Option<Bytes>,
    /// The names of the devices that are built on it: md, dm, bcache. Names and not numbers, since a holder that is
    /// not listed, or not yet, is a holder too.
    pub holders: Vec<String>,
    /// The names of the devices that it is built on.
    pub slaves: Vec<String>,
}

impl Device {
    /// Name that is stable across boots: the WWID or, without one, the serial number, followed by the number of a
    /// partition. (Two namespaces of an NVMe controller share the serial number and differ in the WWID.) `None` if the
    /// disk has neither.
    pub fn identity(&self) -> Option<String> {
        let disk = self.wwid.as_ref().or(self.serial.as_ref())?;
        Some(match self.kind {
            BlockDeviceKind::Partition { number, .. } => format!("{disk} part {number}"),
            _ => disk.clone(),
        })
    }

    /// Name of the device in sysfs, which has no slash.
    pub fn sysfs_name(&self) -> String {
        self.name.replace('/', "!")
    }

    /// True if the kernel counts its I/O; `queue/iostats` can disable that for speed (Linux,
    /// Documentation/ABI/stable/sysfs-block).
    pub fn is_counted(&self, root: &Root) -> bool {
        let disk = root.sys.join("class/block").join(self.sysfs_name());
        number::<u32>(&disk.join("queue/iostats")) != Some(0)
    }

    /// Sequence number of the disk, unique since the boot (`diskseq`, Linux 5.15,
    /// Documentation/ABI/stable/sysfs-block). A partition has none.
    pub fn sequence(&self, root: &Root) -> Option<u64> {
        let disk = root.sys.join("class/block").join(self.sysfs_name());
        number(&disk.join("diskseq"))
    }

    /// Number of requests that its queues hold together: `queue/nr_requests` times the number of hardware queues, each
    /// a folder below `mq`. `None` for devices that pass requests on without a queue, and for partitions.
    pub fn queue_depth(&self, root: &Root) -> Option<u32> {
        let disk = root.sys.join("class/block").join(self.sysfs_name());
        let queues = names_in(&disk.join("mq")).ok()?.len();
        let each: u32 = number(&disk.join("queue/nr_requests"))?;
        let depth = each.checked_mul(u32::try_from(queues).ok()?)?;
        (depth > 0).then_some(depth)
    }

    /// Maximum size of a request to the device: the kernel splits larger ones and counts each part
    /// (Documentation/ABI/stable/sysfs-block, `max_sectors_kb`). `None` if unknown, as for a partition.
    pub fn largest_request(&self, root: &Root) -> Option<Bytes> {
        let disk = root.sys.join("class/block").join(self.sysfs_name());
        number::<u64>(&disk.join("queue/max_sectors_kb")).map(Bytes::kib)
    }

    /// Path of the device's node, as users write it.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// True if it has no data to read: a loop device that is not in use, or a drive without a medium.
    pub fn is_empty(&self) -> bool {
        self.size.0 == 0
    }

    /// The disk of a partition.
    pub fn partition_of(&self) -> Option<DeviceNumber> {
        match self.kind {
            BlockDeviceKind::Partition { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Path of the backing file, in the mount namespace where the loop device was set up; `None` unless it is a loop
    /// device in use.
    pub fn backing_file(&self) -> Option<&Path> {
        match &self.kind {
            BlockDeviceKind::Loop { backing_file, .. } => backing_file.as_deref(),
            _ => None,
        }
    }

    /// The backing device of a loop device.
    pub fn loop_on(&self) -> Option<DeviceNumber> {
        match self.kind {
            BlockDeviceKind::Loop { backing_device, .. } => backing_device,
            _ => None,
        }
    }

    /// Path of the node, with the kind of the device if the name does not show it: `/dev/dm-0 (LVM volume vg-data)`.
    pub fn label(&self) -> String {
        let node = self.node();
        match self.kind {
            BlockDeviceKind::Raid { .. } | BlockDeviceKind::Mapper { .. } => {
                format!("{} ({})", node.display(), self.title())
            }
            _ => node.display().to_string(),
        }
    }

    /// Kind of the device in a few words: `LVM volume vg-data`, `raid10 array`, `partition`.
    pub fn title(&self) -> String {
        match &self.kind {
            BlockDeviceKind::Disk => "disk".to_owned(),
            BlockDeviceKind::Partition { .. } => "partition".to_owned(),
            BlockDeviceKind::Loop { .. } => "loop device".to_owned(),
            BlockDeviceKind::Ram => "memory".to_owned(),
            BlockDeviceKind::Raid { level, .. } => match level {
                Some(level) => format!("{level} array"),
                None => "md array".to_owned(),
            },
            BlockDeviceKind::Mapper { name, uuid } => {
                let what = mapper_kind(uuid.as_deref());
                match name {
                    Some(name) => format!("{what} {name}"),
                    None => what.to_owned(),
                }
            }
        }
    }
}

/// Owner of a device-mapper device, by the prefix of its id.
fn mapper_kind(uuid: Option<&str>) -> &'static str {
    let owner = uuid.and_then(|uuid| uuid.split('-').next()).unwrap_or("");
    match owner {
        "LVM" => "LVM volume",
        "CRYPT" => "encrypted volume",
        "mpath" => "multipath device",
        // kpartx: a partition of a device-mapper device, such as part1-mpath-….
        part if part.starts_with("part") => "mapped partition",
        _ => "device-mapper device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_is_read_and_written_in_all_its_forms() {
        let number: DeviceNumber = "259:1048575".parse().unwrap();
        assert_eq!(number, DeviceNumber::new(259, 1_048_575));
        assert_eq!(number.to_string(), "259:1048575");
        assert_eq!(
            DeviceNumber::from_raw(rustix::fs::makedev(259, 1_048_575)),
            number
        );
        assert!("8".parse::<DeviceNumber>().is_err());
        assert!("8:-1".parse::<DeviceNumber>().is_err());
        assert!(DeviceNumber::new(0, 44).is_anonymous());
    }

    #[test]
    fn a_mapper_device_is_called_by_its_owner() {
        for (uuid, word) in [
            (Some("LVM-abc"), "LVM volume"),
            (Some("CRYPT-LUKS2-abc-luks"), "encrypted volume"),
            (Some("mpath-3600"), "multipath device"),
            (Some("part1-mpath-3600"), "mapped partition"),
            (None, "device-mapper device"),
        ] {
            assert_eq!(mapper_kind(uuid), word);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<DeviceNumber>();
        }
    }
}
