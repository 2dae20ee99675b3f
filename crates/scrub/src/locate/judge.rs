//! Comparison of related parts, and identification of the wrong one.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::ops::Range;

use parity::{Syndromes, WrongPart, is_zero, or_into, xor_into};
use record::Ranges;

use super::geometry::{PartRelation, RelatedParts};

/// Granularity of the comparison, in bytes: the smallest unit that a disk reads or writes.
const SECTOR: u64 = 512;

/// The wrong member, as far as it can be identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongMember {
    /// The member in this slot: the others agree without it.
    Member(u32),
    /// More than one member, so that none can be identified.
    Several,
    /// The wrong member cannot be identified: there are two copies, or one parity.
    Untold,
}

impl WrongMember {
    /// Slot of the wrong member, if it is identified.
    pub(crate) fn slot(self) -> Option<u32> {
        match self {
            WrongMember::Member(slot) => Some(slot),
            WrongMember::Several | WrongMember::Untold => None,
        }
    }
}

/// The ranges of the array that may be wrong in a part of a group. If the wrong member is identified, they are those
/// that it holds (none for parity); otherwise those of all members. `part` is in bytes from the start of the group.
pub(super) fn doubtful(group: &RelatedParts, odd: WrongMember, part: &Range<u64>) -> Ranges {
    let parts = group.array(part);
    match (&group.relation, odd) {
        (PartRelation::Stripe { data, .. }, WrongMember::Member(slot)) => data
            .iter()
            .zip(parts)
            .filter(|((place, _), _)| place.slot == slot)
            .map(|(_, part)| part)
            .collect(),
        _ => parts.into_iter().collect(),
    }
}

/// The ranges of the wrong member in a part of a group, in bytes from the start of the array's data on it; empty where
/// no member is identified.
pub(super) fn on_member(group: &RelatedParts, odd: WrongMember, part: &Range<u64>) -> Ranges {
    let places = group.places().into_iter();
    places
        .filter(|place| Some(place.slot) == odd.slot())
        .map(|place| place.at + part.start..place.at + part.end)
        .collect()
}

/// The sectors in which related parts do not agree, in bytes from their start.
pub(super) fn differing_sectors(relation: &PartRelation, parts: &[&[u8]]) -> Ranges {
    let errors = errors(relation, parts);
    let sectors = errors.chunks(SECTOR as usize).enumerate();
    sectors
        .filter(|(_, errors)| !is_zero(errors))
        .map(|(index, errors)| {
            let start = index as u64 * SECTOR;
            start..start + errors.len() as u64
        })
        .collect()
}

/// A number for each byte, which is 0 where the parts agree.
fn errors(relation: &PartRelation, parts: &[&[u8]]) -> Vec<u8> {
    let Some((first, others)) = parts.split_first() else {
        return Vec::new();
    };
    match relation {
        PartRelation::Copies(_) => {
            let mut all = vec![0; first.len()];
            for part in others {
                let mut error = first.to_vec();
                xor_into(&mut error, part);
                or_into(&mut all, &error);
            }
            all
        }
        PartRelation::Stripe { q: None, .. } => {
            let mut sum = first.to_vec();
            others.iter().for_each(|part| xor_into(&mut sum, part));
            sum
        }
        PartRelation::Stripe { data, .. } => {
            let Some(Syndromes { mut p, q }) = syndromes(data.len(), parts) else {
                return Vec::new();
            };
            or_into(&mut p, &q);
            p
        }
    }
}

/// The syndromes of a stripe of RAID 6. The parts are `data` data blocks and the two parities.
fn syndromes(data: usize, parts: &[&[u8]]) -> Option<Syndromes> {
    match parts.split_at_checked(data)? {
        (data, [p, q]) => Some(Syndromes::of(data, p, q)),
        _ => None,
    }
}

/// Index of the wrong part among related parts, and its correct bytes, which follow from the others; `None` where the
/// parts agree or no single one is wrong.
pub(crate) fn restored(relation: &PartRelation, parts: &[&[u8]]) -> Option<(usize, Vec<u8>)> {
    let slot = judge(relation, parts)?.slot()?;
    let index = relation
        .places()
        .iter()
        .position(|place| place.slot == slot)?;
    let own = parts.get(index)?;
    let bytes = match relation {
        // All other copies are equal.
        PartRelation::Copies(_) => parts.get(usize::from(index == 0))?.to_vec(),
        PartRelation::Stripe { q: None, .. } => return None,
        PartRelation::Stripe { data, .. } => {
            let Syndromes { p, q } = syndromes(data.len(), parts)?;
            // An error in the data or in P equals the first syndrome, and one in Q equals the second.
            let is_q = index == data.len() + 1;
            let mut bytes = own.to_vec();
            xor_into(&mut bytes, if is_q { &q } else { &p });
            bytes
        }
    };
    Some((index, bytes))
}

/// Hash of the bytes of some parts.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// The wrong member among related parts; `None` where the parts agree.
pub(crate) fn judge(relation: &PartRelation, parts: &[&[u8]]) -> Option<WrongMember> {
    match relation {
        PartRelation::Copies(places) => {
            let odd = odd_copy(parts)?;
            let slot = odd
                .and_then(|index| places.get(index))
                .map(|place| place.slot);
            Some(slot.map_or(WrongMember::Untold, WrongMember::Member))
        }
        PartRelation::Stripe { q: None, .. } => {
            let differs = !is_zero(&errors(relation, parts));
            differs.then_some(WrongMember::Untold)
        }
        PartRelation::Stripe {
            data,
            p,
            q: Some(q),
        } => match syndromes(data.len(), parts)?.odd() {
            WrongPart::None => None,
            WrongPart::P => Some(WrongMember::Member(p.slot)),
            WrongPart::Q => Some(WrongMember::Member(q.slot)),
            WrongPart::Data(index) => {
                Some(data.get(index).map_or(WrongMember::Several, |(place, _)| {
                    WrongMember::Member(place.slot)
                }))
            }
            WrongPart::Several => Some(WrongMember::Several),
        },
    }
}

/// Compares copies: `None` where they agree. Otherwise the index of the wrong one, if there are three or more copies
/// and all others are equal.
fn odd_copy(parts: &[&[u8]]) -> Option<Option<usize>> {
    let (first, others) = parts.split_first()?;
    let differ: Vec<usize> = (1..parts.len()).filter(|at| parts[*at] != *first).collect();
    match differ[..] {
        [] => None,
        _ if parts.len() < 3 => Some(None),
        [one] => Some(Some(one)),
        _ => {
            let agree = others.windows(2).all(|pair| pair[0] == pair[1]);
            let first_is_odd = agree && differ.len() == others.len();
            Some(first_is_odd.then_some(0))
        }
    }
}
