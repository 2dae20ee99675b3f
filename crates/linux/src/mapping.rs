//! Mapping of a device's bytes to a device below it: of a partition to its disk, of an array to a member, of
//! a logical volume to a physical one, and through any number of these.

mod piece;
mod raid;
mod table;

use std::io;
use std::path::Path;

use record::{Bytes, Ranges};

use crate::block::{DevNum, Device, Devices, Kind};
use crate::root::{Root, number};
use piece::Piece;

/// Positions in sysfs and in the tables of the device mapper are in sectors of this many bytes.
const SECTOR: u64 = 512;

/// The kinds of device-mapper targets that make up a device, such as `linear` or `cache`. Empty where that cannot
/// be told: without root, or of a device that is not one of the device mapper.
pub fn target_kinds(root: &Root, device: &Device) -> Vec<String> {
    table::kinds(root, device).unwrap_or_default()
}

/// Mapping of a device to one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The ways from the one to the other, each from the top down. There are several where an array
    /// has two partitions of a disk, or an array of unequal members continues on the larger ones.
    ways: Vec<Vec<Piece>>,
    /// The size of the device below.
    size: Bytes,
}

/// Reason for which the mapping of a device to one below it is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("where the data of {from} lies on {to} is not known: {why}")]
pub struct NotMapped {
    /// The upper device, as a person knows it.
    pub from: String,
    /// The lower device.
    pub to: String,
    /// The reason.
    pub why: Why,
}

/// Reason for which a mapping is not known. Devices are named as a person knows them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The kernel does not list a device.
    #[error("the kernel lists no block device {0}; it may have been removed")]
    Absent(DevNum),
    /// The one is not below the other.
    #[error("the one is not built on the other")]
    Unrelated,
    /// The lower device is below and has nothing of the data.
    #[error("the lower one is a spare, or failed, or another part of it is in use")]
    Nothing,
    /// An attribute is missing, or is no number.
    #[error("{device} has no {attribute} in sysfs")]
    Silent {
        /// The device.
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
        /// Its level.
        level: String,
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
    #[error("{0} is being reshaped; ask again when that is done")]
    Reshaped(String),
    /// An array that misses a member that it cannot do without.
    #[error("a member of {0} is missing")]
    Incomplete(String),
    /// The parts do not add up to the device.
    #[error("{device} has {} bytes, and its parts add up to {}", size.0, found.0)]
    Sizes {
        /// The device.
        device: String,
        /// Its size.
        size: Bytes,
        /// Sum of its parts.
        found: Bytes,
    },
    /// A device of the device mapper with a target that is not followed.
    #[error("{device} is mapped by the target '{target}'; linear and striped ones are followed")]
    Target {
        /// The device.
        device: String,
        /// The target's type.
        target: String,
    },
    /// The table of a device of the device mapper could not be read.
    #[error("the table of {device} could not be read: {error}{}", hint(*.error))]
    Table {
        /// The device.
        device: String,
        /// The kernel's error.
        error: io::ErrorKind,
    },
    /// A table that does not say what it should.
    #[error("the table of {device} has a line that is not understood: {line}")]
    Line {
        /// The device.
        device: String,
        /// The line.
        line: String,
    },
    /// A device of a kind that is not followed.
    #[error("the layout of {0} on the devices below it is not supported")]
    Kind(String),
}

/// Advice on an error.
fn hint(error: io::ErrorKind) -> &'static str {
    match error {
        io::ErrorKind::PermissionDenied => "; run this as root",
        _ => "",
    }
}

impl Why {
    fn silent(device: &Device, attribute: &'static str) -> Why {
        Why::Silent {
            device: device.label(),
            attribute,
        }
    }

    fn sizes(device: &Device, found: u64) -> Why {
        Why::Sizes {
            device: device.label(),
            size: device.size,
            found: Bytes(found),
        }
    }
}

impl Map {
    /// Mapping of the device `from` to the device `to`, which may be the same or any number of steps below: partitions, loop devices on devices, arrays (linear, RAID 0, RAID 1, RAID 10 with near copies) and device-mapper tables of linear and striped targets, such as LVM's. To read
    /// such a table needs root.
    ///
    /// # Errors
    /// When the one does not lie on the other, or how it does is not known.
    pub fn down(
        root: &Root,
        devices: &Devices,
        from: DevNum,
        to: DevNum,
    ) -> Result<Map, NotMapped> {
        let name = |number: DevNum| match devices.get(number) {
            Some(device) => device.label(),
            None => number.to_string(),
        };
        let refused = |why| NotMapped {
            from: name(from),
            to: name(to),
            why,
        };
        let size = match devices.get(to) {
            Some(device) => device.size,
            None => return Err(refused(Why::Absent(to))),
        };
        let way = Descent { root, devices, to };
        let ways = way.from(from, &[]).map_err(refused)?;
        if ways.is_empty() {
            return Err(refused(Why::Nothing));
        }
        Ok(Map { ways, size })
    }

    /// Bytes of the lower device that hold these bytes of the upper one: every copy of them that it has.
    pub fn ranges(&self, upper: &Ranges) -> Ranges {
        let found: Ranges = self
            .ways
            .iter()
            .flat_map(|way| {
                let lower = way.iter().fold(upper.clone(), |ranges, piece| {
                    ranges
                        .iter()
                        .filter_map(|range| piece.down(&range))
                        .collect()
                });
                lower.iter().collect::<Vec<_>>()
            })
            .collect();
        found.intersect(&Ranges::all(self.size))
    }
}

/// The search for a device below others.
struct Descent<'a> {
    root: &'a Root,
    devices: &'a Devices,
    to: DevNum,
}

impl Descent<'_> {
    /// Every way down from a device that was reached through those `above` it. There is none where
    /// the device below is related and holds nothing of it.
    fn from(&self, from: DevNum, above: &[DevNum]) -> Result<Vec<Vec<Piece>>, Why> {
        if from == self.to {
            return Ok(vec![Vec::new()]);
        }
        let device = self.devices.get(from).ok_or(Why::Absent(from))?;
        if !self.is_below(from) {
            return Err(Why::Unrelated);
        }
        let passed = [above, &[from]].concat();
        let mut ways = Vec::new();
        for (lower, piece) in self.pieces(device)? {
            // A listing in which a device lies on itself is damaged, and would have no bottom.
            let leads_there = lower == self.to || self.is_below(lower);
            if passed.contains(&lower) || !leads_there {
                continue;
            }
            for rest in self.from(lower, &passed)? {
                ways.push(std::iter::once(piece.clone()).chain(rest).collect());
            }
        }
        Ok(ways)
    }

    fn is_below(&self, upper: DevNum) -> bool {
        let below = self.devices.below(upper);
        below.iter().any(|device| device.number == self.to)
    }

    /// The pieces of a device, each with the device that it lies on.
    fn pieces(&self, device: &Device) -> Result<Vec<(DevNum, Piece)>, Why> {
        let folder = self.root.sys.join("class/block").join(device.sysfs_name());
        let whole = 0..device.size.0;
        match device.kind {
            Kind::Partition { of, .. } => {
                let start: u64 =
                    number(&folder.join("start")).ok_or_else(|| Why::silent(device, "start"))?;
                let piece = Piece::straight(whole, start.saturating_mul(SECTOR));
                Ok(vec![(of, piece)])
            }
            Kind::Loop {
                backing_device: Some(below),
                ..
            } => {
                let offset = number(&folder.join("loop/offset"))
                    .ok_or_else(|| Why::silent(device, "loop/offset"))?;
                Ok(vec![(below, Piece::straight(whole, offset))])
            }
            Kind::Raid { .. } => raid::pieces(self.root, self.devices, device),
            Kind::Mapper { .. } => table::pieces(self.root, device),
            Kind::Disk | Kind::Loop { .. } | Kind::Ram => Err(Why::Kind(device.label())),
        }
    }
}

/// A size in KiB, unlike most in sysfs, in bytes.
fn kib(path: &Path) -> Option<u64> {
    number::<u64>(path).map(|kib| kib.saturating_mul(1024))
}
