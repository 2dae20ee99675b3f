//! I/Os in the order of their issue, from sources that are nearly so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use record::Nanos;

use crate::io::Io;

/// I/Os that are held back at most: those that come later by more than so many are not brought into order.
pub(crate) const HELD: usize = 1 << 16;

/// A bounded buffer that sorts by time of issue, and keeps the order of I/Os of one time.
///
/// What arrives in order goes through a queue; only what does not costs a heap.
#[derive(Debug, Default)]
pub(crate) struct Reorder {
    in_order: VecDeque<Numbered>,
    late: BinaryHeap<Reverse<Numbered>>,
    count: u64,
}

/// An I/O with its number among all.
#[derive(Debug)]
struct Numbered(u64, Io);

impl Numbered {
    fn key(&self) -> (Nanos, u64) {
        (self.1.issued, self.0)
    }
}

impl PartialEq for Numbered {
    fn eq(&self, other: &Numbered) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Numbered {}
impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Numbered) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Numbered {
    fn cmp(&self, other: &Numbered) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Reorder {
    /// Takes an I/O in.
    pub(crate) fn push(&mut self, io: Io) {
        let io = Numbered(self.count, io);
        self.count += 1;
        match self.in_order.back() {
            Some(last) if last.1.issued > io.1.issued => self.late.push(Reverse(io)),
            _ => self.in_order.push_back(io),
        }
    }

    /// Number of I/Os that are held.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    /// I/Os that are held, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Io> {
        let late = self.late.iter().map(|Reverse(io)| &io.1);
        self.in_order.iter().map(|io| &io.1).chain(late)
    }

    /// The earliest that is held, which stays.
    pub(crate) fn peek(&self) -> Option<&Io> {
        match (self.late.peek(), self.in_order.front()) {
            (Some(Reverse(late)), _) if self.late_is_first() => Some(&late.1),
            (_, first) => first.map(|io| &io.1),
        }
    }

    fn late_is_first(&self) -> bool {
        match (self.late.peek(), self.in_order.front()) {
            (Some(Reverse(late)), Some(first)) => late.key() < first.key(),
            (late, _) => late.is_some(),
        }
    }

    /// The earliest that is held.
    pub(crate) fn pop(&mut self) -> Option<Io> {
        match self.late_is_first() {
            true => self.late.pop().map(|Reverse(io)| io.1),
            false => self.in_order.pop_front().map(|io| io.1),
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
        fn what_is_held_comes_out_sorted_and_stable(times in prop::collection::vec(0_u64..50, 0..200)) {
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
