//! A gate at which workers wait for each other, and which opens early when one of them never comes.

use std::sync::{Condvar, Mutex, PoisonError};

/// Opens when all threads have arrived, or when one opens it.
pub(crate) struct StartBarrier {
    /// Number of threads that have not arrived yet; at 0 the barrier is open.
    missing: Mutex<usize>,
    opened: Condvar,
}

impl StartBarrier {
    /// A gate that `count` must come to.
    pub(crate) fn new(count: usize) -> StartBarrier {
        StartBarrier {
            missing: Mutex::new(count),
            opened: Condvar::new(),
        }
    }

    /// Comes to the gate, and waits until it is open.
    pub(crate) fn pass(&self) {
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

    /// Opens it for those who wait and for those who come later.
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
    fn it_opens_when_all_have_come_or_someone_opens_it() {
        for (expected, opened) in [(3, false), (9, true)] {
            let gate = StartBarrier::new(expected);
            thread::scope(|scope| {
                (0..3).for_each(|_| {
                    scope.spawn(|| gate.pass());
                });
                if opened {
                    gate.open();
                }
            });
            gate.pass();
        }
    }
}
