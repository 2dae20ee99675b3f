//! Inference of what an I/O waited for, from times alone, by the rules of hfplayer (Haghdoost, He, Fredin and Du, "On the
//! Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017).
//!
//! An I/O may have been issued because others had completed: all those that completed at least [`LEAST`] before it
//! came. These are the first so many in the order of completion, so that they need no list for each I/O: one that
//! comes later waits for the same ones, and for those that completed since. One that came long after the last
//! completion was started by a clock; it comes as long after that completion again, since a load that a slower disk has
//! put back has put back its clock as well.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An I/O that comes sooner after a completion was not caused by it: a process needs longer to be woken and to ask.
pub(crate) const LEAST: u64 = 2_000;

/// I/Os that an I/O waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Numbers of the I/Os that had completed before it came, less those of the I/Os before it, in the order of
    /// completion.
    pub(crate) completed: Vec<u64>,
    /// Time from the last completion until it came; `None` where nothing had completed.
    pub(crate) think: Option<u64>,
}

/// Sees I/Os in the order of their arrival. It keeps those in flight.
#[derive(Debug, Default)]
pub(crate) struct Inference {
    /// Completions with the I/Os' numbers.
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    /// The last completion.
    last: Option<u64>,
}

impl Inference {
    /// I/O that I/O `number` waited for. It arrived and completed at these times, in nanoseconds.
    pub(crate) fn waits(&mut self, number: u64, arrival: u64, completed: Option<u64>) -> Waits {
        let mut before = Vec::new();
        while let Some(Reverse((at, one))) = self.in_flight.peek().copied()
            && at + LEAST <= arrival
        {
            self.in_flight.pop();
            self.last = Some(at);
            before.push(one);
        }
        if let Some(at) = completed {
            self.in_flight.push(Reverse((at.max(arrival), number)));
        }
        Waits {
            completed: before,
            think: self.last.map(|last| arrival - last),
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

    fn waits(completed: &[u64], think: u64) -> Waits {
        Waits {
            completed: completed.to_vec(),
            think: Some(think),
        }
    }

    #[test]
    fn a_chain_waits_for_the_one_before_and_thinks() {
        let all = all(&[(0, 100 * US), (130 * US, 200 * US), (250 * US, 300 * US)]);
        assert_eq!(all[0], Waits::default());
        assert_eq!(all[1], waits(&[0], 30 * US));
        assert_eq!(all[2], waits(&[1], 50 * US));
    }

    #[test]
    fn a_batch_is_waited_for_as_a_whole_and_its_members_not_for_each_other() {
        let all = all(&[
            (0, 50 * US),
            (US, 90 * US),
            (2 * US, 70 * US),
            (100 * US, 110 * US),
        ]);
        assert!(all[..3].iter().all(|one| *one == Waits::default()));
        assert_eq!(all[3], waits(&[0, 2, 1], 10 * US));
    }

    #[test]
    fn what_comes_at_once_waits_for_nothing_and_what_comes_much_later_for_the_last_completion() {
        let at_once = all(&[(0, 100 * US), (101 * US, 200 * US)]);
        assert_eq!(at_once[1], Waits::default());
        let later = all(&[(0, 100 * US), (500_000 * US, 600_000 * US)]);
        assert_eq!(later[1], waits(&[0], 499_900 * US));
    }

    proptest! {
        /// Against the definition: all that completed in time.
        #[test]
        fn each_waits_for_all_that_completed_in_time(
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
            let mut completed: Vec<u64> = Vec::new();
            for (number, waits) in all(&ios).iter().enumerate() {
                let arrival = ios[number].0;
                completed.extend(&waits.completed);
                let mut found = completed.clone();
                found.sort_unstable();
                let in_time = |one: &u64| ios[*one as usize].1 + LEAST <= arrival;
                let expected: Vec<u64> = (0..number as u64).filter(in_time).collect();
                prop_assert_eq!(found, expected);
                let last = completed.iter().map(|one| ios[*one as usize].1).max();
                prop_assert_eq!(waits.think, last.map(|last| arrival - last));
            }
        }
    }
}
