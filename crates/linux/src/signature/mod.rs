//! Which file system, partition table, RAID or volume metadata a device or file carries.
//!
//! This is asked before anything is overwritten, so it errs on the side of seeing something: it
//! reports backup copies too, and does not verify checksums. It never writes.

mod file_system_id;
mod image;
mod kind;
mod magic;
mod shape;

use std::fs::File;
use std::io;

pub use file_system_id::file_system_id;
use image::Image;
pub use kind::{SignatureKind, UnknownSignature};

/// A mark that some format has left on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    /// Where it stands, in bytes from the start.
    pub offset: u64,
    /// What it says.
    pub kind: SignatureKind,
}

/// Every signature on a regular file or block device, in the order of their offsets. A format that
/// keeps copies (a GPT and its backup, the labels of ZFS) is reported once for each copy.
///
/// Reads with `pread` in aligned blocks of 4 KiB, so a file opened with `O_DIRECT` serves as well.
///
/// # Errors
///
/// What the kernel answers to a read or seek: `EIO` from a failing disk, `EISDIR` for a directory.
pub fn probe(file: &File) -> io::Result<Vec<Signature>> {
    Ok(detect(&Image::read(file)?))
}

/// Whether the first and the last mebibyte are all zeros, so that nothing which [`probe`] does not
/// know seems to live there either.
///
/// # Errors
///
/// As [`probe`].
pub fn is_blank(file: &File) -> io::Result<bool> {
    Ok(Image::read(file)?.edges_are_zero())
}

fn detect(image: &Image) -> Vec<Signature> {
    let mut found = Vec::new();
    magic::detect(image, &mut found);
    shape::detect(image, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
