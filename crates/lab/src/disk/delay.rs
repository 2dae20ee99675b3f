//! The lab's clock, and a queue whose entries are returned when they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use record::Nanos;

/// The server's time: nanoseconds since its start, which never go back (CLOCK_MONOTONIC).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Nanos {
        Nanos::from(self.0.elapsed())
    }
}

/// A queue of entries with due times. One thread takes entries out.
pub(crate) struct DelayQueue<T> {
    clock: Clock,
    inside: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    heap: BinaryHeap<Entry<T>>,
    pushed: u64,
    closed: bool,
}

/// Ordered so that the largest is due first, and what was pushed first goes first among equals.
struct Entry<T> {
    due: Nanos,
    number: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<T> DelayQueue<T> {
    pub(crate) fn new(clock: Clock) -> DelayQueue<T> {
        DelayQueue {
            clock,
            inside: Mutex::new(QueueState {
                heap: BinaryHeap::new(),
                pushed: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, QueueState<T>> {
        // A heap is consistent between any two of its methods, and nothing else runs under the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry; it is dropped if the queue is closed.
    pub(crate) fn push(&self, due: Nanos, what: T) {
        let mut inside = self.inside();
        if inside.closed {
            return;
        }
        let sooner = inside.heap.peek().is_none_or(|first| due < first.due);
        inside.pushed += 1;
        let number = inside.pushed;
        inside.heap.push(Entry { due, number, what });
        drop(inside);
        if sooner {
            self.changed.notify_one();
        }
    }

    /// Waits for the next entry that is due; `None` when the queue is closed.
    pub(crate) fn next(&self) -> Option<T> {
        let mut inside = self.inside();
        loop {
            if inside.closed {
                return None;
            }
            let now = self.clock.now();
            let wait = match inside.heap.peek() {
                Some(first) if first.due <= now => return inside.heap.pop().map(|e| e.what),
                Some(first) => Some(Duration::from(first.due - now)),
                None => None,
            };
            inside = match wait {
                Some(wait) => {
                    let woken = self.changed.wait_timeout(inside, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.changed.wait(inside);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// Closes it: waiting threads are woken, and queued requests are dropped.
    pub(crate) fn close(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        let dropped = std::mem::take(&mut inside.heap);
        drop(inside);
        self.changed.notify_all();
        drop(dropped);
    }
}

/// Requests that the kernel wakes this thread on time. By default threads are woken up to 50 us late, so that several
/// timers can share one interrupt (`PR_SET_TIMERSLACK` in prctl(2)).
pub(crate) fn precise_timers() {
    // Where it is refused, answers are later by that much.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn entries_come_in_the_order_of_their_times() {
        let clock = Clock::start();
        let queue = DelayQueue::new(clock);
        let base = clock.now();
        for (late_ms, what) in [(30, 'c'), (10, 'a'), (20, 'b'), (30, 'd')] {
            queue.push(base + Nanos(late_ms * 1_000_000), what);
        }
        let order: Vec<char> = (0..4).filter_map(|_| queue.next()).collect();
        assert_eq!(order, ['a', 'b', 'c', 'd']);
        assert!(clock.now() - base >= Nanos(30_000_000));
    }

    #[test]
    fn a_sooner_entry_wakes_who_waits_and_closing_ends_the_wait() {
        let clock = Clock::start();
        let queue = Arc::new(DelayQueue::new(clock));
        queue.push(Nanos::from_secs(3600), 'z');
        let (sender, taken) = std::sync::mpsc::channel();
        let taker = {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || {
                for _ in 0..2 {
                    sender.send(queue.next()).unwrap();
                }
            })
        };
        // So that it waits, as a rule.
        std::thread::sleep(Duration::from_millis(20));
        queue.push(Nanos(0), 'a');
        assert_eq!(taken.recv().unwrap(), Some('a'));
        queue.close();
        assert_eq!(taken.recv().unwrap(), None);
        taker.join().unwrap();
        queue.push(Nanos(0), 'b');
        assert_eq!(queue.next(), None);
    }
}
