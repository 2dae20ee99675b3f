//! Compares the copies or the parity of an array's members by reading them directly, without md, while the array is
//! in use.
//!
//! Each member is read by itself, one request after the other, each in an idle gap: a foreground request waits for
//! the rest of one read at most.
//!
//! An array that is in use is written while it is read, and its members are not written at one instant. So a
//! difference is read again a few times, some time apart, and is dropped once it agrees. What still differs then, or
//! cannot be read, is only suspected: md's own check decides, which blocks writes meanwhile.

mod priority;
mod readers;

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::sleep;
use std::time::Duration;

use linux::Root;
use linux::block::{Device, Devices};
use linux::md::sync::Sectors;
use record::{Bytes, Nanos, Ranges};

use super::locate::{BLOCK, Geometry, NotCompared, OpenedArray, RelatedParts, judge, open};
use priority::lower_priority;
pub(super) use readers::REQUEST;
use readers::{Readers, Shares};

/// Pauses before each further read. A write is on its way to all members for milliseconds, seldom for longer
/// than some hundred.
const REREAD_DELAYS: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(400),
];

/// Positions to compare.
struct Comparison {
    /// Positions of the check, in bytes.
    range: Range<u64>,
    /// Pause after a request to a member before the next, where each waits for an idle gap.
    spacing: Option<Duration>,
}

/// Result of reading the members of an array and comparing them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComparisonResult {
    /// Positions of the check whose copies are not known to agree, in sectors.
    pub suspects: Ranges,
    /// Longest time that a member took to read.
    pub read: Nanos,
}

/// Compares an array's members, on threads of its own. They end with this; one that waits for a disk which does
/// not answer ends when that does.
pub(crate) struct Comparer {
    requests: SyncSender<Comparison>,
    came: Receiver<ComparisonResult>,
}

impl Comparer {
    /// Starts the thread that compares the members of an array, which it opens for reading.
    ///
    /// # Errors
    /// When its layout is not followed, a member cannot be opened, or there is no thread to be had.
    pub(crate) fn start(
        root: &Root,
        devices: &Devices,
        array: &Device,
    ) -> Result<Comparer, NotCompared> {
        let OpenedArray { geometry, members } = open(root, devices, array)?;
        if members.slots().len() as u64 != geometry.disks() {
            return Err(NotCompared::Silent(array.label(), "members"));
        }
        let not_started = |error: std::io::Error| {
            NotCompared::Member(array.node().display().to_string(), error.to_string())
        };
        let mut work = Work {
            readers: Readers::start(members).map_err(not_started)?,
            geometry,
        };
        let (requests, incoming) = sync_channel::<Comparison>(1);
        let (answer, came) = sync_channel(1);
        std::thread::Builder::new()
            .name("compare".to_owned())
            .spawn(move || {
                lower_priority();
                for comparison in incoming {
                    if answer.send(work.compare(&comparison, sleep)).is_err() {
                        return;
                    }
                }
            })
            .map_err(not_started)?;
        Ok(Comparer { requests, came })
    }

    /// Begins with these positions of the check, in idle gaps with so much time between two requests to a member, or
    /// with `None` at full speed; true if it begins. At most one comparison is under way.
    pub(crate) fn begin(&self, range: &Range<Sectors>, spacing: Option<Nanos>) -> bool {
        let range = range.start.bytes().0..range.end.bytes().0;
        let spacing = spacing.map(|apart| Duration::from_nanos(apart.0));
        self.requests
            .try_send(Comparison { range, spacing })
            .is_ok()
    }

    /// Result of the comparison; `None` while it is under way. A thread that is gone suspects everything.
    pub(crate) fn try_result(&self, range: &Range<Sectors>) -> Option<ComparisonResult> {
        match self.came.try_recv() {
            Ok(compared) => Some(compared),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(ComparisonResult {
                suspects: Ranges::from(range.start.0..range.end.0),
                read: Nanos(0),
            }),
        }
    }
}

/// Comparison under way, and its readers.
struct Work {
    geometry: Geometry,
    readers: Readers,
}

impl Work {
    fn compare(
        &mut self,
        comparison: &Comparison,
        pause_for: impl Fn(Duration),
    ) -> ComparisonResult {
        let requested = Ranges::from(comparison.range.clone());
        let mut suspects = Ranges::new();
        let (mut differ, read) = self.differing(&requested, comparison.spacing, &mut suspects);
        for pause in REREAD_DELAYS {
            if differ.is_empty() {
                break;
            }
            pause_for(pause);
            // Of all members at once: what is written meanwhile would differ again.
            differ = self.differing(&differ, None, &mut suspects).0;
        }
        let sector = Sectors(1).bytes().0;
        ComparisonResult {
            suspects: suspects
                .union(&differ)
                .iter()
                .map(|range| range.start / sector..range.end.div_ceil(sector))
                .collect(),
            read,
        }
    }

    /// Those of the positions whose copies differ. Adds positions that have nothing to compare with to `unread`: a
    /// disk may try for many seconds to read what it cannot, so that they are not read again.
    fn differing(
        &mut self,
        positions: &Ranges,
        spacing: Option<Duration>,
        unread: &mut Ranges,
    ) -> (Ranges, Nanos) {
        let mut differ = Ranges::new();
        let behind = positions.subtract(&Ranges::from(0..self.geometry.span()));
        *unread = unread.union(&behind);
        let mut groups: Vec<RelatedParts> = Vec::new();
        for range in positions.iter() {
            groups.extend(self.geometry.groups(&range));
        }
        let shares = self.readers.read(groups.iter(), spacing);
        let read = shares.as_ref().map_or(Nanos(0), Shares::longest);
        for group in &groups {
            differing_of(group, shares.as_ref(), &mut differ, unread);
        }
        if let Some(shares) = shares {
            self.readers.give_back(shares);
        }
        (differ, read)
    }
}

/// Adds the blocks of a group that differ, or all of it to what is `unread` where a part was not read.
fn differing_of(
    group: &RelatedParts,
    shares: Option<&Shares>,
    differ: &mut Ranges,
    unread: &mut Ranges,
) {
    let places = group.places();
    let parts: Option<Vec<&[u8]>> = places
        .iter()
        .map(|place| shares?.part(place.slot, place.at, Bytes(group.length)))
        .collect();
    let Some(parts) = parts else {
        unread.insert(group.position..group.position + group.length);
        return;
    };
    if judge(&group.relation, &parts).is_none() {
        return;
    }
    let mut at = 0;
    while at < group.length {
        let end = (at + BLOCK).min(group.length);
        let block: Vec<&[u8]> = parts
            .iter()
            .filter_map(|part| part.get(at as usize..end as usize))
            .collect();
        if judge(&group.relation, &block).is_some() {
            differ.insert(group.position + at..group.position + end);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::super::locate::{Copies, Parity, PartRelation, Raid10, Rotation};
    use super::readers::tests::members;
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    const CHUNK: u64 = 64 << 10;
    const COMPONENT: u64 = 1 << 20;

    /// A RAID 10 of so many members in files, all of whose copies agree, and the files.
    fn raid10(disks: u64, layout: u64) -> (Work, Raid10, Vec<File>) {
        let copies = Copies::of(layout, disks).unwrap();
        let ten = Raid10::new(disks, CHUNK, copies, COMPONENT).unwrap();
        let (members, files) = members(disks as usize, COMPONENT);
        for chunk in 0..ten.span() / CHUNK {
            let bytes = vec![(chunk % 251) as u8; CHUNK as usize];
            for place in ten.places(chunk * CHUNK) {
                files[place.slot as usize]
                    .write_all_at(&bytes, place.at)
                    .unwrap();
            }
        }
        let work = Work {
            geometry: Geometry::Ten(ten.clone()),
            readers: Readers::start(members).unwrap(),
        };
        (work, ten, files)
    }

    fn suspects(work: &mut Work, range: Range<u64>) -> Ranges {
        suspects_beside(work, range, |_| ())
    }

    /// The same, while this happens in each pause.
    fn suspects_beside(work: &mut Work, range: Range<u64>, happens: impl Fn(Duration)) -> Ranges {
        let comparison = Comparison {
            range,
            spacing: None,
        };
        let sectors = work.compare(&comparison, happens).suspects;
        sectors
            .iter()
            .map(|range| range.start * 512..range.end * 512)
            .collect()
    }

    #[test]
    fn differences_are_suspected_in_every_layout_and_nothing_else() {
        // near=2, far=2, offset=2, and near=3 of five.
        for (disks, layout) in [(4, 0x102), (4, 0x201), (4, 0x1_0201), (5, 0x103)] {
            let (mut work, ten, files) = raid10(disks, layout);
            let all = 0..ten.span();
            assert_eq!(
                suspects(&mut work, all.clone()),
                Ranges::new(),
                "{layout:#x}"
            );
            let bad = 5 * CHUNK + 8192;
            let place = ten.places(bad)[1];
            files[place.slot as usize]
                .write_all_at(b"other", place.at + 7)
                .unwrap();
            let found = Ranges::from(bad..bad + BLOCK);
            assert_eq!(suspects(&mut work, all.clone()), found, "{layout:#x}");
            assert_eq!(suspects(&mut work, 0..bad), Ranges::new());
        }
    }

    /// RAID 5 or 6 of so many members in files, all of whose stripes agree, and the files.
    fn parity(disks: u64, parities: u64) -> (Work, Vec<File>) {
        let rotation = Rotation::LeftSymmetric;
        let parity = Parity::new(disks, parities, CHUNK, rotation, COMPONENT).unwrap();
        let (members, files) = members(disks as usize, COMPONENT);
        for stripe in 0..COMPONENT / CHUNK {
            let PartRelation::Stripe { data, p, q } = parity.relation(stripe * CHUNK) else {
                panic!();
            };
            // With one byte in the first of the data, which Q multiplies by 1, both parities are that byte.
            let held = [Some(data[0].0), Some(p), q];
            for place in held.into_iter().flatten() {
                let bytes = vec![stripe as u8 + 1; CHUNK as usize];
                files[place.slot as usize]
                    .write_all_at(&bytes, place.at)
                    .unwrap();
            }
        }
        let work = Work {
            geometry: Geometry::Parity(parity),
            readers: Readers::start(members).unwrap(),
        };
        (work, files)
    }

    #[test]
    fn of_parity_what_differs_on_any_member_is_suspected_and_nothing_else() {
        for (disks, parities) in [(3, 1), (5, 1), (4, 2), (7, 2)] {
            let (mut work, files) = parity(disks, parities);
            assert_eq!(suspects(&mut work, 0..COMPONENT), Ranges::new());
            for (slot, file) in files.iter().enumerate() {
                let bad = 7 * CHUNK + 4096 * slot as u64;
                file.write_all_at(b"other", bad + 7).unwrap();
            }
            let found = Ranges::from(7 * CHUNK..7 * CHUNK + 4096 * disks);
            assert_eq!(
                suspects(&mut work, 0..COMPONENT),
                found,
                "{disks} {parities}"
            );
        }
    }

    #[test]
    fn of_a_mirror_what_differs_is_suspected() {
        let (members, files) = members(3, COMPONENT);
        let mut work = Work {
            geometry: Geometry::Mirror {
                disks: 3,
                size: COMPONENT,
            },
            readers: Readers::start(members).unwrap(),
        };
        assert_eq!(suspects(&mut work, 0..COMPONENT), Ranges::new());
        files[2].write_all_at(b"other", 5 * BLOCK + 1).unwrap();
        let found = Ranges::from(5 * BLOCK..6 * BLOCK);
        assert_eq!(suspects(&mut work, 0..COMPONENT), found);
    }

    #[test]
    fn a_block_that_agrees_when_it_is_read_again_is_not_suspected() {
        let (mut work, ten, files) = raid10(4, 0x102);
        let place = ten.places(0)[0];
        let file = &files[place.slot as usize];
        let mut right = vec![0; 512];
        file.read_exact_at(&mut right, place.at).unwrap();
        file.write_all_at(&[255; 512], place.at).unwrap();
        // The write comes to this member in the second pause.
        let arrives = |pause: Duration| {
            if pause == REREAD_DELAYS[1] {
                file.write_all_at(&right, place.at).unwrap();
            }
        };
        assert_eq!(suspects_beside(&mut work, 0..CHUNK, arrives), Ranges::new());
    }

    #[test]
    fn what_cannot_be_read_is_suspected() {
        let (mut work, ten, files) = raid10(4, 0x102);
        let half = COMPONENT / 2;
        files[1].set_len(half).unwrap();
        assert_eq!(suspects(&mut work, 0..2 * half), Ranges::new());
        // Of each row of two chunks, the first lies on the members 0 and 1.
        let row = 2 * half..2 * half + 2 * CHUNK;
        let first = Ranges::from(row.start..row.start + CHUNK);
        assert_eq!(suspects(&mut work, row), first);
        // Of two requests to a member only the second cannot be read, and is not read again.
        let both = Ranges::from(2 * half - (512 << 10)..2 * half + 2 * CHUNK);
        let mut unread = Ranges::new();
        let (differ, _) = work.differing(&both, None, &mut unread);
        assert_eq!((differ, unread), (Ranges::new(), first));
        assert!(ten.span() > 2 * half);
    }
}
