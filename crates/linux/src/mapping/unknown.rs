//! Reasons why a mapping is unknown.

use std::io;

use record::Bytes;
use record::raid::MdLevel;

use crate::block::{Device, DeviceNumber};

/// Reason why a mapping is unknown. Devices are given by their labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingUnknown {
    /// The kernel does not list a device.
    #[error("the kernel lists no block device {0}; it may have been removed")]
    Absent(DeviceNumber),
    /// The upper device is not built on the lower one.
    #[error("the one is not built on the other")]
    Unrelated,
    /// The lower device holds none of the data.
    #[error("the lower one is a spare, or failed, or another part of it is in use")]
    Nothing,
    /// An attribute is missing, or does not parse.
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
    /// An array of an unsupported level.
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
    /// A RAID 10 with far or offset copies, which are not supported.
    #[error("{0} has far copies; of RAID 10, only near copies are followed")]
    FarCopies(String),
    /// A RAID 0 with members of unequal size, without its layout after the smallest member.
    #[error(
        "{0} has members of unequal size and no md/layout that gives the layout of the stripes \
         behind the smallest (Linux 5.4 and later have it)"
    )]
    Zones(String),
    /// An array that is being reshaped.
    #[error("{0} is being reshaped; try again when that is done")]
    Reshaped(String),
    /// An array without a required member.
    #[error("a member of {0} is missing")]
    Incomplete(String),
    /// The sizes of the parts do not add up to that of the device.
    #[error("{device} has {} bytes, and its parts add up to {}", size.0, found.0)]
    Sizes {
        /// Name of the device.
        device: String,
        /// Size of the device.
        size: Bytes,
        /// Sum of its parts.
        found: Bytes,
    },
    /// A device-mapper device with an unsupported target.
    #[error("{device} is mapped by the target '{target}'; linear and striped ones are followed")]
    Target {
        /// Name of the device.
        device: String,
        /// The target's type.
        target: String,
    },
    /// The table of a device-mapper device could not be read.
    #[error("the table of {device} could not be read: {error}{}", hint(*.error))]
    Table {
        /// Name of the device.
        device: String,
        /// The kernel's error.
        error: io::ErrorKind,
    },
    /// A table with a line that does not parse.
    #[error("the table of {device} has a line that is not understood: {line}")]
    Line {
        /// Name of the device.
        device: String,
        /// Line of the table that is not understood.
        line: String,
    },
    /// A device of an unsupported kind.
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
