//! Which file a loop device shows, by its inode.

// The ioctl is not among those that rustix wraps.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, ioctl};

/// `LOOP_GET_STATUS64` (linux, include/uapi/linux/loop.h).
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;

/// `struct loop_info64`. Only its beginning is of interest here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    /// Offsets, flags, names and keys.
    rest: [u64; 27],
}

/// The `st_dev` and `st_ino` of the file behind a loop device. Unlike the path in sysfs they hold
/// in every mount namespace, and for a file whose name was removed. `None` where the device is not
/// in use, or is no loop device.
pub(super) fn file_shown_by(device: &File) -> Option<(u64, u64)> {
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64` of 232 bytes to its argument, and
    // LoopInfo has that size and alignment, and no invalid values. Another driver that gives this
    // number a meaning is kept out by the caller, who passes devices of the loop driver only.
    let info = unsafe {
        let getter = Getter::<LOOP_GET_STATUS64, LoopInfo>::new();
        ioctl(device.as_fd(), getter)
    };
    info.ok().map(|info| (info.device, info.inode))
}

const _: () = assert!(size_of::<LoopInfo>() == 232);
