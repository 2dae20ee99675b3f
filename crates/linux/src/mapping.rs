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
    ways: Vec<Vec<MappedPiece>>,
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
    pub why: MappingUnknown,
}

impl Map {
    /// Mapping of the device `from` to the device `to`, which may be the same or any number of steps below: partitions,
    /// loop devices on devices, arrays (linear, RAID 0, RAID 1, RAID 10 with near copies) and device-mapper tables of
    /// linear and striped targets, such as LVM's. To read such a table needs root.
    ///
    /// # Errors
    /// When the one does not lie on the other, or how it does is not known.
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
    to: DeviceNumber,
}

impl Descent<'_> {
    /// Every way down from a device that was reached through those `above` it. There is none where
    /// the device below is related and holds nothing of it.
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
