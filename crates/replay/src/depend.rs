//! Inference of what an I/O waited for, from times alone, by the rules of hfplayer (Haghdoost, He, Fredin and Du, "On the
//! Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017).
//!
//! An I/O may have been issued because others had completed: all those that completed at least [`LEAST`] before it
//! came. Of these only the last matter: one whose completion another parent had waited for in turn is reached through
//! that, and is pruned. Completion before arrival is an interval order, whose pruned edges are known at once: with L
//! the latest arrival among the completed, a parent is what completed after L. So at most as many are parents as were
//! in flight at L, and one more. An I/O that came longer than [`WINDOW`] after the last completion was started by a
//! clock, not by a completion.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An I/O that comes sooner after a completion was not caused by it: a process needs longer to be woken and to ask.
pub(crate) const LEAST: u64 = 2_000;
/// An I/O that comes later after the last completion was started by time.
pub(crate) const WINDOW: u64 = 100_000_000;

/// Completion of an I/O, with its arrival and its number.
type Completion = (u64, u64, u64);

/// I/O that an I/O waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Numbers of the I/Os that it waited for; none where it was started by time.
    pub(crate) parents: Vec<u64>,
    /// Time from the last of their completions until it came.
    pub(crate) think: u64,
}

/// Sees I/Os in the order of their arrival. It keeps those in flight, and those that completed since the latest
/// arrival among the completed.
#[derive(Debug, Default)]
pub(crate) struct Inference {
    in_flight: BinaryHeap<Reverse<Completion>>,
    /// Completed, in the order of completion.
    completed: VecDeque<(u64, u64)>,
    /// Latest arrival of a completed one.
    latest: u64,
}

impl Inference {
    /// I/O that I/O `number` waited for. It arrived and completed at these times, in nanoseconds.
    pub(crate) fn waits(&mut self, number: u64, arrival: u64, completed: Option<u64>) -> Waits {
        while let Some(Reverse((at, came, one))) = self.in_flight.peek().copied()
            && at + LEAST <= arrival
        {
            self.in_flight.pop();
            self.latest = self.latest.max(came);
            self.completed.push_back((at, one));
        }
        while let Some((at, _)) = self.completed.front()
            && at + LEAST <= self.latest
        {
            self.completed.pop_front();
        }
        if let Some(at) = completed {
            self.in_flight
                .push(Reverse((at.max(arrival), arrival, number)));
        }
        match self.completed.back() {
            Some((last, _)) if arrival - last <= WINDOW => Waits {
                parents: self.completed.iter().map(|(_, number)| *number).collect(),
                think: arrival - last,
            },
            _ => Waits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: u64 = 1000;

    fn all(ios: &[(u64, u64)]) -> Vec<Waits> {
        let mut inference = Inference::default();
        let mut waits = |(number, (came, done)): (usize, &(u64, u64))| {
            inference.waits(number as u64, *came, Some(*done))
        };
        ios.iter().enumerate().map(&mut waits).collect()
    }

    #[test]
    fn a_chain_waits_for_the_one_before_and_thinks() {
        let waits = all(&[(0, 100 * US), (130 * US, 200 * US), (250 * US, 300 * US)]);
        assert_eq!(waits[0], Waits::default());
        assert_eq!((&waits[1].parents[..], waits[1].think), (&[0][..], 30 * US));
        // The first is reached through the second.
        assert_eq!((&waits[2].parents[..], waits[2].think), (&[1][..], 50 * US));
    }

    #[test]
    fn a_batch_is_waited_for_as_a_whole_and_its_members_not_for_each_other() {
        let waits = all(&[
            (0, 50 * US),
            (US, 90 * US),
            (2 * US, 70 * US),
            (100 * US, 110 * US),
        ]);
        assert!(waits[..3].iter().all(|one| one.parents.is_empty()));
        assert_eq!(waits[3].parents, [0, 2, 1]);
        assert_eq!(waits[3].think, 10 * US);
    }

    #[test]
    fn what_comes_at_once_or_much_later_waits_for_nothing() {
        let at_once = all(&[(0, 100 * US), (101 * US, 200 * US)]);
        assert_eq!(at_once[1], Waits::default());
        let later = all(&[(0, 100 * US), (500_000 * US, 600_000 * US)]);
        assert_eq!(later[1], Waits::default());
    }

    proptest! {
        /// Against the definition: candidates are all that completed in time, less those that another candidate
        /// had waited for.
        #[test]
        fn the_pruned_parents_are_those_of_the_definition(
            gaps in prop::collection::vec((0_u64..50, 1_u64..200), 1..80),
        ) {
            let mut now = 0;
            let ios: Vec<(u64, u64)> = gaps
                .iter()
                .map(|(gap, took)| {
                    now += gap * US;
                    (now, now + took * US)
                })
                .collect();
            for (number, waits) in all(&ios).iter().enumerate() {
                let arrival = ios[number].0;
                let before = |a: usize, b: u64| ios[a].1 + LEAST <= b;
                let candidates: Vec<usize> = (0..number).filter(|a| before(*a, arrival)).collect();
                let covered = |a: usize| candidates.iter().any(|c| before(a, ios[*c].0));
                let mut expected: Vec<u64> =
                    candidates.iter().filter(|a| !covered(**a)).map(|a| *a as u64).collect();
                let mut parents = waits.parents.clone();
                parents.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(parents, expected);
            }
        }
    }
}
