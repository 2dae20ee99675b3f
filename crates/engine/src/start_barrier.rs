//! A barrier at which threads wait for each other, and which can be opened early if one of them never arrives.

use std::sync::{Condvar, Mutex, PoisonError};

/// A barrier that opens when all threads have arrived, or when `open` is called.
pub(crate) struct StartBarrier {
    /// Number of threads that have not arrived yet; at 0 the barrier is open.
    missing: Mutex<usize>,
    opened: Condvar,
}

impl StartBarrier {
    /// A barrier for `count` threads.
    pub(crate) fn new(count: usize) -> StartBarrier {
        StartBarrier {
            missing: Mutex::new(count),
            opened: Condvar::new(),
        }
    }

    /// Arrives at the barrier, and waits until it is open.
    pub(crate) fn wait(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.opened.notify_all();
        }
        while *missing > 0 {
            missing = self
                .opened
                .wait(missing)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Opens the barrier for all waiting threads, and for those that arrive later.
    pub(crate) fn open(&self) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_barrier_opens_when_all_have_arrived_or_one_opens_it() {
        for (expected, opened) in [(3, false), (9, true)] {
            let barrier = StartBarrier::new(expected);
            thread::scope(|scope| {
                (0..3).for_each(|_| {
                    scope.spawn(|| barrier.wait());
                });
                if opened {
                    barrier.open();
                }
            });
            barrier.wait();
        }
    }
}
