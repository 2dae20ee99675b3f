//! Units of sysfs.

use std::path::Path;

use crate::root::number;

/// Positions in sysfs and in the tables of the device mapper are in sectors of this many bytes.
pub(super) const SECTOR: u64 = 512;

/// A size in KiB (most sizes in sysfs are in sectors), returned in bytes.
pub(super) fn kib(path: &Path) -> Option<u64> {
    number::<u64>(path).map(|kib| kib.saturating_mul(1024))
}
