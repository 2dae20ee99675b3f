//! Signatures: file systems, partition tables, RAID and volume metadata on a device or file.
//!
//! This is read before anything is overwritten, so it errs on the side of seeing something: it reports
//! backup copies too, and does not verify checksums. It never writes.
//!
//! Content that is neither blank nor known counts as [`SignatureKind::Unknown`]: a database's raw volume, a format
//! that has no line here, a file system whose beginning is gone.

mod blank;
mod content;
mod file_system_id;
mod image;
mod kind;
mod lvm;
mod magic;
mod partitions;
mod read;
mod region;
mod shape;

use std::fs::File;
use std::io;

pub use content::{Content, LocatedContent, ZEROING};
pub use file_system_id::file_system_id;
use image::Image;
pub use kind::{Signature, SignatureKind, UnknownSignature};
pub use partitions::Partition;
use region::Region;

/// Every signature of a known format that a regular file or block device carries itself, in the order of their
/// offsets. A format that keeps copies (a GPT and its backup, the labels of ZFS) is reported once for each
/// copy. What else may be on it, also in partitions, is in [`Content`].
///
/// A device is read past the page cache: what was written to its storage under another name is not in the cache of
/// this one.
///
/// # Errors
///
/// The kernel's error of a read or seek: `EIO` from a failing disk, `EISDIR` for a directory.
pub fn probe(file: &File) -> io::Result<Vec<Signature>> {
    let direct = read::direct(file)?;
    let file = direct.as_ref().unwrap_or(file);
    Ok(detect(&Image::read(&Region::whole(file)?)?))
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
