//! The volume that is read, and its key in the ledger.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use job::Resumable;
use linux::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use linux::consent::{ReadTarget, open_for_reading};
use linux::ebs::VolumeCounters;
use linux::root::number;
use linux::{Root, process};
use record::Bytes;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// Identity of a disk's attachment: it is unique, and changes when the disk is detached and attached again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskAttachment {
    /// Id of the host's boot.
    pub boot: String,
    /// Sequence number of the disk among all that were attached since the boot.
    pub diskseq: u64,
}

/// Key of a volume in the ledger. Its kind decides which earlier work may be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeKey {
    /// The id of an EBS volume. It is never reused, and the content comes from a snapshot only once, so that blocks
    /// that were read stay warm forever.
    Ebs(String),
    /// A globally unique name. The content may be restored again under the same name: interrupted work is continued,
    /// finished work is trusted only while the disk stays attached.
    Unique(String, Option<DiskAttachment>),
    /// Only its path, which another volume may have later. Work is continued only while the same disk stays attached,
    /// if the kernel reports the attachment.
    Path(String, Option<DiskAttachment>),
}

impl VolumeKey {
    /// The key as text, as it is stored in the ledger.
    pub fn text(&self) -> &str {
        match self {
            VolumeKey::Ebs(text) | VolumeKey::Unique(text, _) | VolumeKey::Path(text, _) => text,
        }
    }

    /// The attachment, if the name alone is not sufficient.
    pub fn attached(&self) -> Option<&DiskAttachment> {
        match self {
            VolumeKey::Unique(_, attached) | VolumeKey::Path(_, attached) => attached.as_ref(),
            VolumeKey::Ebs(_) => None,
        }
    }

    /// Conditions under which interrupted work can be resumed.
    pub fn resumable(&self) -> Resumable {
        match self {
            VolumeKey::Ebs(_) | VolumeKey::Unique(..) => Resumable::Anywhere,
            VolumeKey::Path(_, Some(_)) => Resumable::WhileAttached,
            VolumeKey::Path(_, None) => Resumable::Never,
        }
    }
}

/// Reason why a device cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The path names a file instead of a device; this is its name.
    File(String),
    /// Another reason, as a sentence.
    Other(String),
}

/// A volume that can be read.
pub struct Volume {
    /// The path as it was given.
    pub path: PathBuf,
    /// The device.
    pub device: Device,
    /// The whole disk if the device is a partition; otherwise the device itself.
    pub disk: Device,
    /// Its size when it was opened, rounded down to whole logical blocks: bytes after the last one cannot be requested.
    pub size: Bytes,
    /// Key of the volume in the ledger.
    pub key: VolumeKey,
    target: ReadTarget,
}

impl Volume {
    /// Opens the device at a path.
    ///
    /// # Errors
    /// When the path is not a readable device.
    pub fn open(path: &Path, devices: &Devices, root: &Root) -> Result<Volume, OpenError> {
        let target = open_for_reading(path).map_err(|error| OpenError::Other(error.to_string()))?;
        let shown = path.display();
        let number = target
            .device
            .ok_or_else(|| OpenError::File(shown.to_string()))?;
        let device = devices.get(number).ok_or_else(|| {
            OpenError::Other(format!(
                "the kernel does not list the device {number} of {shown}; it may just have been removed"
            ))
        })?;
        if target.size.0 == 0 {
            return Err(OpenError::Other(format!(
                "{shown} has no size: there is nothing to read"
            )));
        }
        Ok(Volume {
            path: path.to_path_buf(),
            key: key(device, devices, root),
            size: target.size.round_down(logical_block(device)),
            disk: device
                .partition_of()
                .and_then(|disk| devices.get(disk))
                .unwrap_or(device)
                .clone(),
            device: device.clone(),
            target,
        })
    }

    /// The device's number.
    pub fn number(&self) -> DeviceNumber {
        self.device.number
    }

    /// True if it reports itself as an EBS volume, as on instances of the Nitro system (EC2 User Guide, "Amazon EBS
    /// volumes and NVMe").
    pub fn is_ebs(&self) -> bool {
        is_ebs(&self.device)
    }

    /// The volume's own counters; `None` unless it is a whole EBS volume that reports them.
    pub fn own_counters(&self) -> Option<VolumeCounters> {
        let asks = self.is_ebs() && self.device.partition_of().is_none();
        asks.then(|| VolumeCounters::read(&self.target.file).ok())?
    }

    /// A descriptor for direct I/O.
    ///
    /// # Errors
    /// When the kernel refuses direct I/O.
    pub fn direct(&self) -> io::Result<File> {
        self.target.reopen(OFlags::DIRECT)
    }

    /// The present size; `None` if the device was removed.
    pub fn size_if_there(&self, root: &Root) -> Option<Bytes> {
        let name = self.device.sysfs_name();
        let listed = root.sys.join("class/block").join(name).exists();
        let size = self.size_now().ok();
        size.filter(|size| listed && size.0 > 0)
    }

    /// The present size, in whole logical blocks.
    ///
    /// # Errors
    /// When the device was removed.
    pub fn size_now(&self) -> io::Result<Bytes> {
        let end = rustix::fs::seek(&self.target.file, rustix::fs::SeekFrom::End(0))?;
        Ok(Bytes(end).round_down(logical_block(&self.device)))
    }
}

/// Logical block size: the alignment of requests.
fn logical_block(device: &Device) -> Bytes {
    device.logical_block.unwrap_or(Bytes(512))
}

/// True if a device reports itself as an EBS volume.
pub fn is_ebs(device: &Device) -> bool {
    let model = device.model.as_deref().unwrap_or_default();
    model.trim() == "Amazon Elastic Block Store"
}

/// Key of a volume. A serial number alone is not a key: that of NVMe is the controller's, which several disks of a
/// host share, and many virtual disks have the same one on all hosts.
fn key(device: &Device, devices: &Devices, root: &Root) -> VolumeKey {
    let of_part = |name: &str| match device.kind {
        BlockDeviceKind::Partition { number, .. } => format!("{name} part {number}"),
        _ => name.to_owned(),
    };
    let serial = device.serial.as_deref().map(str::trim);
    if let Some(id) = serial.filter(|serial| is_ebs(device) && serial.starts_with("vol")) {
        return VolumeKey::Ebs(of_part(id));
    }
    match device.wwid.as_deref().map(str::trim) {
        Some(wwid) if is_unique(wwid) => {
            VolumeKey::Unique(of_part(wwid), attached(device, devices, root))
        }
        _ => VolumeKey::Path(path_key(device), attached(device, devices, root)),
    }
}

/// True if a disk's WWID is globally unique. It is not if Linux makes it from the controller's serial number, for a
/// namespace without an identifier (`nvme_ns_wwid_show` in drivers/nvme/host/sysfs.c), or if it is a vendor-specific
/// text (SPC-4, 7.8.6.4), which for virtual disks is the same on every host.
fn is_unique(wwid: &str) -> bool {
    ["uuid.", "eui.", "naa."].iter().any(|kind| {
        let rest = wwid.strip_prefix(kind);
        rest.is_some_and(|rest| rest.bytes().any(|byte| !b"0-".contains(&byte)))
    })
}

/// Attachment of a disk: its sequence number among all media since the boot, which is unique (`diskseq` in Linux,
/// Documentation/ABI/stable/sysfs-block, since 5.15).
fn attached(device: &Device, devices: &Devices, root: &Root) -> Option<DiskAttachment> {
    let disk = match device.partition_of() {
        Some(disk) => devices.get(disk)?,
        None => device,
    };
    let folder = root.sys.join("class/block").join(disk.sysfs_name());
    Some(DiskAttachment {
        boot: process::boot_id(root).ok()?,
        diskseq: number(&folder.join("diskseq"))?,
    })
}

/// Key of a device without a unique name.
fn path_key(device: &Device) -> String {
    let node = device.node().display().to_string();
    match &device.kind {
        BlockDeviceKind::Loop {
            backing_file: Some(file),
            ..
        } => format!("{node} on {}", file.display()),
        _ => node,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A host with these disks: name, model, serial number and WWID.
    fn host(disks: &[(&str, &str, &str, Option<&str>)]) -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        for (index, (name, model, serial, wwid)) in disks.iter().enumerate() {
            let folder = root.sys.join("class/block").join(name);
            fs::create_dir_all(folder.join("device")).unwrap();
            fs::create_dir_all(folder.join("queue")).unwrap();
            let put = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
            put("dev", &format!("259:{index}\n"));
            put("size", "2048\n");
            put("diskseq", &format!("{}\n", index + 1));
            put("device/model", model);
            put("device/serial", serial);
            if let Some(wwid) = wwid {
                put("wwid", wwid);
            }
        }
        let boot = root.proc.join("sys/kernel/random");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("boot_id"), "b\n").unwrap();
        (place, root)
    }

    #[test]
    fn a_serial_number_that_disks_share_names_none_of_them() {
        let (azure, ebs) = ("MSFT NVMe Accelerator v1.0", "Amazon Elastic Block Store");
        let made_up = "nvme.1414-534e3a20303030303031-4d534654-00000002";
        let (_place, root) = host(&[
            ("nvme0n2", azure, "SN: 000001", Some(made_up)),
            ("nvme0n3", azure, "SN: 000001", None),
            ("nvme1n1", ebs, "vol0123456789abcdef0", None),
            ("nvme2n1", ebs, "AWS6D2", None),
            (
                "sda",
                "QEMU HARDDISK",
                "drive-scsi0",
                Some("t10.QEMU drive-scsi0"),
            ),
            ("sdb", "PersistentDisk", "x", Some("naa.600508b1001c")),
            ("sdc", "Blank", "x", Some("eui.0000000000000000")),
        ]);
        let devices = Devices::read(&root).unwrap();
        let key = |name: &str| {
            let device = devices.iter().find(|device| device.name == name).unwrap();
            key(device, &devices, &root)
        };
        for name in ["nvme0n2", "nvme0n3", "nvme2n1", "sda", "sdc"] {
            let VolumeKey::Path(path, Some(attached)) = key(name) else {
                panic!("{name}: {:?}", key(name));
            };
            assert_eq!(path, format!("/dev/{name}"));
            assert_eq!(attached.boot, "b");
        }
        assert_ne!(key("nvme0n2").attached(), key("nvme0n3").attached());
        assert_eq!(
            key("nvme1n1"),
            VolumeKey::Ebs("vol0123456789abcdef0".to_owned())
        );
        let attached = key("nvme0n2").attached().cloned();
        let sdb = attached.map(|one| DiskAttachment { diskseq: 6, ..one });
        assert_eq!(
            key("sdb"),
            VolumeKey::Unique("naa.600508b1001c".to_owned(), sdb)
        );
        // Before 5.15 the kernel had no diskseq.
        assert_eq!(key("sda").resumable(), Resumable::WhileAttached);
        fs::remove_file(root.sys.join("class/block/sda/diskseq")).unwrap();
        assert_eq!(key("sda"), VolumeKey::Path("/dev/sda".to_owned(), None));
        assert_eq!(key("sda").resumable(), Resumable::Never);
    }
}
