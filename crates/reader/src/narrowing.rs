//! Narrows failed blocks down to unreadable pages: pieces in flight, and a limit on the total time.

use std::ops::Range;

use record::Nanos;

/// Number of pieces requested at once: some disks take half a minute for each that they cannot read, and a
/// few at a time leave the good blocks most of the disk.
pub const PIECES_IN_FLIGHT: usize = 8;
/// Maximum total time for finding out which parts of bad blocks can be read.
pub const MAX_NARROWING_TIME: Nanos = Nanos(600_000_000_000);

/// Blocks that are being narrowed down.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    in_flight: Vec<Range<u64>>,
    /// Time up to which `spent` counts, or since which pieces are in flight.
    since: Nanos,
    /// Time for which pieces were in flight before `since`.
    spent: Nanos,
    /// True if a range counts as unreadable although parts of it may be readable.
    is_coarse: bool,
}

impl Narrowing {
    /// The pieces in flight; `None` if there may be no more of them.
    pub(super) fn with_room(&self) -> Option<&[Range<u64>]> {
        (self.in_flight.len() < PIECES_IN_FLIGHT).then_some(&self.in_flight)
    }

    /// Records the issue of a piece.
    pub(super) fn note_issued(&mut self, now: Nanos, piece: Range<u64>) {
        if self.in_flight.is_empty() {
            self.since = now;
        }
        self.in_flight.push(piece);
    }

    /// Records the completion of a piece.
    pub(super) fn note_completed(&mut self, now: Nanos, piece: &Range<u64>) {
        self.spent = self.spent(now);
        self.since = now;
        self.in_flight.retain(|other| other != piece);
    }

    /// Total time for which pieces were in flight.
    pub(super) fn spent(&self, now: Nanos) -> Nanos {
        if self.in_flight.is_empty() {
            self.spent
        } else {
            self.spent + (now - self.since)
        }
    }

    /// True if there is time for more.
    pub(super) fn has_time(&self, now: Nanos) -> bool {
        self.spent(now) < MAX_NARROWING_TIME
    }

    /// Records that a range counts as unreadable although parts of it may be readable.
    pub(super) fn is_coarse_now(&mut self) {
        self.is_coarse = true;
    }

    /// True if a range counts as unreadable although parts of it may be readable.
    pub(super) fn is_coarse(&self) -> bool {
        self.is_coarse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_once_however_many_are_in_flight() {
        let mut narrowing = Narrowing::default();
        let second = |number: u64| Nanos::from_secs(number);
        narrowing.note_issued(second(10), 0..1);
        narrowing.note_issued(second(11), 2..3);
        narrowing.note_completed(second(13), &(0..1));
        assert_eq!(narrowing.spent(second(14)), second(4));
        narrowing.note_completed(second(15), &(2..3));
        assert_eq!(narrowing.spent(second(100)), second(5));
        narrowing.note_issued(second(100), 0..1);
        assert!(narrowing.has_time(second(694)) && !narrowing.has_time(second(695)));
    }

    #[test]
    fn there_is_room_for_a_few() {
        let mut narrowing = Narrowing::default();
        for piece in 0..PIECES_IN_FLIGHT as u64 {
            assert!(narrowing.with_room().is_some());
            narrowing.note_issued(Nanos(0), 10 * piece..10 * piece + 1);
        }
        assert_eq!(narrowing.with_room(), None);
        narrowing.note_completed(Nanos(1), &(0..1));
        assert!(narrowing.with_room().is_some());
    }
}
