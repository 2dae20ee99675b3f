//! Positions of a file's data on its file system's device.

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};

use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use super::{Extent, ExtentsError, Sync, walk};
use crate::space;

/// A contiguous range of a file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedExtent {
    /// Start in the file, in bytes.
    pub logical: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Position of the range.
    pub place: ExtentLocation,
    /// True if other files, or snapshots, have the same blocks.
    pub shared: bool,
    /// True if the blocks hold the file's bytes encrypted or compressed.
    pub encoded: bool,
}

/// Position of a range of a file. Ranges are bytes of the file system's device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtentLocation {
    /// Blocks of this file alone, which a read of the file reads.
    Written(Range<u64>),
    /// Blocks that are allocated and were never written. A read of the file returns zeros without reading them.
    Unwritten(Range<u64>),
    /// A block that also contains other data, such as an inode: part of the metadata.
    Unaligned,
    /// Data that is only in memory, or has no reported position.
    Nowhere,
}

impl LocatedExtent {
    /// The bytes of the device that a read of this range of the file reads. Unwritten blocks are not included: they
    /// are allocated space, no more urgent than any other.
    pub fn on_device(&self) -> Option<Range<u64>> {
        match &self.place {
            ExtentLocation::Written(range) => Some(range.clone()),
            ExtentLocation::Unwritten(_) | ExtentLocation::Unaligned | ExtentLocation::Nowhere => {
                None
            }
        }
    }
}

impl From<Extent> for LocatedExtent {
    fn from(extent: Extent) -> LocatedExtent {
        let flags = extent.flags;
        let range = extent.physical..extent.physical.saturating_add(extent.length);
        let place = if flags.is_unknown() || flags.is_delayed() {
            ExtentLocation::Nowhere
        } else if flags.is_unaligned() {
            ExtentLocation::Unaligned
        } else if flags.is_unwritten() {
            ExtentLocation::Unwritten(range)
        } else {
            ExtentLocation::Written(range)
        };
        LocatedExtent {
            logical: extent.logical,
            length: extent.length,
            place,
            shared: flags.is_shared(),
            encoded: flags.is_encoded(),
        }
    }
}

/// Reason why the position of a file's data on the device of its file system cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum LocationUnknown {
    /// The file system, or this kind of file, has no FIEMAP.
    #[error("the file system does not list the places of this file's data")]
    NoMap,
    /// The file system reports positions, but not as offsets on the one device that it is mounted from.
    #[error(
        "the places that this type of file system ({0:#x}) lists are not offsets on its device; \
         those of ext4 and XFS are"
    )]
    OtherPlaces(u32),
    /// The file is on the realtime device of an XFS, which is not the device that it is mounted from.
    #[error("the file's data is on the realtime device of its file system")]
    Realtime,
    /// The kind of file system or file could not be read.
    #[error("the kind of the file could not be read: {0}")]
    Kind(#[source] io::Error),
    /// The kernel failed to list the extents.
    #[error(transparent)]
    Failed(#[from] ExtentsError),
}

/// Calls `each` for every range of a file that is allocated or only in memory, in order, until it breaks; holes are
/// not listed.
///
/// A file may have millions of extents: one batch of 256 is held at a time, and each batch continues where the one
/// before ended. A file that changes meanwhile may thus be listed in a state that it never had (linux,
/// Documentation/filesystems/fiemap.rst; include/uapi/linux/fiemap.h).
///
/// Nothing is written back first: FIEMAP_FLAG_SYNC would write to the disk whose state is examined, once a file, and
/// data without a position was not on the disk anyway.
///
/// Supported are ext2, ext3, ext4 and XFS, whose positions are offsets on the device that they are mounted from.
/// Others need not be: btrfs reports logical addresses that its chunk tree maps to devices, F2FS and bcachefs number
/// several devices continuously, and network file systems pass on what their servers report.
///
/// # Errors
/// When the positions cannot be determined, or the kernel fails to list them.
pub fn placed(
    file: &File,
    mut each: impl FnMut(LocatedExtent) -> ControlFlow<()>,
) -> Result<(), LocationUnknown> {
    let kind = space::of_file(file).map_err(LocationUnknown::Kind)?;
    match kind.magic {
        EXT => {}
        XFS => {
            if is_realtime(file)? {
                return Err(LocationUnknown::Realtime);
            }
        }
        other => return Err(LocationUnknown::OtherPlaces(other)),
    }
    let known = walk(file, 0..u64::MAX, Sync::Never, |extent| each(extent.into()))?;
    known.then_some(()).ok_or(LocationUnknown::NoMap)
}

/// The magic numbers of ext2 to ext4, and of XFS (include/uapi/linux/magic.h).
const EXT: u32 = 0xEF53;
const XFS: u32 = 0x5846_5342;

/// struct fsxattr (include/uapi/linux/fs.h).
#[repr(C)]
struct RawAttributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    pad: [u8; 8],
}

/// FS_IOC_FSGETXATTR is `_IOR('X', 31, struct fsxattr)`.
const FS_IOC_FSGETXATTR: Opcode = opcode::read::<RawAttributes>(b'X', 31);
const FS_XFLAG_REALTIME: u32 = 1;

/// True if a file of an XFS has its data on the realtime device.
fn is_realtime(file: &File) -> Result<bool, LocationUnknown> {
    // SAFETY: the opcode is FS_IOC_FSGETXATTR, which writes one struct fsxattr. `RawAttributes` is
    // laid out so, and is made of integers, for which any bytes are valid.
    let answer = unsafe { ioctl(file, Getter::<FS_IOC_FSGETXATTR, RawAttributes>::new()) };
    let attributes = answer.map_err(|error: Errno| LocationUnknown::Kind(error.into()))?;
    Ok(attributes.flags & FS_XFLAG_REALTIME != 0)
}

#[cfg(test)]
mod tests {
    use super::super::Flags;
    use super::*;

    fn of_flags(flags: u32) -> LocatedExtent {
        LocatedExtent::from(Extent {
            logical: 0,
            physical: 4096,
            length: 8192,
            flags: Flags(flags),
        })
    }

    #[test]
    fn only_what_was_written_in_blocks_of_its_own_is_read() {
        // The numbers are those of include/uapi/linux/fiemap.h.
        for (flags, place) in [
            (0x0, ExtentLocation::Written(4096..12288)),
            (0x1, ExtentLocation::Written(4096..12288)),
            (0x1000, ExtentLocation::Written(4096..12288)),
            (0x800, ExtentLocation::Unwritten(4096..12288)),
            (0x2, ExtentLocation::Nowhere),
            (0x6, ExtentLocation::Nowhere),
            // XFS and ext4 mark delayed data as unwritten.
            (0x806, ExtentLocation::Nowhere),
            (0x300, ExtentLocation::Unaligned),
            (0x500, ExtentLocation::Unaligned),
        ] {
            let found = of_flags(flags);
            assert_eq!(found.place, place, "{flags:#x}");
            let read = matches!(place, ExtentLocation::Written(_)).then_some(4096..12288);
            assert_eq!(found.on_device(), read, "{flags:#x}");
        }
    }

    #[test]
    fn shared_and_encoded_blocks_are_marked_and_read() {
        assert!(of_flags(0x2000).shared && !of_flags(0x2000).encoded);
        assert!(of_flags(0x8).encoded && of_flags(0x80).encoded);
        assert!(of_flags(0x2088).on_device().is_some());
    }

    #[test]
    fn a_file_system_without_a_device_is_refused_by_its_type() {
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else {
            skip::skipped("no /dev/shm");
            return;
        };
        let error = placed(&file, |_| ControlFlow::Continue(())).unwrap_err();
        assert!(
            matches!(error, LocationUnknown::OtherPlaces(0x0102_1994)),
            "{error}"
        );
        assert!(error.to_string().contains("(0x1021994)"), "{error}");
    }

    #[test]
    fn the_request_number_is_the_kernels() {
        // _IOR('X', 31, struct fsxattr) on x86-64 and aarch64.
        assert_eq!(FS_IOC_FSGETXATTR, 0x801C_581F);
    }
}
