//! Readers of an array's members: each member has its own thread, which reads in the member's idle gaps. A member that
//! is slow or busy delays the comparison, but not the reads of the other members.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use record::{Bytes, Nanos};

use super::super::locate::{Disks, RelatedParts};
use super::priority::lower_priority;
use reader::{Buffer, IdleGap};

/// Maximum size that cloud volumes count as one request (EBS: 256 KiB on SSD volumes).
pub(crate) const REQUEST: Bytes = Bytes::kib(256);

/// Data read from one member: ranges in bytes of the member, concatenated in memory.
pub(super) struct MemberData {
    slot: u32,
    ranges: Vec<Range<u64>>,
    /// See [`IdleGap::read`]; `None` not to wait.
    spacing: Option<Duration>,
    /// Total time of the reads.
    took: Duration,
    buffer: Buffer,
    /// Ranges that could not be read.
    failed: Vec<Range<u64>>,
}

impl MemberData {
    fn length(&self) -> usize {
        let lengths = self.ranges.iter().map(|range| range.end - range.start);
        lengths.sum::<u64>() as usize
    }

    /// Reads the ranges, one request after the other, each in an idle gap.
    fn read(&mut self, members: &Disks, idle_gap: &mut IdleGap) {
        let (slot, spacing) = (self.slot, self.spacing);
        let mut took = Duration::ZERO;
        let mut rest = self.buffer.part_mut(0);
        for request in self.ranges.iter().flat_map(requests_of) {
            let taken = std::mem::take(&mut rest);
            let (part, behind) = taken.split_at_mut((request.end - request.start) as usize);
            rest = behind;
            let read = || members.read_at(slot, request.start, part);
            let (read, lasted) = idle_gap.read(spacing, || members.counted(slot), read);
            if read.is_err() {
                self.failed.push(request);
            }
            took += lasted;
        }
        self.took = took;
    }

    /// The data at offset `at` of the member; `None` where it was not read.
    fn part(&self, at: u64, length: Bytes) -> Option<&[u8]> {
        let is_in = |failed: &Range<u64>| failed.start < at + length.0 && at < failed.end;
        if self.failed.iter().any(is_in) {
            return None;
        }
        let mut before = 0;
        for range in &self.ranges {
            if range.contains(&at) {
                let from = before + (at - range.start) as usize;
                return self.buffer.part(0).get(from..from + length.0 as usize);
            }
            before += (range.end - range.start) as usize;
        }
        None
    }
}

/// Data read from all members.
pub(super) struct Shares(BTreeMap<u32, MemberData>);

impl Shares {
    /// Longest time that reading a member took.
    pub(super) fn longest(&self) -> Nanos {
        let longest = self.0.values().map(|share| share.took).max();
        longest.map_or(Nanos(0), Nanos::from)
    }

    /// Data of a member at `at`, in bytes from the start of the array's data on it; `None` where it was not read.
    pub(super) fn part(&self, slot: u32, at: u64, length: Bytes) -> Option<&[u8]> {
        self.0.get(&slot)?.part(at, length)
    }
}

/// The threads that read, one for each member.
pub(super) struct Readers {
    senders: BTreeMap<u32, Sender<MemberData>>,
    came: Receiver<MemberData>,
    /// Buffers of earlier reads, for reuse.
    spare: Vec<Buffer>,
}

impl Readers {
    /// Starts a thread for each of these members.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn start(members: Disks) -> io::Result<Readers> {
        let members = Arc::new(members);
        let (answer, came) = channel();
        let mut senders = BTreeMap::new();
        for slot in members.slots() {
            let (sender, sent) = channel::<MemberData>();
            let (members, answer) = (Arc::clone(&members), answer.clone());
            std::thread::Builder::new()
                .name(format!("member {slot}"))
                .spawn(move || {
                    lower_priority();
                    let mut idle_gap = IdleGap::default();
                    for mut share in sent {
                        share.read(&members, &mut idle_gap);
                        if answer.send(share).is_err() {
                            return;
                        }
                    }
                })?;
            senders.insert(slot, sender);
        }
        Ok(Readers {
            senders,
            came,
            spare: Vec::new(),
        })
    }

    /// Reads the parts of these groups from all members at once; missing members are left out. `spacing` is the
    /// minimum time between two requests to a member, which are made in idle gaps; `None` for full speed. Returns
    /// `None` where a thread has ended.
    pub(super) fn read<'a>(
        &mut self,
        groups: impl Iterator<Item = &'a RelatedParts>,
        spacing: Option<Duration>,
    ) -> Option<Shares> {
        let mut sent = 0;
        for (slot, ranges) in ranges(groups) {
            if let Some(sender) = self.senders.get(&slot) {
                let mut share = MemberData {
                    slot,
                    ranges,
                    spacing,
                    took: Duration::ZERO,
                    buffer: self.spare.pop().unwrap_or_else(|| Buffer::new(1, 0)),
                    failed: Vec::new(),
                };
                share.buffer.reserve(1, share.length());
                sender.send(share).ok()?;
                sent += 1;
            }
        }
        let mut shares = BTreeMap::new();
        for _ in 0..sent {
            let share = self.came.recv().ok()?;
            shares.insert(share.slot, share);
        }
        Some(Shares(shares))
    }

    /// Returns the buffers of a finished comparison for reuse.
    pub(super) fn give_back(&mut self, shares: Shares) {
        let shares = shares.0.into_values();
        self.spare.extend(shares.map(|share| share.buffer));
    }
}

/// The range, divided into requests.
fn requests_of(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let (start, end) = (range.start, range.end);
    (start..end)
        .step_by(REQUEST.0 as usize)
        .map(move |from| from..end.min(from + REQUEST.0))
}

/// Ranges to read from each member for these groups; adjacent ranges are joined.
fn ranges<'a>(groups: impl Iterator<Item = &'a RelatedParts>) -> BTreeMap<u32, Vec<Range<u64>>> {
    let mut all: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
    for group in groups {
        for place in group.places() {
            let ranges = all.entry(place.slot).or_default();
            let end = place.at + group.length;
            match ranges.iter_mut().find(|range| range.end == place.at) {
                Some(before) => before.end = end,
                None => ranges.push(place.at..end),
            }
        }
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use std::fs::File;

    /// `number` members in files of `length` bytes, and the files.
    pub(in super::super) fn members(number: usize, length: u64) -> (Disks, Vec<File>) {
        let files: Vec<File> = (0..number)
            .map(|_| {
                let file = tempfile::tempfile().unwrap();
                file.set_len(length).unwrap();
                file
            })
            .collect();
        let clones = files.iter().map(|file| file.try_clone().unwrap());
        (Disks::of_files(clones.collect()), files)
    }
}
