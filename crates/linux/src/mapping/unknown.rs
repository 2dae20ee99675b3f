//! Reasons for which a mapping is not known.

use std::io;

use record::Bytes;
use record::raid::MdLevel;

use crate::block::{Device, DeviceNumber};

/// Reason for which a mapping is not known. Devices are named as a person knows them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingUnknown {
    /// The kernel does not list a device.
    #[error("the kernel lists no block device {0}; it may have been removed")]
    Absent(DeviceNumber),
    /// The one is not below the other.
    #[error("the one is not built on the other")]
    Unrelated,
    /// The lower device is below and has nothing of the data.
    #[error("the lower one is a spare, or failed, or another part of it is in use")]
    Nothing,
    /// An attribute is missing, or is no number.
    #[error("{device} has no {attribute} in sysfs")]
    Silent {
        /// Name of the device.
        device: String,
        /// The attribute, below the device's folder.
        attribute: &'static str,
    },
    /// A folder in sysfs could not be listed.
    #[error("{0}")]
    Unread(String),
    /// An array of a level that is not followed.
    #[error(
        "{device} is of level {level}; linear arrays, RAID 0, RAID 1 and RAID 10 with near copies \
         are followed"
    )]
    Level {
        /// The array.
        device: String,
        /// RAID level of the array.
        level: MdLevel,
    },
    /// A RAID 10 with far or offset copies.
    #[error("{0} has far copies; of RAID 10, only near copies are followed")]
    FarCopies(String),
    /// A RAID 0 with members of unequal size, and no word of how it continues behind the smallest.
    #[error(
        "{0} has members of unequal size and no md/layout that gives the layout of the stripes \
         behind the smallest (Linux 5.4 and later have it)"
    )]
    Zones(String),
    /// An array that is being given another form.
    #[error("{0} is being reshaped; try again when that is done")]
    Reshaped(String),
    /// An array that misses a member that it cannot do without.
    #[error("a member of {0} is missing")]
    Incomplete(String),
    /// The parts do not add up to the device.
    #[error("{device} has {} bytes, and its parts add up to {}", size.0, found.0)]
    Sizes {
        /// Name of the device.
        device: String,
        /// Size of the device.
        size: Bytes,
        /// Sum of its parts.
        found: Bytes,
    },
    /// A device of the device mapper with a target that is not followed.
    #[error("{device} is mapped by the target '{target}'; linear and striped ones are followed")]
    Target {
        /// Name of the device.
        device: String,
        /// The target's type.
        target: String,
    },
    /// The table of a device of the device mapper could not be read.
    #[error("the table of {device} could not be read: {error}{}", hint(*.error))]
    Table {
        /// Name of the device.
        device: String,
        /// The kernel's error.
        error: io::ErrorKind,
    },
    /// A table that does not say what it should.
    #[error("the table of {device} has a line that is not understood: {line}")]
    Line {
        /// Name of the device.
        device: String,
        /// Line of the table that is not understood.
        line: String,
    },
    /// A device of a kind that is not followed.
    #[error("the layout of {0} on the devices below it is not supported")]
    Kind(String),
}

/// Advice on an error.
fn hint(error: io::ErrorKind) -> String {
    match error {
        io::ErrorKind::PermissionDenied => format!("; {}", crate::remedy::as_root()),
        _ => String::new(),
    }
}

impl MappingUnknown {
    pub(super) fn silent(device: &Device, attribute: &'static str) -> MappingUnknown {
        MappingUnknown::Silent {
            device: device.label(),
            attribute,
        }
    }

    pub(super) fn sizes(device: &Device, found: u64) -> MappingUnknown {
        MappingUnknown::Sizes {
            device: device.label(),
            size: device.size,
            found: Bytes(found),
        }
    }
}
