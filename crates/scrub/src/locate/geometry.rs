//! Layout of an array: for every position of md's check, the related bytes of the members, and the bytes of the array
//! that they hold.
//!
//! md counts a check's position in bytes of the array for RAID 1 and RAID 10, and in bytes of one member for RAID 4, 5
//! and 6 (linux, drivers/md/md.c, md_do_sync: `resync_max_sectors` is the array's for RAID 10, and the members'
//! otherwise). Members are identified by their slots, and offsets on them are from the start of the array's data.

use std::ops::Range;

mod inverse;
mod parity;
mod raid10;

pub(crate) use parity::{Parity, Rotation};
pub(crate) use raid10::{Copies, Raid10};

/// Maximum number of bytes that are compared at once.
pub(crate) const MAX_COMPARE_BYTES: u64 = 128 << 10;

/// Bytes of a mirror that md checks at once (`RESYNC_BLOCK_SIZE` in drivers/md/raid1.c).
const RESYNC_BLOCK_BYTES: u64 = 64 << 10;

/// Layout of an array on its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Geometry {
    /// RAID 1: each member holds the whole array.
    Mirror {
        /// Number of slots.
        disks: u32,
        /// Size of the array, in bytes.
        size: u64,
    },
    /// RAID 10.
    Ten(Raid10),
    /// RAID 4, 5 and 6.
    Parity(Parity),
}

/// A location on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberOffset {
    /// The member's slot.
    pub slot: u32,
    /// Offset in bytes from the start of the array's data on it.
    pub at: u64,
}

/// Related parts of members at one position: [`RelatedParts::length`] bytes of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelatedParts {
    /// Position of the check, in bytes.
    pub position: u64,
    /// Length in bytes: at most [`MAX_COMPARE_BYTES`].
    pub length: u64,
    /// Relation between the parts.
    pub relation: PartRelation,
}

/// Relation between parts of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartRelation {
    /// Copies of the array's bytes at the position.
    Copies(Vec<MemberOffset>),
    /// Parts of a stripe.
    Stripe {
        /// The data blocks, each with its offset in the array, in the order of the second parity: the first is
        /// multiplied by 1, the next by the generator, and so on.
        data: Vec<(MemberOffset, u64)>,
        /// The first parity.
        p: MemberOffset,
        /// The second parity; `None` except with RAID 6.
        q: Option<MemberOffset>,
    },
}

impl PartRelation {
    /// The places of all members in it: those of the data first.
    pub(crate) fn places(&self) -> Vec<MemberOffset> {
        match self {
            PartRelation::Copies(places) => places.clone(),
            PartRelation::Stripe { data, p, q } => {
                let data = data.iter().map(|(place, _)| *place);
                data.chain([*p]).chain(*q).collect()
            }
        }
    }
}

impl RelatedParts {
    /// The places of all members in it: those of the data first.
    pub(crate) fn places(&self) -> Vec<MemberOffset> {
        self.relation.places()
    }

    /// The ranges of the array that a part of the group holds. `part` is in bytes from the start of the group.
    pub(crate) fn array(&self, part: &Range<u64>) -> Vec<Range<u64>> {
        let from = |offset: u64| offset + part.start..offset + part.end;
        match &self.relation {
            PartRelation::Copies(_) => vec![from(self.position)],
            PartRelation::Stripe { data, .. } => {
                data.iter().map(|(_, offset)| from(*offset)).collect()
            }
        }
    }
}

impl Geometry {
    /// Number of positions of a check, in bytes.
    pub(crate) fn span(&self) -> u64 {
        match self {
            Geometry::Mirror { size, .. } => *size,
            Geometry::Ten(ten) => ten.span(),
            Geometry::Parity(parity) => parity.span(),
        }
    }

    /// True if a single wrong member can be identified: with two copies or one parity it cannot.
    pub(crate) fn names_odd(&self) -> bool {
        match self {
            Geometry::Mirror { disks, .. } => *disks > 2,
            Geometry::Ten(ten) => ten.copies() > 2,
            Geometry::Parity(parity) => parity.parities() > 1,
        }
    }

    /// True if the array has parity: md caches stripes of such an array, both data and parity.
    pub(crate) fn has_parity(&self) -> bool {
        matches!(self, Geometry::Parity(_))
    }

    /// Unit of md's check, in bytes of its positions: md stops only at multiples of it.
    pub(crate) fn unit(&self) -> u64 {
        match self {
            Geometry::Mirror { .. } => RESYNC_BLOCK_BYTES,
            Geometry::Ten(ten) => ten.chunk(),
            Geometry::Parity(parity) => parity.chunk(),
        }
    }

    /// The range of the array at these positions, which are whole units.
    pub(crate) fn array(&self, positions: &Range<u64>) -> Range<u64> {
        match self {
            Geometry::Mirror { .. } | Geometry::Ten(_) => positions.clone(),
            Geometry::Parity(parity) => {
                positions.start * parity.width()..positions.end * parity.width()
            }
        }
    }

    /// Number of slots for members.
    pub(crate) fn disks(&self) -> u64 {
        match self {
            Geometry::Mirror { disks, .. } => u64::from(*disks),
            Geometry::Ten(ten) => ten.disks(),
            Geometry::Parity(parity) => parity.disks(),
        }
    }

    /// Related parts that start at a position; `None` after the end.
    pub(crate) fn group(&self, position: u64) -> Option<RelatedParts> {
        if position >= self.span() {
            return None;
        }
        let (room, relation) = match self {
            Geometry::Mirror { disks, size } => {
                let place = |slot| MemberOffset { slot, at: position };
                (
                    size - position,
                    PartRelation::Copies((0..*disks).map(place).collect()),
                )
            }
            Geometry::Ten(ten) => (
                ten.room(position),
                PartRelation::Copies(ten.places(position)),
            ),
            Geometry::Parity(parity) => (parity.room(position), parity.relation(position)),
        };
        let room = room.min(self.span() - position);
        Some(RelatedParts {
            position,
            length: room.min(MAX_COMPARE_BYTES - position % MAX_COMPARE_BYTES),
            relation,
        })
    }

    /// The groups of a range of positions, in order.
    pub(crate) fn groups(&self, range: &Range<u64>) -> impl Iterator<Item = RelatedParts> + '_ {
        let Range { start, end } = *range;
        let mut at = start;
        std::iter::from_fn(move || {
            let mut group = self.group(at).filter(|_| at < end)?;
            group.length = group.length.min(end - at);
            at += group.length;
            Some(group)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_the_same_everywhere_and_is_cut_into_parts() {
        let mirror = Geometry::Mirror {
            disks: 2,
            size: MAX_COMPARE_BYTES + 4096,
        };
        let groups: Vec<RelatedParts> = mirror.groups(&(4096..u64::MAX)).collect();
        let lengths: Vec<u64> = groups.iter().map(|group| group.length).collect();
        assert_eq!(lengths, [MAX_COMPARE_BYTES - 4096, 4096]);
        assert_eq!(
            groups[1].places(),
            [0, 1].map(|slot| MemberOffset {
                slot,
                at: MAX_COMPARE_BYTES
            })
        );
        let array = groups[1].array(&(512..1024));
        assert_eq!(
            (array.len(), &array[0]),
            (1, &(MAX_COMPARE_BYTES + 512..MAX_COMPARE_BYTES + 1024))
        );
        assert!(mirror.group(MAX_COMPARE_BYTES + 4096).is_none());
    }
}
