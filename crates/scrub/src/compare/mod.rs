//! Direct comparison: reads the members of an array without md, while the array is in use, and compares their copies or
//! parity.
//!
//! Each member is read separately, one request after the other, each in an idle gap: a foreground request waits at most
//! for the rest of one read.
//!
//! An array that is in use is written while it is read, and a write does not reach all members at the same instant. So
//! ranges that differ are read again a few times, with pauses, and are dropped once they agree. Ranges that still
//! differ, or cannot be read, are only suspects: md's own check, which blocks writes meanwhile, decides.

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

/// Pause before each repeated read. A write takes milliseconds to reach all members, seldom more than some hundred.
const REREAD_DELAYS: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(400),
];

/// Request to compare a range.
struct Comparison {
    /// Positions of the check, in bytes.
    range: Range<u64>,
    /// Minimum time between two requests to a member, each of which waits for an idle gap; `None` at full speed.
    spacing: Option<Duration>,
}

/// Result of reading the members of an array and comparing them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComparisonResult {
    /// Positions of the check that are not known to agree, in sectors.
    pub suspects: Ranges,
    /// Longest time that reading a member took.
    pub read: Nanos,
}

/// Comparer of an array's members, with its own threads. They end when it is dropped; a thread that waits for a disk
/// which does not answer ends when the disk answers.
pub(crate) struct Comparer {
    requests: SyncSender<Comparison>,
    came: Receiver<ComparisonResult>,
}

impl Comparer {
    /// Starts the thread that compares the members of an array, which it opens for reading.
    ///
    /// # Errors
    /// When the array's layout is not supported, a member cannot be opened, or a thread cannot be started.
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

    /// Begins to compare these positions of the check; true if it begins. `spacing` is the minimum time between two
    /// requests to a member, which are made in idle gaps; `None` for full speed. At most one comparison runs at a
    /// time.
    pub(crate) fn begin(&self, range: &Range<Sectors>, spacing: Option<Nanos>) -> bool {
        let range = range.start.bytes().0..range.end.bytes().0;
        let spacing = spacing.map(|apart| Duration::from_nanos(apart.0));
        self.requests
            .try_send(Comparison { range, spacing })
            .is_ok()
    }

    /// Result of the comparison; `None` while it runs. If its thread has ended, the whole range is suspected.
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

/// Layout of the array and the readers of its members.
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
            // All members are read at once: data that is written between reads would differ again.
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

    /// The positions whose copies differ, and the longest time that reading a member took. Positions that could not be
    /// read are added to `unread`, and are not read again: a disk may retry an unreadable sector for many seconds.
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

/// Adds the blocks of a group that differ to `differ`, or, where a part of it was not read, the whole group to
/// `unread`.
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

    /// A RAID 10 of `disks` members in files, all of whose copies agree, and the files.
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

    /// Suspected ranges, where `happens` is called in each pause.
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

    /// RAID 5 or 6 of `disks` members in files, all of whose stripes agree, and the files.
    fn parity(disks: u64, parities: u64) -> (Work, Vec<File>) {
        let rotation = Rotation::LeftSymmetric;
        let parity = Parity::new(disks, parities, CHUNK, rotation, COMPONENT).unwrap();
        let (members, files) = members(disks as usize, COMPONENT);
        for stripe in 0..COMPONENT / CHUNK {
            let PartRelation::Stripe { data, p, q } = parity.relation(stripe * CHUNK) else {
                panic!();
            };
            // The first data block holds one byte throughout and the others zeros. Q multiplies the first by 1, so
            // that both parities equal it.
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
        // The write reaches this member in the second pause.
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
        // Only the second of two requests to a member fails, and it is not repeated.
        let both = Ranges::from(2 * half - (512 << 10)..2 * half + 2 * CHUNK);
        let mut unread = Ranges::new();
        let (differ, _) = work.differing(&both, None, &mut unread);
        assert_eq!((differ, unread), (Ranges::new(), first));
        assert!(ten.span() > 2 * half);
    }
}
