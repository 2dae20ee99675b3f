//! Search for the blocks in which members do not agree, by reading the members.
//!
//! An array that is in use is written while it is read, and a write does not reach all members at the same instant. So
//! a block counts only if it differs in several reads, with pauses between them, and holds the same bytes in all of
//! them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use record::Ranges;

use super::geometry::{self, Geometry, PartRelation, RelatedParts};
use super::judge::{WrongMember, differing_sectors, doubtful, hash, judge, on_member};
use reader::Buffer;

/// Size of a block that is compared: a page, the unit in which md checks RAID 5 and 6.
pub(crate) const BLOCK: u64 = 4096;
/// Maximum number of suspected blocks that are collected before they are read again.
const MAX_SUSPECTS: usize = 4096;
/// Maximum number of unreadable parts that are listed; the others are counted.
const MAX_LISTED_UNREADABLE: usize = 256;
/// Longest pause between two polls of the interrupt.
const POLL: Duration = Duration::from_millis(50);

/// Access to the members of an array.
pub(crate) trait Members {
    /// True if the member in a slot is present and in sync: a missing or recovering member cannot be compared.
    fn has(&self, slot: u32) -> bool;

    /// Start of the array's data on the member in a slot, in bytes of its device.
    fn offset(&self, slot: u32) -> u64;

    /// Reads at offset `at`, in bytes from the start of the array's data on the member, until `into` is full. It reads
    /// the disk itself, not a cache.
    ///
    /// # Errors
    /// When the read fails.
    fn read(&mut self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Contiguous sectors that do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The positions of the check, in whole sectors.
    pub position: Range<u64>,
    /// Ranges of the array that may be wrong. If the wrong member is identified, they are those that it holds (none for
    /// parity); otherwise all data at these positions.
    pub array: Ranges,
    /// Ranges on the wrong member, in bytes of its device; empty where none is identified.
    pub device: Ranges,
    /// The wrong member.
    pub odd: WrongMember,
}

/// A part of a member that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The positions of the check.
    pub position: Range<u64>,
    /// The member's slot.
    pub slot: u32,
    /// The disk's error.
    pub error: String,
}

/// Totals of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Number of positions that were compared, in bytes.
    pub compared: u64,
    /// Number of positions with only one member present, which could not be compared, in bytes.
    pub alone: u64,
    /// Number of blocks that differed at first and later agreed or had changed, since they were being written.
    pub moving: u64,
    /// The first unreadable parts, at most [`MAX_LISTED_UNREADABLE`].
    pub unreadable: Vec<Unreadable>,
    /// Number of further unreadable parts.
    pub more_unreadable: u64,
    /// True if it was interrupted before its end.
    pub interrupted: bool,
}

impl Summary {
    /// Adds the result of another range.
    pub(crate) fn join(&mut self, other: Summary) {
        self.compared += other.compared;
        self.alone += other.alone;
        self.moving += other.moving;
        self.more_unreadable += other.more_unreadable;
        self.interrupted |= other.interrupted;
        for one in other.unreadable {
            if self.unreadable.len() < MAX_LISTED_UNREADABLE {
                self.unreadable.push(one);
            } else {
                self.more_unreadable += 1;
            }
        }
    }
}

/// Schedule of repeated reads of a block that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RereadSchedule {
    /// Number of reads.
    pub rounds: u32,
    /// Pause before each read.
    pub pause: Duration,
}

impl RereadSchedule {
    /// Schedule for an array in use: a write reaches all members within milliseconds, seldom more than some hundred.
    pub(crate) const LIVE: RereadSchedule = RereadSchedule {
        rounds: 3,
        pause: Duration::from_millis(300),
    };
}

/// Finds the mismatches in a range of positions of the check, and calls `each` for every one, in order. Adjacent
/// mismatches of the same member are joined.
pub(crate) fn search(
    geometry: &Geometry,
    members: &mut dyn Members,
    range: &Range<u64>,
    again: RereadSchedule,
    interrupt: &AtomicBool,
    each: &mut dyn FnMut(Mismatch),
) -> Summary {
    let mut search = Search {
        geometry,
        buffer: None,
        members,
        again,
        interrupt,
        suspects: Vec::new(),
        pending: None,
        each,
        summary: Summary::default(),
    };
    // Blocks are aligned as md's.
    search.run(range.start / BLOCK * BLOCK..range.end);
    search.summary
}

/// A block that differed.
struct Suspect {
    position: u64,
    /// Hash of the block's bytes on all members.
    hash: u64,
}

struct Search<'a> {
    geometry: &'a Geometry,
    members: &'a mut dyn Members,
    buffer: Option<Buffer>,
    again: RereadSchedule,
    interrupt: &'a AtomicBool,
    suspects: Vec<Suspect>,
    /// The last mismatch, to which the next one may be joined.
    pending: Option<Mismatch>,
    each: &'a mut dyn FnMut(Mismatch),
    summary: Summary,
}

impl Search<'_> {
    fn run(&mut self, range: Range<u64>) {
        let geometry = self.geometry;
        for group in geometry.groups(&range) {
            if self.is_interrupted() {
                break;
            }
            self.compare_group(&group);
            if self.suspects.len() >= MAX_SUSPECTS {
                self.confirm();
            }
        }
        self.confirm();
        if let Some(last) = self.pending.take() {
            (self.each)(last);
        }
        self.summary.interrupted = self.is_interrupted();
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// The group without missing members; `None` where there is nothing to compare.
    fn present(&self, group: &RelatedParts) -> Option<RelatedParts> {
        let mut group = group.clone();
        match &mut group.relation {
            PartRelation::Copies(places) => {
                places.retain(|place| self.members.has(place.slot));
                (places.len() > 1).then_some(group)
            }
            PartRelation::Stripe { .. } => {
                let all = group.places();
                let is_whole = all.iter().all(|place| self.members.has(place.slot));
                is_whole.then_some(group)
            }
        }
    }

    /// Compares a group, and adds its blocks that differ to the suspects.
    fn compare_group(&mut self, group: &RelatedParts) {
        let Some(group) = self.present(group) else {
            self.summary.alone += group.length;
            return;
        };
        if !self.read(&group) {
            return;
        }
        self.summary.compared += group.length;
        let Some(buffer) = &self.buffer else {
            return;
        };
        let mut at = 0;
        while at < group.length {
            let end = (at + BLOCK).min(group.length);
            let parts = buffer.parts(at as usize..end as usize);
            if judge(&group.relation, &parts).is_some() {
                self.suspects.push(Suspect {
                    position: group.position + at,
                    hash: hash(&parts),
                });
            }
            at = end;
        }
    }

    /// Reads a whole group; true if that succeeded.
    fn read(&mut self, group: &RelatedParts) -> bool {
        let places = group.places();
        let length = group.length as usize;
        let most = length.max(geometry::MAX_COMPARE_BYTES as usize);
        let mut buffer = self
            .buffer
            .take()
            .unwrap_or_else(|| Buffer::new(places.len(), most));
        buffer.reserve(places.len(), length);
        let mut went_well = true;
        for (index, place) in places.iter().enumerate() {
            if let Err(error) = self
                .members
                .read(place.slot, place.at, buffer.part_mut(index))
            {
                went_well = false;
                self.note_unreadable(group, place.slot, &error);
            }
        }
        self.buffer = Some(buffer);
        went_well
    }

    fn note_unreadable(&mut self, group: &RelatedParts, slot: u32, error: &io::Error) {
        if self.summary.unreadable.len() >= MAX_LISTED_UNREADABLE {
            self.summary.more_unreadable += 1;
            return;
        }
        self.summary.unreadable.push(Unreadable {
            position: group.position..group.position + group.length,
            slot,
            error: error.to_string(),
        });
    }

    /// Reads the suspects repeatedly, and reports those that still differ and have not changed.
    fn confirm(&mut self) {
        let mut suspects = std::mem::take(&mut self.suspects);
        for _ in 0..self.again.rounds {
            if suspects.is_empty() || !self.pause() {
                break;
            }
            let before = suspects.len();
            suspects.retain(|suspect| self.judge_again(suspect).is_some());
            self.summary.moving += (before - suspects.len()) as u64;
        }
        if self.is_interrupted() {
            return;
        }
        for suspect in &suspects {
            match self.judge_again(suspect) {
                Some(found) => found.into_iter().for_each(|one| self.push_mismatch(one)),
                None => self.summary.moving += 1,
            }
        }
    }

    /// Waits; true if it was not interrupted.
    fn pause(&self) -> bool {
        let mut left = self.again.pause;
        while !left.is_zero() && !self.is_interrupted() {
            let step = left.min(POLL);
            thread::sleep(step);
            left -= step;
        }
        !self.is_interrupted()
    }

    /// Mismatches of a suspected block after another read, by sector; `None` if it agrees now, has changed, or cannot
    /// be read.
    fn judge_again(&mut self, suspect: &Suspect) -> Option<Vec<Mismatch>> {
        let mut group = self.geometry.group(suspect.position)?;
        group.length = group.length.min(BLOCK);
        let group = self.present(&group)?;
        if !self.read(&group) {
            return None;
        }
        let parts = self.buffer.as_ref()?.parts(0..group.length as usize);
        let odd = judge(&group.relation, &parts)?;
        if hash(&parts) != suspect.hash {
            return None;
        }
        let offset = odd.slot().map_or(0, |slot| self.members.offset(slot));
        let shifted = |range: Range<u64>| range.start + offset..range.end + offset;
        let sectors = differing_sectors(&group.relation, &parts);
        let found = sectors.iter().map(|part| Mismatch {
            position: group.position + part.start..group.position + part.end,
            array: doubtful(&group, odd, &part),
            device: on_member(&group, odd, &part).iter().map(shifted).collect(),
            odd,
        });
        Some(found.collect())
    }

    /// Adds a mismatch: joins it to the previous one where they are adjacent, otherwise reports the previous one.
    fn push_mismatch(&mut self, found: Mismatch) {
        match &mut self.pending {
            Some(last) if last.position.end == found.position.start && last.odd == found.odd => {
                last.position.end = found.position.end;
                last.array = last.array.union(&found.array);
                last.device = last.device.union(&found.device);
            }
            pending => {
                if let Some(last) = pending.replace(found) {
                    (self.each)(last);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
