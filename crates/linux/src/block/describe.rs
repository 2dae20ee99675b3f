//! Reads the folder of a device in sysfs.

use std::fs;
use std::path::Path;

use record::Bytes;
use record::raid::MdLevel;

use super::device::{BlockDeviceKind, Device};
use super::serial::{Serial, serial_of};
use crate::root::{self, Result, attribute, last_part, number, path_attribute};
use record::sample::DeviceNumber;

/// Sizes in sysfs are in sectors of this many bytes, whatever the device's own block size.
const SECTOR: u64 = 512;

/// A device, and the name of its disk if it is a partition.
pub(super) struct RawDevice {
    device: Device,
    disk: Option<String>,
}

/// Reads the device at `class/block/NAME`. `None` if it has no number, because it is being removed.
pub(super) fn read_device(
    folder: &Path,
    serial: impl Fn(DeviceNumber, &str) -> Serial,
) -> Result<Option<RawDevice>> {
    let Some(number) = attribute(&folder.join("dev")).and_then(|text| text.parse().ok()) else {
        return Ok(None);
    };
    let Some(sysfs_name) = last_part(folder) else {
        return Ok(None);
    };
    let (kind, disk) = kind_of(folder, &sysfs_name);
    let serial = match serial(number, &sysfs_name) {
        Serial::Known(serial) => Some(serial),
        Serial::FromDevice(wait) => serial_of(folder, wait),
    };
    let device = Device {
        name: sysfs_name.replace('!', "/"),
        number,
        kind,
        size: sectors(&folder.join("size")),
        removable: flag(&folder.join("removable")).unwrap_or(false),
        read_only: flag(&folder.join("ro")).unwrap_or(false),
        hidden: flag(&folder.join("hidden")).unwrap_or(false),
        model: model_of(folder),
        serial,
        wwid: attribute(&folder.join("wwid")).or_else(|| attribute(&folder.join("device/wwid"))),
        rotational: flag(&folder.join("queue/rotational")),
        scheduler: attribute(&folder.join("queue/scheduler")).and_then(|text| chosen(&text)),
        read_ahead: self::number::<u64>(&folder.join("queue/read_ahead_kb"))
            .map(|kib| Bytes(kib.saturating_mul(1024))),
        write_cache: attribute(&folder.join("queue/write_cache")),
        logical_block: self::number(&folder.join("queue/logical_block_size")).map(Bytes),
        physical_block: self::number(&folder.join("queue/physical_block_size")).map(Bytes),
        holders: neighbours(&folder.join("holders"))?,
        slaves: neighbours(&folder.join("slaves"))?,
    };
    Ok(Some(RawDevice { device, disk }))
}

fn neighbours(folder: &Path) -> Result<Vec<String>> {
    let names = root::names_in(folder)?;
    Ok(names
        .iter()
        .map(|name| name.to_string_lossy().replace('!', "/"))
        .collect())
}

fn sectors(path: &Path) -> Bytes {
    let sectors: u64 = number(path).unwrap_or(0);
    Bytes(sectors.saturating_mul(SECTOR))
}

fn flag(path: &Path) -> Option<bool> {
    number::<u32>(path).map(|value| value != 0)
}

/// The selected word, in brackets, of a line like `none [mq-deadline] kyber`; a single word without brackets is
/// selected.
fn chosen(schedulers: &str) -> Option<String> {
    let bracketed = schedulers
        .split_once('[')
        .and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    let lone = || {
        let mut words = schedulers.split_whitespace();
        words
            .next()
            .filter(|word| !word.contains('[') && words.next().is_none())
    };
    bracketed.or_else(lone).map(str::to_owned)
}

/// Kind of a device, and the name of its disk if it is a partition. The disk's number is not known yet; [`link`] adds
/// it.
fn kind_of(folder: &Path, sysfs_name: &str) -> (BlockDeviceKind, Option<String>) {
    if let Some(number) = number(&folder.join("partition")) {
        let unknown = DeviceNumber::new(0, 0);
        return (
            BlockDeviceKind::Partition {
                of: unknown,
                number,
            },
            disk_of(folder),
        );
    }
    let kind = if folder.join("dm").is_dir() {
        BlockDeviceKind::Mapper {
            name: attribute(&folder.join("dm/name")),
            uuid: attribute(&folder.join("dm/uuid")),
        }
    } else if folder.join("md").is_dir() {
        BlockDeviceKind::Raid {
            level: attribute(&folder.join("md/level")).map(MdLevel::from),
            disks: number(&folder.join("md/raid_disks")),
            uuid: attribute(&folder.join("md/uuid")),
        }
    } else if has_number_after(sysfs_name, "loop") {
        BlockDeviceKind::Loop {
            backing_file: path_attribute(&folder.join("loop/backing_file")),
            backing_device: None,
        }
    } else if has_number_after(sysfs_name, "zram") || has_number_after(sysfs_name, "ram") {
        BlockDeviceKind::Ram
    } else {
        BlockDeviceKind::Disk
    };
    (kind, None)
}

fn has_number_after(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The folder of a partition is inside that of its disk, after the link in `class/block` is resolved.
fn disk_of(folder: &Path) -> Option<String> {
    last_part(fs::canonicalize(folder).ok()?.parent()?)
}

/// The model's name: NVMe and SCSI have it in `model`, MMC in `name`. SCSI has a separate vendor; that of virtio and
/// PCI is a number, and libata's is always "ATA".
fn model_of(folder: &Path) -> Option<String> {
    let device = folder.join("device");
    let model = attribute(&device.join("model")).or_else(|| attribute(&device.join("name")))?;
    let vendor = attribute(&device.join("vendor"))
        .filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
    Some(match vendor {
        Some(vendor) => format!("{vendor} {model}"),
        None => model,
    })
}

/// Sets the disk of each partition, and copies the attributes that partitions share with their disk.
pub(super) fn link(found: Vec<RawDevice>) -> Vec<Device> {
    let disks: Vec<Device> = found.iter().map(|raw| raw.device.clone()).collect();
    found
        .into_iter()
        .map(|RawDevice { mut device, disk }| {
            let disk = disk.and_then(|name| disks.iter().find(|disk| disk.sysfs_name() == name));
            if let (Some(disk), BlockDeviceKind::Partition { of, .. }) = (disk, &mut device.kind) {
                *of = disk.number;
                inherit(&mut device, disk);
            }
            device
        })
        .collect()
}

fn inherit(partition: &mut Device, disk: &Device) {
    partition.removable = disk.removable;
    partition.model.clone_from(&disk.model);
    partition.serial.clone_from(&disk.serial);
    partition.wwid.clone_from(&disk.wwid);
    partition.rotational = disk.rotational;
    partition.scheduler.clone_from(&disk.scheduler);
    partition.read_ahead = disk.read_ahead;
    partition.write_cache.clone_from(&disk.write_cache);
    partition.logical_block = disk.logical_block;
    partition.physical_block = disk.physical_block;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheduler_is_the_one_in_brackets() {
        for (text, scheduler) in [
            ("none [mq-deadline] kyber bfq", Some("mq-deadline")),
            ("[none] mq-deadline", Some("none")),
            ("none", Some("none")),
            ("a b", None),
            ("[", None),
        ] {
            assert_eq!(chosen(text).as_deref(), scheduler, "{text}");
        }
    }

    #[test]
    fn names_tell_loop_and_memory_devices() {
        assert!(has_number_after("loop12", "loop"));
        assert!(!has_number_after("loopback", "loop"));
        assert!(!has_number_after("ram", "ram"));
    }

    proptest! {
        #[test]
        fn any_scheduler_text_is_read_or_refused(text: String) {
            let _ = chosen(&text);
        }
    }
}
