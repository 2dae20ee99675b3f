//! `scrub --locate`: the locations where an array's members do not agree, and the files there.
//!
//! md counts mismatches and does not report where they are. So this process reads and compares the members itself,
//! without md. Nothing is written.

mod array;
mod geometry;
mod judge;
mod owners;
mod search;
mod upward;
mod walk;

pub(crate) use array::{Disks, NotCompared, OpenedArray, Writer, folder, geometry, open};
#[cfg(test)]
pub(crate) use geometry::{Copies, Parity, PartRelation, Raid10, Rotation};
pub(crate) use geometry::{Geometry, MemberOffset, RelatedParts};
pub(crate) use judge::{WrongMember, judge, restored};
pub(crate) use owners::{Owner, OwnerKind, Owners, owners};
pub(crate) use search::{BLOCK, Members, Mismatch, RereadSchedule, Summary, search};
pub(crate) use upward::above;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use domain::raid::Level;
use linux::Root;
use linux::block::{Device, Devices};
use record::{Bytes, Ranges};

/// Maximum number of mismatches that are listed; the others are counted.
const MAX_LISTED_MISMATCHES: usize = 10_000;

/// Located mismatches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Located {
    /// The mismatches, in order of position, at most [`MAX_LISTED_MISMATCHES`].
    pub mismatches: Vec<Mismatch>,
    /// Number of bytes of the check's positions that mismatch, including mismatches that are not listed.
    pub bytes: u64,
    /// Number of mismatches that are not listed.
    pub more: u64,
    /// Totals of the search.
    pub summary: Summary,
    /// Owners of the bytes at the mismatches.
    pub owners: Owners,
    /// Paths of the identified wrong members, by slot.
    pub members: BTreeMap<u32, String>,
}

/// Number of bytes to read from the members to find the mismatches in these positions of an array's check.
///
/// # Errors
/// When the array cannot be compared.
pub(crate) fn to_read(
    root: &Root,
    array: &Device,
    positions: &Ranges,
) -> Result<Bytes, NotCompared> {
    let geometry = array::geometry(&array::folder(root, array), array)?;
    let groups = positions.iter().flat_map(|range| {
        let groups: Vec<u64> = geometry
            .groups(&range)
            .map(|group| group.length * group.places().len() as u64)
            .collect();
        groups
    });
    Ok(Bytes(groups.sum()))
}

/// Finds the mismatches in these positions of an array's check, in bytes, and the owners of the data there.
///
/// # Errors
/// A sentence: when the array cannot be compared, or mounts cannot be read.
pub(crate) fn locate(
    root: &Root,
    devices: &Devices,
    array: &Device,
    positions: &Ranges,
    again: RereadSchedule,
    interrupt: &AtomicBool,
) -> anyhow::Result<Located> {
    let OpenedArray {
        geometry,
        mut members,
    } = open(root, devices, array)?;
    let mut located = Located::default();
    for range in positions.iter() {
        let Located {
            mismatches,
            bytes,
            more,
            ..
        } = &mut located;
        let summary = search(
            &geometry,
            &mut members,
            &range,
            again,
            interrupt,
            &mut |one| {
                *bytes += one.position.end - one.position.start;
                if mismatches.len() < MAX_LISTED_MISMATCHES {
                    mismatches.push(one);
                } else {
                    *more += 1;
                }
            },
        );
        located.summary.join(summary);
    }
    let odd = located.mismatches.iter().map(|one| one.odd);
    let unreadable = located.summary.unreadable.iter().map(|one| one.slot);
    let slots: Vec<u32> = odd
        .filter_map(WrongMember::slot)
        .chain(unreadable)
        .collect();
    for slot in slots {
        if let Some(label) = members.label(slot) {
            located.members.insert(slot, label.to_owned());
        }
    }
    let listed = located
        .mismatches
        .iter()
        .flat_map(|one| one.array.iter().collect::<Vec<_>>());
    let wanted: Ranges = listed.collect();
    if !wanted.is_empty() {
        located.owners = owners(root, devices, array.number, &wanted, interrupt)?;
    }
    Ok(located)
}

/// Sentence for levels with copies: a mismatch may be harmless. `None` for other levels.
pub(crate) fn harmless(level: Level) -> Option<&'static str> {
    level.has_copies().then_some(
        "On RAID 1 and 10 a mismatch need not be damage: a page that changes while md writes it to one \
         copy after the other, as swap and memory-mapped files do, may leave copies that differ in \
         data that nobody reads again (md(4), SCRUBBING AND MISMATCHES).",
    )
}
