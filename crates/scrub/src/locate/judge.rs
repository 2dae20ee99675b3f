//! Comparison of parts that belong together, and identification of the one that differs.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::ops::Range;

use record::Ranges;

use super::galois::{self, Syndromes, xor_into};
use super::geometry::{PartRelation, RelatedParts};

/// The finest part that is distinguished, in bytes: what a disk reads and writes at once.
const SECTOR: u64 = 512;

/// Member that is wrong, as far as the bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongMember {
    /// The one in this slot: the others agree without it.
    Member(u32),
    /// More than one, so that none can be named.
    Several,
    /// The wrong member cannot be identified: there are two copies, or one parity.
    Untold,
}

impl WrongMember {
    /// The slot of the member that is named, if one is.
    pub(crate) fn slot(self) -> Option<u32> {
        match self {
            WrongMember::Member(slot) => Some(slot),
            WrongMember::Several | WrongMember::Untold => None,
        }
    }
}

/// The bytes of the array that may be wrong in a part of a group, given in bytes from its begin: those of
/// the odd member where one is named, which are none where it holds parity there; else those of all members.
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

/// The bytes of the odd member that are wrong in a part of a group, from where the array's data begins on
/// it; none where no member is named.
pub(super) fn on_member(group: &RelatedParts, odd: WrongMember, part: &Range<u64>) -> Ranges {
    let places = group.places().into_iter();
    places
        .filter(|place| Some(place.slot) == odd.slot())
        .map(|place| place.at + part.start..place.at + part.end)
        .collect()
}

/// The sectors in which parts that belong together do not agree, in bytes from their begin.
pub(super) fn differing_sectors(relation: &PartRelation, parts: &[&[u8]]) -> Ranges {
    let errors = errors(relation, parts);
    let sectors = errors.chunks(SECTOR as usize).enumerate();
    sectors
        .filter(|(_, errors)| errors.iter().any(|error| *error != 0))
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
    let or_into = |sum: &mut [u8], bytes: &[u8]| {
        let both = sum.iter_mut().zip(bytes);
        both.for_each(|(sum, byte)| *sum |= byte);
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

/// The syndromes of a stripe of RAID 6, of which the parts are the data and the two parities.
fn syndromes(data: usize, parts: &[&[u8]]) -> Option<Syndromes> {
    match parts.split_at_checked(data)? {
        (data, [p, q]) => Some(Syndromes::of(data, p, q)),
        _ => None,
    }
}

/// The index of the odd one of parts that belong together, and its bytes as the others say that they are to
/// be; `None` where the parts agree or no single one is odd.
pub(crate) fn restored(relation: &PartRelation, parts: &[&[u8]]) -> Option<(usize, Vec<u8>)> {
    let slot = judge(relation, parts)?.slot()?;
    let index = relation
        .places()
        .iter()
        .position(|place| place.slot == slot)?;
    let own = parts.get(index)?;
    let bytes = match relation {
        // All others are the same.
        PartRelation::Copies(_) => parts.get(usize::from(index == 0))?.to_vec(),
        PartRelation::Stripe { q: None, .. } => return None,
        PartRelation::Stripe { data, .. } => {
            let Syndromes { p, q } = syndromes(data.len(), parts)?;
            // An error in the data or in P is added to the first syndrome as it is, and one in Q to the second.
            let is_q = index == data.len() + 1;
            let mut bytes = own.to_vec();
            xor_into(&mut bytes, if is_q { &q } else { &p });
            bytes
        }
    };
    Some((index, bytes))
}

/// A number that stands for all bytes of some parts.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// Compares parts that belong together: `None` where they agree, else the odd one.
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
            let differs = errors(relation, parts).iter().any(|error| *error != 0);
            differs.then_some(WrongMember::Untold)
        }
        PartRelation::Stripe {
            data,
            p,
            q: Some(q),
        } => match syndromes(data.len(), parts)?.odd() {
            galois::WrongPart::None => None,
            galois::WrongPart::P => Some(WrongMember::Member(p.slot)),
            galois::WrongPart::Q => Some(WrongMember::Member(q.slot)),
            galois::WrongPart::Data(index) => {
                Some(data.get(index).map_or(WrongMember::Several, |(place, _)| {
                    WrongMember::Member(place.slot)
                }))
            }
            galois::WrongPart::Several => Some(WrongMember::Several),
        },
    }
}

/// Compares copies; names the odd one where there are three or more, and all others are the same.
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
