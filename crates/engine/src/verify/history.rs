//! Positions and numbers of the writes of a phase, to read them back.

use std::collections::BTreeMap;

/// A write of a phase that is verified: its position, length and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteRecord {
    pub position: u64,
    pub bytes: u64,
    pub number: u64,
}

/// The writes of a phase.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Number of the last write.
    last: u64,
    /// Writes that were neither overwritten nor read back, by position: length and number.
    writes: BTreeMap<u64, (u64, u64)>,
    /// Writes in flight.
    in_flight: Vec<WriteRecord>,
    /// Completed writes that are to be read back next.
    pending: Vec<WriteRecord>,
    /// Number of writes that overlapped another one in flight, so that it is unknown which came last.
    pub unjudged: u64,
}

impl History {
    /// Adds a write of `bytes` at `position` that is issued, and returns its number. With `keeps` it is kept to be
    /// read back.
    pub(super) fn issue(&mut self, position: u64, bytes: u64, keeps: bool) -> u64 {
        self.last += 1;
        let write = WriteRecord {
            position,
            bytes,
            number: self.last,
        };
        if keeps {
            self.forget(position, bytes);
            if self.in_flight.iter().any(|other| overlap(other, &write)) {
                self.unjudged += 1;
            } else {
                self.writes.insert(position, (bytes, self.last));
            }
            self.in_flight.push(write);
        }
        self.last
    }

    /// Processes a completed write. With `pending` it is read back next.
    pub(super) fn completed(&mut self, position: u64, pending: bool) {
        let Some(at) = self
            .in_flight
            .iter()
            .position(|other| other.position == position)
        else {
            return;
        };
        let write = self.in_flight.swap_remove(at);
        if pending {
            self.pending.push(write);
        }
    }

    /// Processes a failed write: the data at its position is unknown.
    pub(super) fn failed(&mut self, position: u64) {
        let Some(at) = self
            .in_flight
            .iter()
            .position(|other| other.position == position)
        else {
            return;
        };
        let write = self.in_flight.swap_remove(at);
        if self.is_last(&write) {
            self.writes.remove(&position);
        }
    }

    /// Takes the writes that are to be read back and were not overwritten.
    pub(super) fn take_pending(&mut self) -> Vec<WriteRecord> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|write| self.is_last(write));
        pending
    }

    /// Removes a write that was read back; false if it was overwritten meanwhile.
    pub(super) fn was_read_back(&mut self, write: &WriteRecord) -> bool {
        let is_last = self.is_last(write);
        if is_last {
            self.writes.remove(&write.position);
        }
        is_last
    }

    /// True if a write was neither overwritten nor read back.
    fn is_last(&self, write: &WriteRecord) -> bool {
        self.writes.get(&write.position) == Some(&(write.bytes, write.number))
    }

    /// Writes that were neither overwritten nor read back, by position.
    pub(super) fn all(&self) -> Vec<WriteRecord> {
        let write = |(position, (bytes, number)): (&u64, &(u64, u64))| WriteRecord {
            position: *position,
            bytes: *bytes,
            number: *number,
        };
        self.writes.iter().map(write).collect()
    }

    /// Removes the writes to a range that is overwritten.
    fn forget(&mut self, position: u64, bytes: u64) {
        let end = position + bytes;
        let before = self.writes.range(..position).next_back();
        let reaches = |(start, (length, _)): (&u64, &(u64, u64))| start + length > position;
        let first = before
            .filter(|write| reaches(*write))
            .map(|(start, _)| *start);
        let within = self.writes.range(position..end).map(|(start, _)| *start);
        for start in first.into_iter().chain(within).collect::<Vec<_>>() {
            self.writes.remove(&start);
        }
    }
}

fn overlap(one: &WriteRecord, other: &WriteRecord) -> bool {
    one.position < other.position + other.bytes && other.position < one.position + one.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(history: &History) -> Vec<(u64, u64)> {
        let all = history.all();
        all.iter()
            .map(|write| (write.position, write.number))
            .collect()
    }

    #[test]
    fn the_last_write_to_a_position_counts() {
        let mut history = History::default();
        for (position, bytes) in [(0, 16), (16, 16), (8, 16), (64, 8), (64, 8)] {
            history.issue(position, bytes, true);
            history.completed(position, true);
        }
        // The third overlaps the first and the second, and the last the fourth.
        assert_eq!(positions(&history), [(8, 3), (64, 5)]);
        let pending = history.take_pending();
        let numbers: Vec<u64> = pending.iter().map(|write| write.number).collect();
        assert_eq!(numbers, [3, 5]);
        assert!(history.take_pending().is_empty());
        assert_eq!(history.unjudged, 0);
        // One is overwritten while both are read back; the other is not read again.
        history.issue(64, 8, true);
        let read: Vec<bool> = pending.iter().map(|w| history.was_read_back(w)).collect();
        assert_eq!(
            (read, positions(&history)),
            (vec![true, false], vec![(64, 6)])
        );
    }

    #[test]
    fn overlapping_writes_in_flight_are_not_checked() {
        let mut history = History::default();
        history.issue(0, 16, true);
        history.issue(8, 16, true);
        history.issue(100, 8, true);
        for position in [0, 8, 100] {
            history.completed(position, false);
        }
        assert_eq!(positions(&history), [(100, 3)]);
        assert_eq!(history.unjudged, 1);
        // Later one of them is written alone.
        history.issue(0, 16, true);
        assert_eq!(positions(&history), [(0, 4), (100, 3)]);
    }

    #[test]
    fn a_write_that_failed_is_not_read_back() {
        let mut history = History::default();
        history.issue(0, 8, true);
        history.issue(8, 8, true);
        history.failed(0);
        history.completed(8, true);
        assert_eq!(positions(&history), [(8, 2)]);
        // The earlier data is unknown too.
        history.issue(8, 8, true);
        history.failed(8);
        assert_eq!(positions(&history), []);
    }
}
