//! Infers the I/Os that an I/O waited for, from times and threads, by the rules of hfplayer (Haghdoost, He, Fredin and
//! Du, "On the Accuracy and Scalability of Intensive I/O Workload Replay", FAST 2017).
//!
//! An I/O may have been issued because others of its thread had completed: all those that completed at least
//! [`MIN_CAUSAL_NANOS`] before its arrival. These are a prefix of the thread's I/Os in the order of completion, so that
//! no list is needed for each I/O: a later I/O waits for the same ones, and for those that completed since. If a commit
//! of another thread (a flush, or a write with FUA) completed after all of these, the I/O waits for it too, since a
//! database makes the commits of many threads durable by one flush. An I/O that arrived long after the last completion
//! was started by a timer; it is issued at the same distance from that completion, since a slower disk that delays the
//! load delays its timers as well.
//!
//! In a trace without threads, all I/Os count as those of one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Minimum time from a completion to an I/O that it caused: a process needs this time to wake up and issue an I/O.
pub(crate) const MIN_CAUSAL_NANOS: u64 = 2_000;
/// Maximum number of threads that are distinguished. Further ones share a number, and then wait for each other.
pub(crate) const MAX_THREADS: usize = 256;
/// Number of later I/Os after which a completion is forgotten.
pub(crate) const MAX_LATER_IOS: u64 = 1 << 15;

/// I/Os that an I/O waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IoDependencies {
    /// Number of the I/O's thread, below [`MAX_THREADS`].
    pub(crate) thread: usize,
    /// Numbers of the I/Os of its thread that had completed before its arrival, without those that earlier I/Os of the
    /// thread already list, in the order of completion.
    pub(crate) completed: Vec<u64>,
    /// Number of another thread's I/O that completed after all of these, if it waited for one.
    pub(crate) other: Option<u64>,
    /// Time in nanoseconds from the last completion to its arrival; `None` if nothing had completed.
    pub(crate) think: Option<u64>,
}

/// Arrival of an I/O; times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Number of the I/O.
    pub(crate) number: u64,
    pub(crate) at: u64,
    pub(crate) completed: Option<u64>,
    pub(crate) thread: Option<u32>,
    /// True for a flush, and for a write with FUA.
    pub(crate) is_commit: bool,
}

impl Arrival {
    /// True unless the completion of I/O `number` is forgotten.
    fn is_soon_after(&self, number: u64) -> bool {
        self.number - number < MAX_LATER_IOS
    }
}

/// Completion of an I/O: its time, number and thread, and true for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Completion {
    at: u64,
    number: u64,
    thread: usize,
    is_commit: bool,
}

/// Completions of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Numbers of the I/Os that completed since the thread's last I/O.
    since: Vec<u64>,
    last: Option<Completion>,
}

/// Infers dependencies from I/Os in the order of their arrival. It holds those in flight.
#[derive(Debug)]
pub(crate) struct Inference {
    in_flight: BinaryHeap<Reverse<Completion>>,
    threads: Vec<Thread>,
    last_commit: Option<Completion>,
    /// The last completion of any thread.
    last: Option<Completion>,
}

impl Default for Inference {
    fn default() -> Inference {
        Inference {
            in_flight: BinaryHeap::new(),
            threads: vec![Thread::default(); MAX_THREADS],
            last_commit: None,
            last: None,
        }
    }
}

impl Inference {
    /// I/Os that an I/O waited for.
    pub(crate) fn waits(&mut self, arrival: Arrival) -> IoDependencies {
        self.pass(arrival);
        let number = arrival.thread.map_or(0, |thread| thread as usize) % MAX_THREADS;
        let thread = &mut self.threads[number];
        let recent =
            |done: Option<Completion>| done.filter(|done| arrival.is_soon_after(done.number));
        let last = match recent(thread.last) {
            Some(own) => recent(self.last_commit).max(Some(own)),
            // A thread without earlier completions was woken by another thread.
            None => recent(self.last),
        };
        let mut completed = std::mem::take(&mut thread.since);
        completed.retain(|number| arrival.is_soon_after(*number));
        let waits = IoDependencies {
            thread: number,
            completed,
            other: last
                .filter(|last| last.thread != number)
                .map(|last| last.number),
            think: last.map(|last| arrival.at - last.at),
        };
        if let Some(at) = arrival.completed {
            self.in_flight.push(Reverse(Completion {
                at: at.max(arrival.at),
                number: arrival.number,
                thread: number,
                is_commit: arrival.is_commit,
            }));
        }
        waits
    }

    /// Records the I/Os that completed early enough before an arrival.
    fn pass(&mut self, arrival: Arrival) {
        while let Some(Reverse(done)) = self.in_flight.peek().copied()
            && done.at.saturating_add(MIN_CAUSAL_NANOS) <= arrival.at
        {
            self.in_flight.pop();
            if !arrival.is_soon_after(done.number) {
                continue;
            }
            let thread = &mut self.threads[done.thread];
            thread.since.push(done.number);
            thread.last = Some(done);
            self.last = Some(done);
            if done.is_commit {
                self.last_commit = Some(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const US: u64 = 1000;

    fn all(ios: &[(u64, u64)]) -> Vec<IoDependencies> {
        let mut inference = Inference::default();
        let mut waits = |(number, (came, done)): (usize, &(u64, u64))| {
            inference.waits(Arrival {
                number: number as u64,
                at: *came,
                completed: Some(*done),
                thread: None,
                is_commit: false,
            })
        };
        ios.iter().enumerate().map(&mut waits).collect()
    }

    fn waits(completed: &[u64], think: u64) -> IoDependencies {
        IoDependencies {
            completed: completed.to_vec(),
            think: Some(think),
            ..IoDependencies::default()
        }
    }

    #[test]
    fn threads_wait_for_their_own_and_for_the_flush_that_made_their_commits_durable() {
        let mut inference = Inference::default();
        let mut of = |number, thread, at, completed, is_commit| {
            inference.waits(Arrival {
                number,
                at: at * US,
                completed: Some(completed * US),
                thread: Some(thread),
                is_commit,
            })
        };
        of(0, 7, 0, 1000, false);
        of(1, 8, 10, 50, false);
        // Beside the read of thread 7 that is in flight.
        let next = of(2, 8, 80, 100, false);
        assert_eq!(
            (next.thread, next.completed, next.other),
            (8, vec![1], None)
        );
        of(3, 8, 120, 400, true);
        // Thread 9 begins after the last completion of another thread; 7 continues when the flush of 8 has completed.
        let first = of(4, 9, 130, 140, false);
        assert_eq!((first.completed, first.other), (vec![], Some(2)));
        assert_eq!(first.think, Some(30 * US));
        let after = of(5, 7, 1100, 1200, false);
        assert_eq!((after.completed, after.other), (vec![0], None));
        let woken = of(6, 9, 1300, 1400, false);
        assert_eq!((woken.completed, woken.other), (vec![4], Some(3)));
        assert_eq!(woken.think, Some(900 * US));
    }

    #[test]
    fn what_many_came_after_is_forgotten_even_where_it_completed_last() {
        let mut inference = Inference::default();
        let mut of = |number, thread, at, completed, is_commit| {
            inference.waits(Arrival {
                number,
                at,
                completed: Some(completed),
                thread: Some(thread),
                is_commit,
            })
        };
        // A commit of thread 1 and a read of thread 2 end after many others of thread 2.
        let end = MAX_LATER_IOS * 10 * US;
        of(0, 1, 0, end + 2 * US, true);
        of(1, 2, 0, end + 2 * US, false);
        for number in 2..=MAX_LATER_IOS {
            of(number, 2, number * 10 * US, (number * 10 + 1) * US, false);
        }
        let after = of(MAX_LATER_IOS + 1, 2, end + 10 * US, end + 11 * US, false);
        assert_eq!(after.completed, [MAX_LATER_IOS]);
        assert_eq!((after.other, after.think), (None, Some(9 * US)));
        let begins = of(MAX_LATER_IOS + 2, 3, end + 20 * US, end + 21 * US, false);
        assert_eq!(begins.other, Some(MAX_LATER_IOS + 1));
    }

    #[test]
    fn times_at_the_end_of_their_range_are_taken() {
        let all = all(&[(0, u64::MAX), (u64::MAX - 1, u64::MAX)]);
        assert_eq!(all[1], IoDependencies::default());
    }

    #[test]
    fn a_chain_waits_for_the_one_before_and_thinks() {
        let all = all(&[(0, 100 * US), (130 * US, 200 * US), (250 * US, 300 * US)]);
        assert_eq!(all[0], IoDependencies::default());
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
        assert!(all[..3].iter().all(|one| *one == IoDependencies::default()));
        assert_eq!(all[3], waits(&[0, 2, 1], 10 * US));
    }

    #[test]
    fn what_comes_at_once_waits_for_nothing_and_what_comes_much_later_for_the_last_completion() {
        let at_once = all(&[(0, 100 * US), (101 * US, 200 * US)]);
        assert_eq!(at_once[1], IoDependencies::default());
        let later = all(&[(0, 100 * US), (500_000 * US, 600_000 * US)]);
        assert_eq!(later[1], waits(&[0], 499_900 * US));
    }

    proptest! {
        /// Compared with the definition: all I/Os that completed early enough.
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
                let in_time = |one: &u64| ios[*one as usize].1 + MIN_CAUSAL_NANOS <= arrival;
                let expected: Vec<u64> = (0..number as u64).filter(in_time).collect();
                prop_assert_eq!(found, expected);
                let last = completed.iter().map(|one| ios[*one as usize].1).max();
                prop_assert_eq!(waits.think, last.map(|last| arrival - last));
            }
        }
    }
}
