//! Zeroing of a range of a block device by the device itself, without sending the zeros.
//!
//! It uses fallocate(2) on the device. The ioctls are less suitable: after `BLKDISCARD` the range may read as anything
//! (since Linux 4.12 no device promises zeros), and `BLKZEROOUT` does not report whether the device did it or the
//! kernel wrote zeros itself (both in block/ioctl.c). With the modes used here the range reads as zeros afterwards,
//! whatever the device does inside (block/fops.c, `blkdev_fallocate`).

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::{FallocateFlags, fallocate};

use crate::block::Device;
use crate::root::{Root, number};

/// Request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The range reads as zeros afterwards, and the device may deallocate it (`FALLOC_FL_PUNCH_HOLE`, which the kernel
    /// never turns into writes).
    Discard,
    /// The range reads as zeros afterwards, and stays allocated (`FALLOC_FL_ZERO_RANGE`). If the device refuses, the
    /// kernel writes zeros.
    WriteZeroes,
}

/// True if the device supports such requests: `queue/write_zeroes_max_bytes` is not zero
/// (Documentation/ABI/stable/sysfs-block). A partition has the queue of its disk.
pub fn is_offered(root: &Root, device: &Device) -> bool {
    takes(root, device, "write_zeroes_max_bytes")
}

/// True if the device supports discards (`BLKDISCARD`), after which blocks may read as anything:
/// `queue/discard_max_bytes` is not zero.
pub fn takes_discards(root: &Root, device: &Device) -> bool {
    takes(root, device, "discard_max_bytes")
}

/// True if this limit of the device's queue is not zero.
fn takes(root: &Root, device: &Device, limit: &str) -> bool {
    let folder = root.sys.join("class/block").join(device.sysfs_name());
    ["queue", "../queue"]
        .iter()
        .any(|queue| number::<u64>(&folder.join(queue).join(limit)).is_some_and(|most| most > 0))
}

/// Zeroes a range of a device that is open for writing. It returns when the device has completed the request, and no
/// signal interrupts it: use short ranges.
///
/// # Errors
/// The kernel's error: `EOPNOTSUPP` if the device does not support the request, `EINVAL` if the range is not a
/// multiple of logical blocks, `EIO` if the device failed.
pub fn zero(file: &File, how: Offload, range: Range<u64>) -> io::Result<()> {
    let mode = match how {
        Offload::Discard => FallocateFlags::PUNCH_HOLE,
        Offload::WriteZeroes => FallocateFlags::ZERO_RANGE,
    };
    let length = range.end.saturating_sub(range.start);
    loop {
        let result = fallocate(file, mode | FallocateFlags::KEEP_SIZE, range.start, length);
        if result != Err(rustix::io::Errno::INTR) {
            return Ok(result?);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};

    use super::*;
    use crate::block::Devices;

    #[test]
    fn a_range_reads_as_zeros_its_neighbours_stay_and_only_a_discard_gives_room_back() {
        for how in [Offload::Discard, Offload::WriteZeroes] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![7; 1 << 20]).unwrap();
            file.sync_all().unwrap();
            let before = file.metadata().unwrap().blocks();
            match zero(&file, how, 64 << 10..128 << 10) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
                result => result.unwrap(),
            }
            let mut read = vec![1; 1 << 20];
            file.read_exact_at(&mut read, 0).unwrap();
            let zeroed = |at: usize| (64 << 10..128 << 10).contains(&at);
            assert!((0..1 << 20).all(|at| (read[at] == 0) == zeroed(at)));
            let given_back = file.metadata().unwrap().blocks() < before;
            assert_eq!(given_back, how == Offload::Discard);
        }
    }

    #[test]
    fn offload_of_a_device_is_read_from_its_queue_and_a_partition_has_its_disks() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let class = root.sys.join("class/block");
        let disk = root.sys.join("devices/sda");
        fs::create_dir_all(&class).unwrap();
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        fs::write(disk.join("sda1/dev"), "8:1\n").unwrap();
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        symlink(&disk, class.join("sda")).unwrap();
        symlink(disk.join("sda1"), class.join("sda1")).unwrap();
        let offered = || {
            let devices = Devices::read(&root).unwrap();
            ["sda", "sda1"].map(|name| is_offered(&root, devices.named(name).unwrap()))
        };
        assert_eq!(offered(), [false; 2]);
        fs::write(disk.join("queue/write_zeroes_max_bytes"), "0\n").unwrap();
        assert_eq!(offered(), [false; 2]);
        fs::write(disk.join("queue/write_zeroes_max_bytes"), "33553920\n").unwrap();
        assert_eq!(offered(), [true; 2]);
        let devices = Devices::read(&root).unwrap();
        let discards =
            || ["sda", "sda1"].map(|name| takes_discards(&root, devices.named(name).unwrap()));
        assert_eq!(discards(), [false; 2]);
        fs::write(disk.join("queue/discard_max_bytes"), "4294966784\n").unwrap();
        assert_eq!(discards(), [true; 2]);
    }
}
