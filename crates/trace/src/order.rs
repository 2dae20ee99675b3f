//! Sorts entries by time, from sources that are nearly sorted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use record::Nanos;

use crate::event::Event;
use crate::io::Io;

/// An entry with a time.
pub(crate) trait Timed {
    /// Time by which entries are sorted.
    fn time(&self) -> Nanos;
}

impl Timed for Io {
    fn time(&self) -> Nanos {
        self.issued
    }
}

impl Timed for Event {
    fn time(&self) -> Nanos {
        self.time
    }
}

/// Maximum number of entries held back: an entry that is late by more than this number is not sorted.
pub(crate) const REORDER_ENTRIES: usize = 1 << 16;

/// A bounded buffer that sorts by time, and keeps the order of entries with equal times.
///
/// Entries that arrive in order go through a queue; only the others cost a heap.
#[derive(Debug)]
pub(crate) struct Reorder<T> {
    in_order: VecDeque<Numbered<T>>,
    late: BinaryHeap<Reverse<Numbered<T>>>,
    count: u64,
}

impl<T: Timed> Default for Reorder<T> {
    fn default() -> Reorder<T> {
        Reorder {
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            count: 0,
        }
    }
}

/// An entry with its sequence number.
#[derive(Debug)]
struct Numbered<T>(u64, T);

impl<T: Timed> Numbered<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.1.time(), self.0)
    }
}

impl<T: Timed> PartialEq for Numbered<T> {
    fn eq(&self, other: &Numbered<T>) -> bool {
        self.key() == other.key()
    }
}
impl<T: Timed> Eq for Numbered<T> {}
impl<T: Timed> PartialOrd for Numbered<T> {
    fn partial_cmp(&self, other: &Numbered<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T: Timed> Ord for Numbered<T> {
    fn cmp(&self, other: &Numbered<T>) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T: Timed> Reorder<T> {
    /// Adds an entry.
    pub(crate) fn push(&mut self, thing: T) {
        let thing = Numbered(self.count, thing);
        self.count += 1;
        match self.in_order.back() {
            Some(last) if last.1.time() > thing.1.time() => self.late.push(Reverse(thing)),
            _ => self.in_order.push_back(thing),
        }
    }

    /// Number of held entries.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    /// Held entries, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let late = self.late.iter().map(|Reverse(thing)| &thing.1);
        self.in_order.iter().map(|thing| &thing.1).chain(late)
    }

    /// The earliest held entry, which is not removed.
    pub(crate) fn peek(&self) -> Option<&T> {
        match (self.late.peek(), self.in_order.front()) {
            (Some(Reverse(late)), _) if self.late_is_first() => Some(&late.1),
            (_, first) => first.map(|first| &first.1),
        }
    }

    fn late_is_first(&self) -> bool {
        match (self.late.peek(), self.in_order.front()) {
            (Some(Reverse(late)), Some(first)) => late.key() < first.key(),
            (late, _) => late.is_some(),
        }
    }

    /// Removes the earliest held entry.
    pub(crate) fn pop(&mut self) -> Option<T> {
        match self.late_is_first() {
            true => self.late.pop().map(|Reverse(thing)| thing.1),
            false => self.in_order.pop_front().map(|thing| thing.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::tests::read_at;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn held_things_come_out_sorted_and_stable(times in prop::collection::vec(0_u64..50, 0..200)) {
            let mut order = Reorder::default();
            for (n, time) in times.iter().enumerate() {
                order.push(read_at(*time, n as u64));
            }
            let out: Vec<(u64, u64)> = std::iter::from_fn(|| order.pop())
                .map(|io| (io.issued.0, io.offset.0))
                .collect();
            let mut sorted: Vec<(u64, u64)> =
                times.iter().enumerate().map(|(n, time)| (*time, n as u64)).collect();
            sorted.sort();
            prop_assert_eq!(out, sorted);
        }
    }
}
