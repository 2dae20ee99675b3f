//! Whether parts of members that belong together agree, and which of them does not.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;

use record::Ranges;

use super::galois::{self, Syndromes, xor_into};
use super::geometry::{Group, Kin};

/// Which member a place's bytes speak against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// The one in this slot: the others agree without it.
    Member(u32),
    /// More than one, so that none can be named.
    Several,
    /// It cannot be told: there are two copies, or one parity.
    Untold,
}

impl Odd {
    /// The slot of the member that is named, if one is.
    pub(crate) fn slot(self) -> Option<u32> {
        match self {
            Odd::Member(slot) => Some(slot),
            Odd::Several | Odd::Untold => None,
        }
    }
}

/// The bytes of the array that the odd member holds.
pub(super) fn culprit(group: &Group, odd: Odd) -> Ranges {
    let Odd::Member(slot) = odd else {
        return Ranges::new();
    };
    let parts = group.array(&(0..group.length));
    match &group.kin {
        Kin::Copies(_) => parts.into_iter().collect(),
        Kin::Stripe { data, .. } => data
            .iter()
            .zip(parts)
            .filter(|((place, _), _)| place.slot == slot)
            .map(|(_, part)| part)
            .collect(),
    }
}

/// A number that stands for all bytes of some parts.
pub(super) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// Whether parts that belong together agree, and if not, which one does not.
pub(crate) fn judge(kin: &Kin, parts: &[&[u8]]) -> Option<Odd> {
    match kin {
        Kin::Copies(places) => {
            let odd = odd_copy(parts)?;
            let slot = odd
                .and_then(|index| places.get(index))
                .map(|place| place.slot);
            Some(slot.map_or(Odd::Untold, Odd::Member))
        }
        Kin::Stripe { q: None, .. } => {
            let (first, others) = parts.split_first()?;
            let mut sum = first.to_vec();
            others.iter().for_each(|part| xor_into(&mut sum, part));
            sum.iter().any(|byte| *byte != 0).then_some(Odd::Untold)
        }
        Kin::Stripe {
            data,
            p,
            q: Some(q),
        } => {
            let (own, parities) = parts.split_at_checked(data.len())?;
            let [own_p, own_q] = parities else {
                return None;
            };
            match Syndromes::of(own, own_p, own_q).odd() {
                galois::Odd::None => None,
                galois::Odd::P => Some(Odd::Member(p.slot)),
                galois::Odd::Q => Some(Odd::Member(q.slot)),
                galois::Odd::Data(index) => Some(
                    data.get(index)
                        .map_or(Odd::Several, |(place, _)| Odd::Member(place.slot)),
                ),
                galois::Odd::Several => Some(Odd::Several),
            }
        }
    }
}

/// Whether copies differ, and which one alone does: where there are three or more, and all others
/// are the same.
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
