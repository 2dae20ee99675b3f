//! Mapping of a device's bytes to a device below it: of a partition to its disk, of an array to a member, of
//! a logical volume to a physical one, and through any number of these.

mod piece;
mod raid;
mod table;
mod units;
mod unknown;

use record::{Bytes, Ranges};

use crate::block::{BlockDeviceKind, Device, DeviceNumber, Devices};
use crate::root::{Root, number};
use piece::MappedPiece;
use units::SECTOR;
pub use unknown::MappingUnknown;

/// The kinds of device-mapper targets of a device, such as `linear` or `cache`. Empty if they cannot be determined:
/// without root, or for a device that is not device-mapper's.
pub fn target_kinds(root: &Root, device: &Device) -> Vec<String> {
    table::kinds(root, device).unwrap_or_default()
}

/// Mapping of a device to a device below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The paths from the upper to the lower device, each from the top down. There are several if two partitions of
    /// one disk are members of an array, or if an array of unequal members continues on the larger ones.
    ways: Vec<Vec<MappedPiece>>,
    /// The size of the device below.
    size: Bytes,
}

/// Reason why the mapping of a device to one below it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("where the data of {from} lies on {to} is not known: {why}")]
pub struct NotMapped {
    /// The upper device, by its label.
    pub from: String,
    /// The lower device.
    pub to: String,
    /// The reason.
    pub why: MappingUnknown,
}

impl Map {
    /// Mapping of the device `from` to the device `to`, which may be the same device or any number of levels below:
    /// through partitions, loop devices on devices, arrays (linear, RAID 0, RAID 1, RAID 10 with near copies) and
    /// device-mapper tables of linear and striped targets, such as LVM's. Reading such a table requires root.
    ///
    /// # Errors
    /// When `from` is not built on `to`, or its layout on `to` is unknown.
    pub fn down(
        root: &Root,
        devices: &Devices,
        from: DeviceNumber,
        to: DeviceNumber,
    ) -> Result<Map, NotMapped> {
        let name = |number: DeviceNumber| match devices.get(number) {
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
            None => return Err(refused(MappingUnknown::Absent(to))),
        };
        let way = Descent { root, devices, to };
        let ways = way.from(from, &[]).map_err(refused)?;
        if ways.is_empty() {
            return Err(refused(MappingUnknown::Nothing));
        }
        Ok(Map { ways, size })
    }

    /// Bytes of the lower device that hold these bytes of the upper one, including all copies.
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
    to: DeviceNumber,
}

impl Descent<'_> {
    /// Every path down from a device that was reached through the devices `above` it. Empty if the device below is
    /// related but holds none of its data.
    fn from(
        &self,
        from: DeviceNumber,
        above: &[DeviceNumber],
    ) -> Result<Vec<Vec<MappedPiece>>, MappingUnknown> {
        if from == self.to {
            return Ok(vec![Vec::new()]);
        }
        let device = self.devices.get(from).ok_or(MappingUnknown::Absent(from))?;
        if !self.is_below(from) {
            return Err(MappingUnknown::Unrelated);
        }
        let passed = [above, &[from]].concat();
        let mut ways = Vec::new();
        for (lower, piece) in self.pieces(device)? {
            // A damaged listing, in which a device is below itself, would otherwise recurse without end.
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

    fn is_below(&self, upper: DeviceNumber) -> bool {
        let below = self.devices.below(upper);
        below.iter().any(|device| device.number == self.to)
    }

    /// The pieces of a device, each with the device that it lies on.
    fn pieces(&self, device: &Device) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
        let folder = self.root.sys.join("class/block").join(device.sysfs_name());
        let whole = 0..device.size.0;
        match device.kind {
            BlockDeviceKind::Partition { of, .. } => {
                let start: u64 = number(&folder.join("start"))
                    .ok_or_else(|| MappingUnknown::silent(device, "start"))?;
                let piece = MappedPiece::straight(whole, start.saturating_mul(SECTOR));
                Ok(vec![(of, piece)])
            }
            BlockDeviceKind::Loop {
                backing_device: Some(below),
                ..
            } => {
                let offset = number(&folder.join("loop/offset"))
                    .ok_or_else(|| MappingUnknown::silent(device, "loop/offset"))?;
                Ok(vec![(below, MappedPiece::straight(whole, offset))])
            }
            BlockDeviceKind::Raid { .. } => raid::pieces(self.root, self.devices, device),
            BlockDeviceKind::Mapper { .. } => table::pieces(self.root, device),
            BlockDeviceKind::Disk | BlockDeviceKind::Loop { .. } | BlockDeviceKind::Ram => {
                Err(MappingUnknown::Kind(device.label()))
            }
        }
    }
}
