//! The work of reading a device: ranges still to be read, ranges that were read, and ranges that cannot be.

use std::ops::Range;

use record::{Bytes, Nanos, Ranges};

use super::narrowing::Narrowing;
use super::queue::Queue;

/// Minimum size at which readable and unreadable parts are distinguished: a page.
const PAGE: u64 = 4096;

/// Next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadRequest {
    /// A planned block.
    Block(Range<u64>),
    /// A piece of a failed block.
    Piece(Range<u64>),
}

/// The work on one device. Its sets of ranges, each with a mark, are read one after another. Offsets and lengths are in
/// bytes of the device.
#[derive(Debug)]
pub struct Work<S> {
    queue: Queue<S>,
    narrowing: Narrowing,
    planned: Ranges,
    done: Ranges,
    unreadable: Ranges,
    /// Bytes read since this start.
    read: u64,
    /// Planned bytes that were neither read nor given up.
    left: u64,
    /// Smallest size of the device so far.
    end: Bytes,
}

impl<S: Copy> Work<S> {
    /// Work that reads these sets in blocks of `block` from a device of `size`, of which `done` was read before.
    pub fn new(sets: &[(S, Ranges)], block: Bytes, done: Ranges, size: Bytes) -> Work<S> {
        let planned = all(sets);
        Work {
            queue: Queue::new(sets, block),
            narrowing: Narrowing::default(),
            left: planned.total().0,
            planned,
            done,
            unreadable: Ranges::new(),
            read: 0,
            end: size,
        }
    }

    /// The mark of the set that is being read; `None` once everything was requested.
    pub fn set(&self) -> Option<S> {
        self.queue.set()
    }

    /// Ranges that were read, since this or an earlier start.
    pub fn done(&self) -> &Ranges {
        &self.done
    }

    /// Ranges that could not be read.
    pub fn unreadable(&self) -> &Ranges {
        &self.unreadable
    }

    /// Bytes read since this start.
    pub fn read(&self) -> Bytes {
        Bytes(self.read)
    }

    /// Planned bytes that were neither read nor given up.
    pub fn left(&self) -> Bytes {
        Bytes(self.left)
    }

    /// Smallest size of the device so far.
    pub fn end(&self) -> Bytes {
        self.end
    }

    /// True if a range counts as unreadable although parts of it may be readable, since finding out takes too long.
    pub fn is_coarse(&self) -> bool {
        self.narrowing.is_coarse()
    }

    /// Total time for which pieces of failed blocks were in flight.
    pub fn spent(&self, now: Nanos) -> Nanos {
        self.narrowing.spent(now)
    }

    /// Replaces the ranges that were not requested yet by these sets. `planned` is the whole plan from which they were
    /// made.
    pub fn replace(&mut self, sets: &[(S, Ranges)], planned: &Ranges) {
        self.queue.replace(sets);
        self.planned = self.planned.union(&planned.subtract(&self.done));
        self.end_at(self.end);
    }

    /// Sets the block size of further requests.
    pub fn cut_by(&mut self, block: Bytes) {
        self.queue.cut_by(block);
    }

    /// Next request, which then counts as in flight; `None` while there is none. Completions may add requests.
    pub fn next(&mut self, now: Nanos) -> Option<ReadRequest> {
        let near = self.narrowing.with_room();
        if let Some(piece) = near.and_then(|near| self.queue.next_piece(near)) {
            self.narrowing.note_issued(now, piece.clone());
            return Some(ReadRequest::Piece(piece));
        }
        self.queue.next_block().map(ReadRequest::Block)
    }

    /// Records the completion of a piece, whatever its result.
    pub fn note_completed(&mut self, now: Nanos, piece: &Range<u64>) {
        self.narrowing.note_completed(now, piece);
    }

    /// Records that a range was read.
    pub fn was_read(&mut self, range: Range<u64>) {
        self.read += range.end - range.start;
        // Bytes after a new end were subtracted before.
        let within = range.start..range.end.min(self.end.0);
        if within.is_empty() {
            return;
        }
        self.left = self.left.saturating_sub(within.end - within.start);
        self.done.insert(within);
    }

    /// Records that a range could not be read. It is requested again in pieces as long as the time limit permits, and
    /// else counts as unreadable. Returns the ranges that count as unreadable from now on.
    pub fn failed(&mut self, now: Nanos, range: &Range<u64>) -> Ranges {
        let within = range.start..range.end.min(self.end.0);
        let mut given_up = Ranges::new();
        if within.is_empty() {
            return given_up;
        }
        if !self.narrowing.has_time(now) {
            let pieces = self.queue.give_up_pieces();
            for piece in pieces.into_iter().chain([within]) {
                given_up.insert(piece.clone());
                self.give_up(piece);
            }
        } else if !self.queue.narrow(&within) {
            given_up.insert(within.clone());
            self.give_up(within);
        }
        given_up
    }

    /// Counts unreadable ranges as left again.
    pub fn mark_unread(&mut self, ranges: &Ranges) {
        self.unreadable = self.unreadable.subtract(ranges);
        self.left = self.count_left().0;
    }

    /// Removes the bytes after `size`: the device now ends there.
    pub fn end_at(&mut self, size: Bytes) {
        self.end = size;
        // If it grows again, it has other data there.
        self.done = self.done.intersect(&Ranges::all(size));
        self.queue.cut_at(size.0);
        self.planned = self.planned.intersect(&Ranges::all(size));
        self.left = self.count_left().0;
    }

    /// Planned bytes that are left, recomputed.
    pub fn count_left(&self) -> Bytes {
        let covered = self.done.union(&self.unreadable);
        self.planned.subtract(&covered).total()
    }

    /// Marks a range as unreadable.
    fn give_up(&mut self, range: Range<u64>) {
        if range.end - range.start > PAGE {
            self.narrowing.is_coarse_now();
        }
        self.left = self.left.saturating_sub(range.end - range.start);
        self.unreadable.insert(range);
    }
}

fn all<S>(sets: &[(S, Ranges)]) -> Ranges {
    sets.iter()
        .fold(Ranges::new(), |all, (_, ranges)| all.union(ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_pages_are_distinguished_from_good_ones_and_nothing_is_left() {
        let size = Bytes::mib(4);
        let bad: Ranges = [8192..12_288, 2_097_152..2_105_344].into_iter().collect();
        let mut work = Work::new(
            &[((), Ranges::all(size))],
            Bytes::kib(512),
            Ranges::new(),
            size,
        );
        let mut given_up = Ranges::new();
        while let Some(asked) = work.next(Nanos(0)) {
            let (ReadRequest::Block(range) | ReadRequest::Piece(range)) = asked.clone();
            if matches!(asked, ReadRequest::Piece(_)) {
                work.note_completed(Nanos(0), &range);
            }
            if bad.intersect(&Ranges::from(range.clone())).is_empty() {
                work.was_read(range);
            } else {
                given_up = given_up.union(&work.failed(Nanos(0), &range));
            }
        }
        assert_eq!(given_up, bad);
        assert_eq!(work.unreadable(), &bad);
        assert_eq!(work.done(), &Ranges::all(size).subtract(&bad));
        assert_eq!((work.left(), work.count_left()), (Bytes(0), Bytes(0)));
        assert!(!work.is_coarse());
        work.mark_unread(&bad);
        assert_eq!(
            (work.left(), work.unreadable().is_empty()),
            (bad.total(), true)
        );
        // After the device has shrunk, there may be other data later.
        work.end_at(Bytes::mib(1));
        let within = Ranges::all(Bytes::mib(1));
        assert_eq!(work.done(), &within.subtract(&bad));
    }
}
