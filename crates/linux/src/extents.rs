//! Extents of a file on its disk, by FIEMAP.
//!
//! A read of a hole, or of an allocated extent that was never written, is served from memory; a figure that includes
//! such reads is not the disk's.
#![allow(unsafe_code)]

mod placed;

use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

pub use placed::{ExtentLocation, LocatedExtent, LocationUnknown, placed};

use crate::space::{self, FilesystemMedium};

/// The kernel's flags of an extent (include/uapi/linux/fiemap.h, FIEMAP_EXTENT_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    const LAST: u32 = 0x1;
    const UNKNOWN: u32 = 0x2;
    const DELALLOC: u32 = 0x4;
    const ENCODED: u32 = 0x8;
    const DATA_ENCRYPTED: u32 = 0x80;
    const NOT_ALIGNED: u32 = 0x100;
    const DATA_INLINE: u32 = 0x200;
    const DATA_TAIL: u32 = 0x400;
    const UNWRITTEN: u32 = 0x800;
    const SHARED: u32 = 0x2000;

    const fn any(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// True for the last extent of the file.
    pub const fn is_last(self) -> bool {
        self.any(Self::LAST)
    }

    /// True if its position on the disk is unknown.
    pub const fn is_unknown(self) -> bool {
        self.any(Self::UNKNOWN)
    }

    /// True if it is only in memory, and has no position on the disk yet.
    pub const fn is_delayed(self) -> bool {
        self.any(Self::DELALLOC)
    }

    /// True if it is compressed or encrypted: the bytes on the disk are not those that a reader gets.
    pub const fn is_encoded(self) -> bool {
        self.any(Self::ENCODED | Self::DATA_ENCRYPTED)
    }

    /// True if its blocks also contain other data: metadata, or the ends of other files. Its offsets need not be
    /// multiples of a block.
    pub const fn is_unaligned(self) -> bool {
        self.any(Self::NOT_ALIGNED | Self::DATA_INLINE | Self::DATA_TAIL)
    }

    /// True if it is allocated and was never written: it is read as zeros, without the disk.
    pub const fn is_unwritten(self) -> bool {
        self.any(Self::UNWRITTEN)
    }

    /// True if it is shared with another file or a snapshot: a write makes a copy.
    pub const fn is_shared(self) -> bool {
        self.any(Self::SHARED)
    }
}

/// A contiguous range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Start in the file, in bytes. It may begin before the range that was requested.
    pub logical: u64,
    /// Start on the file system's device, in bytes; meaningless if the flags include unknown, delayed or inline.
    pub physical: u64,
    /// Length, in bytes. It may end after the range that was requested.
    pub length: u64,
    /// The kernel's flags.
    pub flags: Flags,
}

/// An error of listing a file's extents.
#[derive(Debug, thiserror::Error)]
pub enum ExtentsError {
    /// The FIEMAP request failed. It first writes back dirty pages, so a full or failing disk shows here.
    #[error(
        "the kernel could not list the file's extents: {0}; if the disk is not full, look for its \
         errors in the kernel's log"
    )]
    Map(#[source] io::Error),
    /// SEEK_HOLE or SEEK_DATA failed.
    #[error("the kernel could not find the holes in the file: {0}")]
    Seek(#[source] io::Error),
    /// The file could not be examined.
    #[error("the size of the file could not be read: {0}")]
    Stat(#[source] io::Error),
    /// The file system returns extents that do not advance.
    #[error(
        "the file system lists an extent at byte {0} again and again; its extent map cannot be \
         trusted, so check it with its fsck"
    )]
    Stuck(u64),
}

/// The extents that overlap the `len` bytes from `start`, in order, without holes. `None` if the file system, or the
/// kind of file, does not support FIEMAP.
///
/// Dirty pages are written back first (FIEMAP_FLAG_SYNC), so that they have a position on the device.
///
/// # Errors
/// When the kernel fails to list them; missing support is not an error.
pub fn map(file: &File, start: u64, len: u64) -> Result<Option<Vec<Extent>>, ExtentsError> {
    let mut extents = Vec::new();
    let known = walk(
        file,
        start..start.saturating_add(len),
        Sync::First,
        |extent| {
            extents.push(extent);
            ControlFlow::Continue(())
        },
    )?;
    Ok(known.then_some(extents))
}

/// The extents of a whole file that already have a position: nothing is written back, so that the call costs no I/O.
/// `None` without FIEMAP.
///
/// # Errors
/// As [`map`].
pub fn map_placed(file: &File) -> Result<Option<Vec<Extent>>, ExtentsError> {
    let mut extents = Vec::new();
    let known = walk(file, 0..u64::MAX, Sync::Never, |extent| {
        let flags = extent.flags;
        if !flags.is_unknown() && !flags.is_delayed() && !flags.is_unaligned() {
            extents.push(extent);
        }
        ControlFlow::Continue(())
    })?;
    Ok(known.then_some(extents))
}

/// The share (0 to 1) of the first `len` bytes of a regular file that is a hole, is beyond its end, or was allocated
/// and never written. `None` for other kinds of files, and if it cannot be determined.
///
/// Most disk file systems support FIEMAP. Without it, holes are searched for with SEEK_HOLE, which does not show
/// unwritten extents on every file system. A file system without holes reports everything as data; then the number of
/// allocated blocks is used instead, but not on FUSE, which may invent it, nor on ZFS, where compression reduces it.
///
/// # Errors
/// When the kernel fails to answer; missing support is not an error.
pub fn unwritten_fraction(file: &File, len: u64) -> Result<Option<f64>, ExtentsError> {
    let metadata = file.metadata().map_err(ExtentsError::Stat)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    if len == 0 {
        return Ok(Some(0.0));
    }
    let written = match written_by_map(file, len)? {
        Some(written) => Some(written),
        None => match data_by_seek(file, len)? {
            Some(data) if data < len => Some(data),
            holeless => allocated(file, metadata.blocks(), len).or(holeless),
        },
    };
    Ok(written.map(|written| 1.0 - written.min(len) as f64 / len as f64))
}

/// Number of the first `len` bytes that are in written extents.
fn written_by_map(file: &File, len: u64) -> Result<Option<u64>, ExtentsError> {
    let mut written = 0;
    let known = walk(file, 0..len, Sync::First, |extent| {
        if !extent.flags.is_unwritten() {
            let end = extent.logical.saturating_add(extent.length).min(len);
            written += end.saturating_sub(extent.logical);
        }
        ControlFlow::Continue(())
    })?;
    Ok(known.then_some(written))
}

/// Number of the first `len` bytes that are not in holes (lseek(2), SEEK_DATA and SEEK_HOLE). `None` if the kernel
/// supports neither. The file's offset is restored.
fn data_by_seek(file: &File, len: u64) -> Result<Option<u64>, ExtentsError> {
    let failed = |error: Errno| ExtentsError::Seek(error.into());
    let here = seek(file, SeekFrom::Current(0)).map_err(failed)?;
    let mut data = 0;
    let mut at = 0;
    let result = loop {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // No data until the end of the file.
            Err(Errno::NXIO) => break Ok(Some(data)),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => break Ok(None),
            Err(error) => break Err(failed(error)),
        };
        if begin >= len {
            break Ok(Some(data));
        }
        let end = match seek(file, SeekFrom::Hole(begin)) {
            Ok(end) => end,
            Err(error) => break Err(failed(error)),
        };
        data += end.min(len) - begin;
        // A hole may be punched meanwhile where the data was.
        if end >= len || end <= begin {
            break Ok(Some(data));
        }
        at = end;
    };
    seek(file, SeekFrom::Start(here)).map_err(failed)?;
    result
}

/// Number of bytes allocated to the file, at most `len`; `None` if the number is unreliable.
fn allocated(file: &File, blocks: u64, len: u64) -> Option<u64> {
    let space = space::of_file(file).ok()?;
    let believed = space.medium() != FilesystemMedium::Fuse && !space.compresses();
    // st_blocks is in units of 512 bytes, whatever the file system's block size (stat(3type)).
    believed.then(|| blocks.saturating_mul(512).min(len))
}

/// struct fiemap (include/uapi/linux/fiemap.h), without its extents.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawHead {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// struct fiemap_extent.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Number of extents requested at a time (14 KiB).
const BATCH: usize = 256;

#[repr(C)]
struct RawMap {
    head: RawHead,
    extents: [RawExtent; BATCH],
}

/// FS_IOC_FIEMAP is `_IOWR('f', 11, struct fiemap)` (include/uapi/linux/fs.h). The size in it is
/// that of the head alone, since the extents are a flexible array.
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<RawHead>(b'f', 11);
const FIEMAP_FLAG_SYNC: u32 = 1;

/// Write-back of dirty data before its position is read (FIEMAP_FLAG_SYNC).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// Write back first, so that all data has a position.
    First,
    /// Do not write back: data without a position is listed as delayed, or not at all.
    Never,
}

/// Calls `each` for every extent that overlaps the range, until it breaks. Returns false without FIEMAP support. Only
/// one batch of extents is held in memory.
fn walk(
    file: &File,
    range: Range<u64>,
    sync: Sync,
    mut each: impl FnMut(Extent) -> ControlFlow<()>,
) -> Result<bool, ExtentsError> {
    let Range { start, end } = range;
    let mut at = start;
    let mut raw = Box::new(RawMap {
        head: RawHead::default(),
        extents: [RawExtent::default(); BATCH],
    });
    while at < end {
        raw.head = RawHead {
            start: at,
            length: end - at,
            // Only once: a program that writes during the walk changes the result anyway.
            flags: if sync == Sync::First && at == start {
                FIEMAP_FLAG_SYNC
            } else {
                0
            },
            extent_count: BATCH as u32,
            ..RawHead::default()
        };
        // SAFETY: the opcode is FS_IOC_FIEMAP, whose argument is a struct fiemap followed by
        // `fm_extent_count` struct fiemap_extent. `RawMap` is laid out so, holds exactly that
        // many, and is made of integers, for which any bytes that the kernel writes are valid.
        let answer = unsafe { ioctl(file, Updater::<FS_IOC_FIEMAP, RawMap>::new(&mut raw)) };
        match answer {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            // EBADR: the file system does not know a flag (Documentation/filesystems/fiemap.rst).
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::NOSYS | Errno::BADR) => {
                return Ok(false);
            }
            Err(error) => return Err(ExtentsError::Map(error.into())),
        }
        let count = (raw.head.mapped_extents as usize).min(BATCH);
        let Some(last) = raw.extents[..count].last().copied() else {
            break;
        };
        for raw in &raw.extents[..count] {
            let extent = Extent {
                logical: raw.logical,
                physical: raw.physical,
                length: raw.length,
                flags: Flags(raw.flags),
            };
            if each(extent).is_break() {
                return Ok(true);
            }
        }
        let next = last.logical.saturating_add(last.length);
        if Flags(last.flags).is_last() {
            break;
        }
        if next <= at {
            return Err(ExtentsError::Stuck(last.logical));
        }
        at = next;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
