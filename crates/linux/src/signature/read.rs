//! Reads of devices and files, bypassing the page cache where possible.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Direct I/O requires memory, offset and length in multiples of the logical block, which is at most 4 KiB on every
/// supported disk.
pub(super) const ALIGN: usize = 4096;

/// The size of a regular file or block device. The file's own offset is kept.
pub(super) fn size(mut file: &File) -> io::Result<u64> {
    let here = file.stream_position()?;
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(here))?;
    Ok(end)
}

/// A block device opened again with direct I/O, since its page cache does not contain writes to the same storage under
/// another name; `None` for a file, and if the driver does not support direct I/O.
pub(super) fn direct(file: &File) -> io::Result<Option<File>> {
    if !file.metadata()?.file_type().is_block_device() {
        return Ok(None);
    }
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(link, flags, Mode::empty()) {
        Ok(direct) => Ok(Some(direct.into())),
        Err(Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads `len` bytes at the aligned `offset`; fewer at the end of the file.
///
/// The request itself is rounded up to [`ALIGN`], as direct I/O requires; the kernel returns fewer bytes at the end of
/// a file whose size is not a multiple of it.
pub(super) fn read_at(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let rounded = len.next_multiple_of(ALIGN);
    let mut memory = vec![0; rounded + ALIGN];
    let shift = memory.as_ptr().align_offset(ALIGN);
    let buffer = memory
        .get_mut(shift..shift.saturating_add(rounded))
        .ok_or(io::ErrorKind::OutOfMemory)?;

    let mut done = 0;
    while done < len {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // A read with an unaligned length ended at the end of the file; direct I/O would refuse to continue there.
        if !done.is_multiple_of(ALIGN) {
            break;
        }
    }
    Ok(buffer[..done.min(len)].to_vec())
}
