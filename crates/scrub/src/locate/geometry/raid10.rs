//! RAID 10 (linux, drivers/md/raid10.c, setup_geo, calc_sectors and __raid10_find_phys).

use super::MemberOffset;

/// Layout of RAID 10's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    /// Number of near copies of a chunk, on adjacent members.
    pub near: u64,
    /// Number of far copies: repetitions of all near copies, at higher offsets.
    pub far: u64,
    /// True if the next copy follows each row (`offset` layout), false if it follows all rows (`far`).
    pub offset: bool,
    /// Number of members in a set, within which the far copies are rotated; all members in the usual layouts.
    pub set: u64,
}

impl Copies {
    /// Copies by the number in `md/layout` of sysfs, for `disks` members. `None` for invalid layouts, and for sets
    /// that do not divide the members evenly.
    pub(crate) fn of(layout: u64, disks: u64) -> Option<Copies> {
        let (near, far) = (layout & 0xff, (layout >> 8) & 0xff);
        if near == 0 || far == 0 || disks == 0 || near * far > disks {
            return None;
        }
        let set = match layout >> 17 {
            0 => disks,
            1 => disks / far,
            2 => far * near,
            _ => return None,
        };
        (set > 0 && disks.is_multiple_of(set)).then_some(Copies {
            near,
            far,
            offset: layout & (1 << 16) != 0,
            set,
        })
    }
}

/// A RAID 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raid10 {
    /// Number of slots.
    disks: u64,
    /// Size of a chunk, in bytes.
    chunk: u64,
    copies: Copies,
    /// Number of chunks of the array.
    chunks: u64,
    /// Distance between far copies, in bytes.
    stride: u64,
}

impl Raid10 {
    /// Layout of `disks` members, of each of which the array uses `component` bytes, in chunks of `chunk` bytes. `None`
    /// where there are no chunks.
    pub(crate) fn new(disks: u64, chunk: u64, copies: Copies, component: u64) -> Option<Raid10> {
        let rows = component.checked_div(chunk)? / copies.far;
        let chunks = rows.checked_mul(disks)? / copies.near;
        let used = (chunks * copies.near * copies.far).div_ceil(disks);
        let stride = match copies.offset {
            true => chunk,
            false => (used / copies.far).checked_mul(chunk)?,
        };
        chunks.checked_mul(chunk)?;
        Some(Raid10 {
            disks,
            chunk,
            copies,
            chunks,
            stride,
        })
    }

    /// Number of slots.
    pub(crate) fn disks(&self) -> u64 {
        self.disks
    }

    /// Number of copies of each byte.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.near * self.copies.far
    }

    /// Size of a chunk, in bytes.
    pub(crate) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Size of the array, in bytes.
    pub(crate) fn span(&self) -> u64 {
        self.chunks * self.chunk
    }

    /// Bytes from a position to the end of its chunk.
    pub(crate) fn room(&self, position: u64) -> u64 {
        self.chunk - position % self.chunk
    }

    /// Locations of the copies of a byte of the array.
    pub(crate) fn places(&self, position: u64) -> Vec<MemberOffset> {
        let Copies {
            near,
            far,
            offset,
            set,
        } = self.copies;
        let first = position / self.chunk * near;
        let mut places = Vec::new();
        for copy in first..first + near {
            let (row, member) = (copy / self.disks, copy % self.disks);
            let row = if offset { row * far } else { row };
            for turn in 0..far {
                let within = (member % set + turn * near) % set;
                places.push(MemberOffset {
                    slot: (member / set * set + within) as u32,
                    at: row * self.chunk + position % self.chunk + turn * self.stride,
                });
            }
        }
        places
    }

    /// Offset in the array of the byte at a location; `None` where there is none.
    pub(crate) fn position(&self, place: MemberOffset) -> Option<u64> {
        let Copies {
            near,
            far,
            offset,
            set,
        } = self.copies;
        let (down, within) = (place.at / self.chunk, place.at % self.chunk);
        let (row, turn) = match (offset, self.stride / self.chunk) {
            (true, _) => (down / far, down % far),
            (false, 0) => return None,
            (false, stride) => (down % stride, down / stride),
        };
        let slot = u64::from(place.slot);
        // Undo the rotation of the far copies.
        let back = (turn * near) % set;
        let member = slot / set * set + (slot % set + set - back) % set;
        let chunk = (row * self.disks + member) / near;
        let position = chunk * self.chunk + within;
        (position < self.span() && self.places(position).contains(&place)).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Every member as a column of chunk numbers, filled as md(4) describes the layouts: the chunks
    /// are dealt out in rows with their near copies side by side; far copies are all rows again,
    /// turned by as many members as there are near copies; offset copies are each row again, so
    /// turned.
    fn filled(disks: u64, near: u64, far: u64, offset: bool, rows: u64) -> Vec<Vec<Option<u64>>> {
        let mut first = Vec::new();
        let chunks = rows * disks / near;
        let mut deal = (0..chunks).flat_map(|chunk| (0..near).map(move |_| chunk));
        for _ in 0..rows {
            first.push((0..disks).map(|_| deal.next()).collect::<Vec<_>>());
        }
        let turned = |row: &Vec<Option<u64>>, turn: u64| {
            let mut row = row.clone();
            row.rotate_right((turn * near % disks) as usize);
            row
        };
        let mut all = Vec::new();
        if offset {
            for row in &first {
                (0..far).for_each(|turn| all.push(turned(row, turn)));
            }
        } else {
            for turn in 0..far {
                first.iter().for_each(|row| all.push(turned(row, turn)));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn copies_lie_where_the_layouts_put_them(
            disks in 2_u64..8,
            near in 1_u64..4,
            far in 1_u64..4,
            offset: bool,
            rows in 1_u64..12,
            rest in 0_u64..3,
        ) {
            prop_assume!(near * far <= disks && near * far > 1);
            let chunk = 4096;
            let layout = near | far << 8 | u64::from(offset) << 16;
            let copies = Copies::of(layout, disks).unwrap();
            let component = (rows * far + rest.min(far - 1)) * chunk;
            let ten = Raid10::new(disks, chunk, copies, component).unwrap();
            let mut model: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
            for (row, members) in filled(disks, near, far, offset, rows).iter().enumerate() {
                for (slot, held) in members.iter().enumerate() {
                    if let Some(held) = held {
                        model.entry(*held).or_default().push((slot as u64, row as u64));
                    }
                }
            }
            prop_assert_eq!(ten.span(), rows * disks / near * chunk);
            for position in (0..ten.span()).step_by(chunk as usize) {
                let found = ten.places(position + 512);
                let mut found: Vec<(u64, u64)> = found
                    .iter()
                    .map(|place| {
                        assert_eq!(place.at % chunk, 512);
                        (u64::from(place.slot), place.at / chunk)
                    })
                    .collect();
                found.sort_unstable();
                let wanted = model.entry(position / chunk).or_default();
                wanted.sort_unstable();
                prop_assert_eq!(&found, wanted, "chunk {}", position / chunk);
            }
        }
    }

    #[test]
    fn sets_of_members_turn_within_themselves() {
        // Two far copies on four members in sets of two, as dm-raid makes them.
        let copies = Copies::of(1 | 2 << 8 | 2 << 17, 4).unwrap();
        let ten = Raid10::new(4, 4096, copies, 8 * 4096).unwrap();
        let slots = |chunk: u64| {
            ten.places(chunk * 4096)
                .iter()
                .map(|p| p.slot)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            [0, 1, 2, 3].map(slots),
            [[0, 1], [1, 0], [2, 3], [3, 2]].map(Vec::from)
        );
    }

    #[test]
    fn layouts_that_cannot_be_are_refused() {
        for (layout, disks) in [
            (0, 4),
            (0x302, 4),
            (0x100, 4),
            (0x102 | 3 << 17, 4),
            (0x201 | 2 << 17, 5),
        ] {
            assert_eq!(Copies::of(layout, disks), None, "{layout:#x}");
        }
        let copies = Copies::of(0x102, 4).unwrap();
        assert!(Raid10::new(4, 0, copies, 4096).is_none());
    }
}
