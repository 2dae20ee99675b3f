//! Numbers of devices.

use std::fmt;
use std::str::FromStr;

/// The number by which the kernel knows a device: `major:minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevNum {
    /// The driver's part. 0 stands for no device: file systems without one get numbers of this
    /// major.
    pub major: u32,
    /// The device's part.
    pub minor: u32,
}

impl DevNum {
    /// A number from its parts.
    pub const fn new(major: u32, minor: u32) -> DevNum {
        DevNum { major, minor }
    }

    /// The number in a `st_dev` or `st_rdev`.
    pub fn from_raw(dev: u64) -> DevNum {
        DevNum {
            major: rustix::fs::major(dev),
            minor: rustix::fs::minor(dev),
        }
    }

    /// True if it stands for no block device of its own: tmpfs, NFS, overlay, and btrfs too.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DevNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A device number that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a device number such as 8:1")]
pub struct ParseDevNumError(String);

impl FromStr for DevNum {
    type Err = ParseDevNumError;

    fn from_str(text: &str) -> Result<DevNum, ParseDevNumError> {
        let parts = text
            .split_once(':')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor) = parts.ok_or_else(|| ParseDevNumError(text.to_owned()))?;
        Ok(DevNum { major, minor })
    }
}
