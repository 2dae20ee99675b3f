//! Character devices that pass a program's commands to a disk, past its block device: SCSI's `sg` and `bsg`, NVMe's
//! `ng` (linux, Documentation/scsi/scsi-generic.rst; drivers/nvme/host/ioctl.c).

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use super::identity::Storage;
use crate::block::{DeviceNumber, Devices};
use crate::root::{Root, attribute, names_in};

/// Classes of such devices in sysfs.
const SCSI: [&str; 2] = ["scsi_generic", "bsg"];
const NVME: &str = "nvme-generic";

/// The character devices, each with the disk that its commands go to.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandDevices(Vec<(DeviceNumber, DeviceNumber)>);

impl CommandDevices {
    pub(super) fn read(root: &Root, devices: &Devices) -> CommandDevices {
        let mut found = Vec::new();
        let mut add = |folder: &Path, disk: &str| {
            let number = attribute(&folder.join("dev")).and_then(|text| text.parse().ok());
            let disk = devices.named(disk).map(|disk| disk.number);
            found.extend(number.zip(disk));
        };
        let class = root.sys.join("class");
        // A class that cannot be listed has no device that could be found.
        let names = |folder: &Path| names_in(folder).unwrap_or_default();
        for folder in SCSI.map(|name| class.join(name)) {
            for own in names(&folder).iter().map(|name| folder.join(name)) {
                for disk in names(&own.join("device/block")) {
                    add(&own, &disk.to_string_lossy());
                }
            }
        }
        for name in names(&class.join(NVME)) {
            // ng1n2 is the namespace of nvme1n2.
            if let Some(rest) = name.to_string_lossy().strip_prefix("ng") {
                add(&class.join(NVME).join(&name), &format!("nvme{rest}"));
            }
        }
        CommandDevices(found)
    }

    /// The storage behind a path or descriptor, also of a device that only passes commands on.
    pub(super) fn storage(&self, metadata: &Metadata) -> Option<Storage> {
        if !metadata.file_type().is_char_device() {
            return Storage::of(metadata);
        }
        let number = DeviceNumber::from_raw(metadata.rdev());
        let of_it = self.0.iter().find(|(device, _)| *device == number);
        of_it.map(|(_, disk)| Storage::Device(*disk))
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::{self, ProgramUse};
    use super::*;
    use std::fs;

    /// Character devices that every machine has stand for those of disks: `null`, `zero` and `full`.
    #[test]
    fn a_program_that_may_send_commands_to_a_disk_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (disk, number) in [("sda", "8:0"), ("sdb", "8:16"), ("nvme1n2", "259:3")] {
            write(&format!("sys/class/block/{disk}/dev"), number);
            write(&format!("sys/class/block/{disk}/size"), "2048");
        }
        write("sys/class/scsi_generic/sg0/dev", "1:3\n");
        write("sys/class/scsi_generic/sg0/device/block/sda/dev", "8:0\n");
        write("sys/class/bsg/0:0:1:0/dev", "1:5\n");
        write("sys/class/bsg/0:0:1:0/device/block/sdb/dev", "8:16\n");
        write("sys/class/nvme-generic/ng1n2/dev", "1:7\n");
        for (pid, node, flags) in [
            (4_194_401, "null", "0100002"),
            (4_194_402, "zero", "0100001"),
            (4_194_403, "full", "0100002"),
            (4_194_404, "null", "0100000"),
            (4_194_405, "tty", "0100002"),
        ] {
            write(&format!("proc/{pid}/comm"), "dump");
            write(
                &format!("proc/{pid}/fdinfo/3"),
                &format!("flags:\t{flags}\n"),
            );
            let fd = folder.path().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&fd).unwrap();
            std::os::unix::fs::symlink(format!("/dev/{node}"), fd.join("3")).unwrap();
        }
        let root = Root::under(folder.path());
        let devices = Devices::read(&root).unwrap();
        let commands = CommandDevices::read(&root, &devices);
        for (disk, pid) in [
            ("sda", 4_194_401),
            ("sdb", 4_194_402),
            ("nvme1n2", 4_194_403),
        ] {
            let disk = Storage::Device(devices.named(disk).unwrap().number);
            let found = programs::using(&root, &commands, disk, &[disk])
                .unwrap()
                .found;
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.pid, one.hold, one.storage))
                .collect();
            assert_eq!(found, [(pid, ProgramUse::Writing, disk)]);
        }
    }
}
