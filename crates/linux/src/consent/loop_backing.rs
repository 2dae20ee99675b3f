//! The storage that a loop device shows: a file by its inode, a device by its number.

// The ioctl is not among those that rustix wraps.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};

use super::identity::Storage;
use crate::block::{Device, DeviceNumber, Devices};
use crate::root::{self, Root};

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
fn storage_shown_by(device: &File) -> Result<Storage, Errno> {
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64` of 232 bytes to its argument, and
    // LoopInfo has that size and alignment, and no invalid values. Another driver that gives this
    // number a meaning is kept out by the caller, who passes devices of the loop driver only.
    let info = unsafe {
        let getter = Getter::<LOOP_GET_STATUS64, LoopInfo>::new();
        ioctl(device.as_fd(), getter)
    };
    info.map(|info| match info.shown_device {
        0 => Storage::File(info.device, info.inode),
        number => Storage::Device(DeviceNumber::from_raw(number)),
    })
}

const _: () = assert!(size_of::<LoopInfo>() == 232);

/// The storage that each loop device in use shows, where that can be determined. Those that are not in use any more are
/// marked so.
pub(super) fn shown_by_loops(root: &Root, devices: &mut Devices) -> Vec<(DeviceNumber, Storage)> {
    let mut all = Vec::new();
    let mut free = Vec::new();
    for device in devices.iter() {
        let Some(path) = device.backing_file() else {
            continue;
        };
        // The device itself knows best: the path is of the mount namespace in which it was made.
        let shown = match storage_of_loop(root, device) {
            Ok(shown) => Some(shown),
            Err(Errno::NXIO) => {
                free.push(device.number);
                continue;
            }
            Err(_) => found_at(root, device, path),
        };
        all.extend(shown.map(|shown| (device.number, shown)));
    }
    for number in free {
        devices.put_loop_free(number);
    }
    all
}

/// The storage at the path of a loop device's file, if that has the size that the loop device shows: in another
/// mount namespace the path may lead to another file.
fn found_at(root: &Root, device: &Device, path: &Path) -> Option<Storage> {
    let found = fs::metadata(root.locate(path)).ok()?;
    let folder = root.sys.join("class/block").join(device.sysfs_name());
    let number = |name| root::number::<u64>(&folder.join("loop").join(name));
    // Of a part of a file only the end of the part is known.
    let fits = match (number("offset")?, number("sizelimit")?) {
        (offset, 0) => found.len().saturating_sub(offset) / 512 * 512 == device.size.0,
        (offset, _) => found.len() >= offset.saturating_add(device.size.0),
    };
    match Storage::of(&found)? {
        file @ Storage::File(..) => fits.then_some(file),
        device @ Storage::Device(_) => Some(device),
    }
}

/// The storage that a loop device shows, read from the device itself, which only root may: `ENXIO` where it is not in
/// use.
fn storage_of_loop(root: &Root, device: &Device) -> Result<Storage, Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let node = File::open(root.locate(&device.node())).map_err(errno)?;
    let found = node.metadata().map_err(errno)?;
    match Storage::of(&found) == Some(Storage::Device(device.number)) {
        true => storage_shown_by(&node),
        false => Err(Errno::NODEV),
    }
}
