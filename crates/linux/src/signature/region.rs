//! A range of a device or file, such as a partition, that is read like a device.

use std::fs::File;
use std::io;

use super::read::{ALIGN, read_at};

/// A range of a device or file.
#[derive(Clone, Copy)]
pub(super) struct Region<'a> {
    file: &'a File,
    /// First byte of the range, from the start of the file.
    pub(super) start: u64,
    /// Size of the range in bytes; it ends at or before the end of the file.
    pub(super) size: u64,
}

impl<'a> Region<'a> {
    /// The whole device or file.
    pub(super) fn whole(file: &'a File) -> io::Result<Region<'a>> {
        Ok(Region {
            file,
            start: 0,
            size: super::read::size(file)?,
        })
    }

    /// A part of it, limited to its end; `None` if nothing is left.
    pub(super) fn part(&self, start: u64, size: u64) -> Option<Region<'a>> {
        let left = self.size.checked_sub(start)?;
        let size = size.min(left);
        (size > 0).then_some(Region {
            file: self.file,
            start: self.start + start,
            size,
        })
    }

    /// Reads up to `len` bytes at `offset`; fewer at the end of the range. Reads of the file are aligned, as direct
    /// I/O requires.
    pub(super) fn read(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        if offset >= self.size {
            return Ok(Vec::new());
        }
        let len = len.min(self.size - offset);
        let from = self.start + offset;
        let before = from % ALIGN as u64;
        let mut bytes = read_at(self.file, from - before, len + before)?;
        bytes.drain(..bytes.len().min(before as usize));
        Ok(bytes)
    }

    /// Sector size of a partition table: the device's logical block size, or 512 bytes in a file.
    pub(super) fn sector(&self) -> u64 {
        rustix::fs::ioctl_blksszget(self.file).map_or(512, u64::from)
    }
}
