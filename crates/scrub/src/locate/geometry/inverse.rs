//! Mapping of a member's bytes to the array's.

use std::ops::Range;

use record::Ranges;

use super::{Geometry, MemberOffset, Parity, PartRelation};

impl Geometry {
    /// The ranges of the array that these ranges of the member in a slot hold. The latter are in bytes from the start
    /// of the array's data. Parity holds no bytes of the array.
    pub(crate) fn above(&self, slot: u32, member: &Ranges) -> Ranges {
        match self {
            Geometry::Mirror { size, .. } => {
                let whole = Ranges::from(0..*size);
                member.intersect(&whole)
            }
            Geometry::Ten(ten) => pieces(member, |at| {
                let room = ten.room(at);
                (room, ten.position(MemberOffset { slot, at }))
            }),
            Geometry::Parity(parity) => {
                let whole = Ranges::from(0..parity.span());
                pieces(&member.intersect(&whole), |at| {
                    (parity.room(at), data_at(parity, slot, at))
                })
            }
        }
    }
}

/// Offset in the array of a byte of a member; `None` for parity.
fn data_at(parity: &Parity, slot: u32, at: u64) -> Option<u64> {
    let PartRelation::Stripe { data, .. } = parity.relation(at) else {
        return None;
    };
    let mut data = data.into_iter();
    let (_, offset) = data.find(|(place, _)| place.slot == slot)?;
    Some(offset)
}

/// Maps ranges of a member piece by piece. `of` returns the length of the piece from an offset on, and its offset in
/// the array, if it has one.
fn pieces(ranges: &Ranges, of: impl Fn(u64) -> (u64, Option<u64>)) -> Ranges {
    let mut found = Ranges::new();
    for Range { start, end } in ranges.iter() {
        let mut at = start;
        while at < end {
            let (room, position) = of(at);
            let length = room.clamp(1, end - at);
            if let Some(position) = position {
                found.insert(position..position + length);
            }
            at += length;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Copies, Raid10, Rotation};
    use super::*;
    use proptest::prelude::*;

    const CHUNK: u64 = 4096;

    /// Checks, for each piece of the array, that its locations on the members map back to it.
    fn leads_back(geometry: &Geometry) -> Result<(), TestCaseError> {
        for group in geometry.groups(&(0..u64::MAX)) {
            let places: Vec<(MemberOffset, u64)> = match group.relation {
                PartRelation::Copies(places) => {
                    let own = |place| (place, group.position);
                    places.into_iter().map(own).collect()
                }
                PartRelation::Stripe { data, p, q } => {
                    for place in [Some(p), q].into_iter().flatten() {
                        let parity = Ranges::from(place.at..place.at + group.length);
                        prop_assert!(geometry.above(place.slot, &parity).is_empty());
                    }
                    data
                }
            };
            for (place, array) in places {
                let member = Ranges::from(place.at..place.at + group.length);
                let wanted = Ranges::from(array..array + group.length);
                prop_assert_eq!(geometry.above(place.slot, &member), wanted);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_place_leads_back_to_what_lies_there(
            disks in 2_u64..8, near in 1_u64..4, far in 1_u64..4, offset: bool, rows in 1_u64..9,
        ) {
            prop_assume!(near * far <= disks);
            let layout = near | far << 8 | u64::from(offset) << 16;
            let copies = Copies::of(layout, disks).unwrap();
            let ten = Raid10::new(disks, CHUNK, copies, rows * far * CHUNK).unwrap();
            leads_back(&Geometry::Ten(ten))?;
        }

        #[test]
        fn data_is_distinguished_from_parity(disks in 4_u64..8, parities in 1_u64..3, stripes in 1_u64..20) {
            let rotation = Rotation::LeftSymmetric;
            let parity = Parity::new(disks, parities, CHUNK, rotation, stripes * CHUNK).unwrap();
            leads_back(&Geometry::Parity(parity))?;
        }
    }

    #[test]
    fn a_mirror_lies_as_it_is_and_ends_where_it_ends() {
        let mirror = Geometry::Mirror {
            disks: 2,
            size: 8192,
        };
        assert_eq!(
            mirror.above(1, &Ranges::from(4096..16_384)),
            Ranges::from(4096..8192)
        );
    }
}
