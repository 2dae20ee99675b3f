//! Mapping of arrays of Linux software RAID to their members (linux, drivers/md/).

use std::ops::Range;
use std::path::Path;

use record::raid::{Level, MdLevel, Placement};

use super::piece::{ChunkLayout, MappedPiece};
use super::units::{SECTOR, kib};
use super::unknown::MappingUnknown;
use crate::block::{Device, DeviceNumber, Devices};
use crate::root::{self, Root, attribute, number};

/// A member with a slot in the array.
struct Member {
    number: DeviceNumber,
    slot: u64,
    /// Start of the array's data on it, in bytes.
    offset: u64,
    /// Bytes of it that are usable by the array.
    room: u64,
}

/// Properties that the levels have in common.
struct Shape<'a> {
    device: &'a Device,
    /// Size of a chunk in bytes; 0 without chunks.
    chunk: u64,
    /// Number of members that the array should have.
    disks: u64,
    members: Vec<Member>,
}

/// The segments of an array, each with its member. Spare and failed members hold none of it.
pub(super) fn pieces(
    root: &Root,
    devices: &Devices,
    device: &Device,
) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
    let folder = root
        .sys
        .join("class/block")
        .join(device.sysfs_name())
        .join("md");
    let missing = |name: &'static str| MappingUnknown::silent(device, name);
    let level = attribute(&folder.join("level")).ok_or_else(|| missing("md/level"))?;
    let level = MdLevel::from(level);
    if attribute(&folder.join("reshape_position")).is_some_and(|position| position != "none") {
        return Err(MappingUnknown::Reshaped(device.label()));
    }
    let shape = Shape {
        device,
        chunk: number(&folder.join("chunk_size")).unwrap_or(0),
        disks: number(&folder.join("raid_disks")).ok_or_else(|| missing("md/raid_disks"))?,
        members: members(&folder, devices, device)?,
    };
    let layout: Option<u64> = number(&folder.join("layout"));
    let component = || {
        kib(&folder.join("component_size"))
            .ok_or_else(|| MappingUnknown::silent(device, "md/component_size"))
    };
    match level.raid().map(Level::placement) {
        Some(Placement::Concatenated) => shape.linear(),
        Some(Placement::Striped) => shape.zones(layout),
        Some(Placement::Mirrored) => shape.mirrors(component()?),
        Some(Placement::StripedCopies) => {
            shape.near(layout.ok_or_else(|| missing("md/layout"))?, component()?)
        }
        Some(Placement::Parity { .. }) | None => Err(MappingUnknown::Level {
            device: device.label(),
            level,
        }),
    }
}

/// The members with a slot, ordered by slot.
fn members(
    folder: &Path,
    devices: &Devices,
    device: &Device,
) -> Result<Vec<Member>, MappingUnknown> {
    let mut members = Vec::new();
    for entry in
        root::names_in(folder).map_err(|error| MappingUnknown::Unread(error.to_string()))?
    {
        let entry = entry.to_string_lossy();
        let Some(name) = entry.strip_prefix("dev-") else {
            continue;
        };
        let own = folder.join(&*entry);
        // A spare or a failed member has "none", which does not parse as a number.
        let Some(slot) = number(&own.join("slot")) else {
            continue;
        };
        let missing = |what: &'static str| MappingUnknown::silent(device, what);
        // A member that the kernel no longer lists counts as missing.
        let Some(member) = devices.named(&name.replace('!', "/")) else {
            continue;
        };
        members.push(Member {
            number: member.number,
            slot,
            offset: number::<u64>(&own.join("offset"))
                .ok_or_else(|| missing("md/dev-*/offset"))?
                .saturating_mul(SECTOR),
            room: kib(&own.join("size")).ok_or_else(|| missing("md/dev-*/size"))?,
        });
    }
    members.sort_by_key(|member| member.slot);
    Ok(members)
}

impl Shape<'_> {
    /// The members one after the other, each rounded down to whole chunks, if there are chunks
    /// (drivers/md/md-linear.c, linear_conf).
    fn linear(&self) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
        self.expect_all()?;
        let mut pieces = Vec::new();
        let mut at = 0_u64;
        for member in &self.members {
            let end = at.saturating_add(self.whole_chunks(member.room));
            pieces.push((member.number, MappedPiece::straight(at..end, member.offset)));
            at = end;
        }
        self.expect_size(at)?;
        Ok(pieces)
    }

    /// RAID 0: stripes over all members up to the end of the smallest, then a zone of stripes over the members that
    /// continue, and so on (drivers/md/raid0.c, create_strip_zones and map_sector).
    ///
    /// After the first zone, two layouts are in use. Both write a zone's chunks row by row. The member at which a row
    /// begins is counted from the beginning of the array in the first, which older kernels used, and from the
    /// beginning of the zone in the second (enum r0layout).
    fn zones(
        &self,
        layout: Option<u64>,
    ) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
        self.expect_all()?;
        self.expect_chunk()?;
        let rooms: Vec<u64> = self
            .members
            .iter()
            .map(|m| self.whole_chunks(m.room))
            .collect();
        let mut ends = rooms.clone();
        ends.sort_unstable();
        ends.dedup();
        let counts_from_array = match layout {
            _ if ends.len() == 1 => false,
            Some(1) => true,
            Some(2) => false,
            _ => return Err(MappingUnknown::Zones(self.device.label())),
        };
        let mut pieces = Vec::new();
        let (mut at, mut begin) = (0_u64, 0_u64);
        for end in ends {
            let longer: Vec<&Member> = self
                .members
                .iter()
                .zip(&rooms)
                .filter(|(_, room)| **room > begin)
                .map(|(member, _)| member)
                .collect();
            let width = longer.len() as u64;
            let zone = at..at.saturating_add((end - begin).saturating_mul(width));
            let turned = match counts_from_array {
                true => zone.start / self.chunk % width.max(1),
                false => 0,
            };
            for (index, member) in longer.into_iter().enumerate() {
                let lane = (index as u64 + width - turned) % width;
                pieces.push((
                    member.number,
                    self.striped(&zone, member, begin, width, 1, lane),
                ));
            }
            (at, begin) = (zone.end, end);
        }
        self.expect_size(at)?;
        Ok(pieces)
    }

    /// RAID 1: every member holds all of the data (drivers/md/raid1.c, raid1_read_request).
    fn mirrors(&self, component: u64) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
        self.expect_at_most(component)?;
        let whole = 0..self.device.size.0;
        let pieces = self.members.iter();
        Ok(pieces
            .map(|member| {
                (
                    member.number,
                    MappedPiece::straight(whole.clone(), member.offset),
                )
            })
            .collect())
    }

    /// RAID 10 with near copies: the copies of each chunk are consecutive, round-robin over the members
    /// (drivers/md/raid10.c, __raid10_find_phys; the layout's parts: setup_geo).
    fn near(
        &self,
        layout: u64,
        component: u64,
    ) -> Result<Vec<(DeviceNumber, MappedPiece)>, MappingUnknown> {
        let (copies, far) = (layout & 0xff, (layout >> 8) & 0xff);
        if far != 1 || copies == 0 || copies > self.disks {
            return Err(MappingUnknown::FarCopies(self.device.label()));
        }
        self.expect_chunk()?;
        let chunks = u128::from(component / self.chunk) * u128::from(self.disks)
            / u128::from(copies)
            * u128::from(self.chunk);
        self.expect_at_most(u64::try_from(chunks).unwrap_or(u64::MAX))?;
        let whole = 0..self.device.size.0;
        let members = self
            .members
            .iter()
            .filter(|member| member.slot < self.disks);
        Ok(members
            .map(|member| {
                let piece = self.striped(&whole, member, 0, self.disks, copies, member.slot);
                (member.number, piece)
            })
            .collect())
    }

    /// Mapping of a member from `begin` bytes of its data on.
    fn striped(
        &self,
        upper: &Range<u64>,
        member: &Member,
        begin: u64,
        width: u64,
        copies: u64,
        lane: u64,
    ) -> MappedPiece {
        MappedPiece {
            upper: upper.clone(),
            lower: member.offset.saturating_add(begin),
            deal: ChunkLayout {
                chunk: self.chunk,
                width,
                copies,
                lane,
            },
        }
    }

    fn whole_chunks(&self, room: u64) -> u64 {
        room - room.checked_rem(self.chunk).unwrap_or(0)
    }

    fn expect_chunk(&self) -> Result<(), MappingUnknown> {
        match self.chunk {
            0 => Err(MappingUnknown::silent(self.device, "md/chunk_size")),
            _ => Ok(()),
        }
    }

    /// Checks that no member is missing: otherwise a part of the data is missing too, and the others' part cannot be
    /// counted.
    fn expect_all(&self) -> Result<(), MappingUnknown> {
        let slots = self.members.iter().map(|member| member.slot);
        if self.disks > 0 && slots.eq(0..self.disks) {
            return Ok(());
        }
        Err(MappingUnknown::Incomplete(self.device.label()))
    }

    /// Checks that the members add up to the array's size.
    fn expect_size(&self, found: u64) -> Result<(), MappingUnknown> {
        if found == self.device.size.0 {
            return Ok(());
        }
        Err(MappingUnknown::sizes(self.device, found))
    }

    /// Checks the upper bound of the size: an array with copies may be smaller than its members allow.
    fn expect_at_most(&self, room: u64) -> Result<(), MappingUnknown> {
        if self.device.size.0 <= room {
            return Ok(());
        }
        Err(MappingUnknown::sizes(self.device, room))
    }
}
