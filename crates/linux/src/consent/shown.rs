//! The storage that a loop device shows: a file by its inode, a device by its number.

// The ioctl is not among those that rustix wraps.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};

use super::programs::Storage;
use crate::block::DevNum;

/// `LOOP_GET_STATUS64` (linux, include/uapi/linux/loop.h).
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;

/// `struct loop_info64`. Only its beginning is of interest here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    /// `st_rdev` of what is shown: zero for a file.
    shown_device: u64,
    /// Offsets, flags, names and keys.
    rest: [u64; 26],
}

/// The storage behind a loop device. Unlike the path in sysfs it holds in every mount namespace, for a
/// file whose name was removed, and for a device under whichever node it was attached.
///
/// # Errors
/// `ENXIO` where the device is not in use, and others where it is no loop device.
pub(super) fn storage_shown_by(device: &File) -> Result<Storage, Errno> {
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64` of 232 bytes to its argument, and
    // LoopInfo has that size and alignment, and no invalid values. Another driver that gives this
    // number a meaning is kept out by the caller, who passes devices of the loop driver only.
    let info = unsafe {
        let getter = Getter::<LOOP_GET_STATUS64, LoopInfo>::new();
        ioctl(device.as_fd(), getter)
    };
    info.map(|info| match info.shown_device {
        0 => Storage::File(info.device, info.inode),
        number => Storage::Device(DevNum::from_raw(number)),
    })
}

const _: () = assert!(size_of::<LoopInfo>() == 232);
