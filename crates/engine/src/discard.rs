//! Discards. A block device has an operation for them; fallocate(2) with FALLOC_FL_PUNCH_HOLE is a different one
//! there, which writes zeroes (block/fops.c, `blkdev_fallocate`). In a file fallocate deallocates the blocks.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;

use io_uring::{opcode, squeue, types};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// BLKDISCARD (include/uapi/linux/fs.h).
const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
/// BLOCK_URING_CMD_DISCARD, `_IO(0x12, 0)` (include/uapi/linux/blkdev.h).
const URING_DISCARD: u32 = 0x1200;

/// True for a block device.
pub(crate) fn is_device(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// True if a ring supports discards of block devices on this kernel, as since Linux 6.12. A probe cannot detect it:
/// kernels before 5.19 and from 6.12 on both answer EINVAL.
pub(crate) fn ring_takes_devices() -> bool {
    let uname = rustix::system::uname();
    is_since_6_12(&uname.release().to_string_lossy())
}

fn is_since_6_12(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|digits| digits.parse::<u32>().ok());
    (next(), next()) >= (Some(6), Some(12))
}

/// Discards a range, and waits for its completion.
pub(crate) fn discard(file: &File, offset: u64, bytes: u32) -> Result<(), Errno> {
    if is_device(file) {
        return of_device(file.as_fd(), offset, bytes);
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, hole, offset, u64::from(bytes))
}

/// Discards a range of a block device.
#[allow(unsafe_code)]
pub(crate) fn of_device(device: BorrowedFd<'_>, offset: u64, bytes: u32) -> Result<(), Errno> {
    let mut range = [offset, u64::from(bytes)];
    // SAFETY: BLKDISCARD reads two numbers of 64 bits, the start and the length in bytes (block/ioctl.c), and
    // returns 0.
    unsafe {
        rustix::ioctl::ioctl(
            device,
            rustix::ioctl::Updater::<BLKDISCARD, [u64; 2]>::new(&mut range),
        )
    }
}

/// A discard of a range as an entry of a ring.
pub(crate) fn entry(file: types::Fixed, is_device: bool, offset: u64, bytes: u32) -> squeue::Entry {
    if !is_device {
        return opcode::Fallocate::new(file, u64::from(bytes))
            .offset(offset)
            .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            .build();
    }
    // The kernel reads the length where the command's own bytes begin (block/ioctl.c, `blkdev_uring_cmd`).
    let mut command = [0; 16];
    command[..8].copy_from_slice(&u64::from(bytes).to_ne_bytes());
    opcode::UringCmd16::new(file, URING_DISCARD)
        .addr(Some(offset))
        .cmd(command)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for old in ["5.15.0-91-generic", "6.1.0-13-amd64", "6.11.9", "", "x"] {
            assert!(!is_since_6_12(old), "{old}");
        }
        for new in ["6.12.0", "6.18-rc1", "7.0.3"] {
            assert!(is_since_6_12(new), "{new}");
        }
    }
}
