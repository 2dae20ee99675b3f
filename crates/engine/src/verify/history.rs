//! Places and numbers of the writes, for reading them back.

use std::collections::BTreeMap;

/// One write that nothing was written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub place: u64,
    pub bytes: u64,
    pub number: u64,
}

/// The writes of a phase.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Number of the last write.
    last: u64,
    /// By their places, those that nothing was written over.
    writes: BTreeMap<u64, (u64, u64)>,
    /// Writes that have not come back.
    in_flight: Vec<Written>,
    /// Writes that came back and wait to be read back.
    pending: Vec<Written>,
    /// Writes whose place another one in flight had too: nobody knows which came last.
    pub unjudged: u64,
}

impl History {
    /// A write of `bytes` at `place` goes out; gives its number. `keeps` says that it will be read back.
    pub(super) fn issue(&mut self, place: u64, bytes: u64, keeps: bool) -> u64 {
        self.last += 1;
        let write = Written {
            place,
            bytes,
            number: self.last,
        };
        if keeps {
            self.forget(place, bytes);
            if self.in_flight.iter().any(|other| overlap(other, &write)) {
                self.unjudged += 1;
            } else {
                self.writes.insert(place, (bytes, self.last));
            }
            self.in_flight.push(write);
        }
        self.last
    }

    /// A write came back. `pending` says that it is to be read back soon.
    pub(super) fn came_back(&mut self, place: u64, pending: bool) {
        let Some(at) = self.in_flight.iter().position(|other| other.place == place) else {
            return;
        };
        let write = self.in_flight.swap_remove(at);
        if pending {
            self.pending.push(write);
        }
    }

    /// A write failed: the data at its place is unknown.
    pub(super) fn failed(&mut self, place: u64) {
        let Some(at) = self.in_flight.iter().position(|other| other.place == place) else {
            return;
        };
        let write = self.in_flight.swap_remove(at);
        if self.is_last(&write) {
            self.writes.remove(&place);
        }
    }

    /// Takes those that wait to be read back and that nothing was written over.
    pub(super) fn take_pending(&mut self) -> Vec<Written> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|write| self.is_last(write));
        pending
    }

    /// True if nothing was written over a write.
    pub(super) fn is_last(&self, write: &Written) -> bool {
        self.writes.get(&write.place) == Some(&(write.bytes, write.number))
    }

    /// All that nothing was written over, by their places.
    pub(super) fn all(&self) -> Vec<Written> {
        let write = |(place, (bytes, number)): (&u64, &(u64, u64))| Written {
            place: *place,
            bytes: *bytes,
            number: *number,
        };
        self.writes.iter().map(write).collect()
    }

    /// Forgets what lies in these bytes, which are written anew.
    fn forget(&mut self, place: u64, bytes: u64) {
        let end = place + bytes;
        let before = self.writes.range(..place).next_back();
        let reaches = |(start, (length, _)): (&u64, &(u64, u64))| start + length > place;
        let first = before
            .filter(|write| reaches(*write))
            .map(|(start, _)| *start);
        let within = self.writes.range(place..end).map(|(start, _)| *start);
        for start in first.into_iter().chain(within).collect::<Vec<_>>() {
            self.writes.remove(&start);
        }
    }
}

fn overlap(one: &Written, other: &Written) -> bool {
    one.place < other.place + other.bytes && other.place < one.place + one.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(history: &History) -> Vec<(u64, u64)> {
        let all = history.all();
        all.iter()
            .map(|write| (write.place, write.number))
            .collect()
    }

    #[test]
    fn the_last_write_to_a_place_counts() {
        let mut history = History::default();
        for (place, bytes) in [(0, 16), (16, 16), (8, 16), (64, 8), (64, 8)] {
            history.issue(place, bytes, true);
            history.came_back(place, true);
        }
        // The third lies over the first and the second, and the last over the fourth.
        assert_eq!(places(&history), [(8, 3), (64, 5)]);
        let pending: Vec<u64> = history.take_pending().iter().map(|w| w.number).collect();
        assert_eq!(pending, [3, 5]);
        assert!(history.take_pending().is_empty());
        assert_eq!(history.unjudged, 0);
    }

    #[test]
    fn two_in_flight_at_one_place_are_not_judged() {
        let mut history = History::default();
        history.issue(0, 16, true);
        history.issue(8, 16, true);
        history.issue(100, 8, true);
        for place in [0, 8, 100] {
            history.came_back(place, false);
        }
        assert_eq!(places(&history), [(100, 3)]);
        assert_eq!(history.unjudged, 1);
        // Later one of them is written alone.
        history.issue(0, 16, true);
        assert_eq!(places(&history), [(0, 4), (100, 3)]);
    }

    #[test]
    fn a_write_that_failed_is_not_read_back() {
        let mut history = History::default();
        history.issue(0, 8, true);
        history.issue(8, 8, true);
        history.failed(0);
        history.came_back(8, true);
        assert_eq!(places(&history), [(8, 2)]);
        // What was there before is not known either.
        history.issue(8, 8, true);
        history.failed(8);
        assert_eq!(places(&history), []);
    }
}
