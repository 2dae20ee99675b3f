//! Signatures: file systems, partition tables, RAID and volume metadata on a device or file.
//!
//! This is read before anything is overwritten, so false positives are preferred: backup copies are reported too, and
//! checksums are not verified. It never writes.
//!
//! Contents that are neither blank nor recognized count as [`SignatureKind::Unknown`]: a database's raw volume, a
//! format that is missing here, a file system whose beginning was overwritten.

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

/// All signatures of known formats on a regular file or block device itself, ordered by offset. A format with copies
/// (a GPT and its backup, the labels of ZFS) is reported once for each copy. Other contents, also in partitions, are
/// in [`Content`].
///
/// Reads of a device bypass the page cache, which does not contain writes to the same storage under another name.
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
