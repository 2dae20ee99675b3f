//! Identity of storage.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use crate::block::DeviceNumber;

/// Storage, whatever its paths are called: a block device by its number, a file by its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Storage {
    /// A block device.
    Device(DeviceNumber),
    /// A file: `st_dev` and `st_ino`.
    File(u64, u64),
}

impl Storage {
    /// The storage behind a path or descriptor; `None` for what holds no data of its own.
    pub(super) fn of(metadata: &Metadata) -> Option<Storage> {
        let kind = metadata.file_type();
        if kind.is_block_device() {
            Some(Storage::Device(DeviceNumber::from_raw(metadata.rdev())))
        } else {
            kind.is_file()
                .then(|| Storage::File(metadata.dev(), metadata.ino()))
        }
    }
}
