//! Reasons to end a job early: a signal, or a deadline.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use jiff::Timestamp;

/// Interval at which the signal is polled during a wait.
const POLL: Duration = Duration::from_millis(200);

/// The reason to end a job early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// A signal was received.
    Signal,
    /// The deadline has passed.
    Deadline,
}

/// The flag that a signal sets, and the deadline of a job.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    interrupt: &'a AtomicBool,
    deadline: Option<Timestamp>,
}

impl<'a> Stop<'a> {
    /// Ends on a signal only.
    pub fn on(interrupt: &'a AtomicBool) -> Stop<'a> {
        Stop {
            interrupt,
            deadline: None,
        }
    }

    /// The same, with a deadline, if any.
    pub fn at(self, deadline: Option<Timestamp>) -> Stop<'a> {
        Stop { deadline, ..self }
    }

    /// The flag that a signal sets.
    pub fn interrupt(&self) -> &'a AtomicBool {
        self.interrupt
    }

    /// The time at which the job must end, done or not.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The reason to end the job now; `None` while it may continue.
    pub fn cause(&self) -> Option<StopCause> {
        if self.interrupt.load(Relaxed) {
            return Some(StopCause::Signal);
        }
        let is_over = self.deadline.is_some_and(|end| Timestamp::now() >= end);
        is_over.then_some(StopCause::Deadline)
    }

    /// Waits until a time; returns the reason if the wait ended earlier.
    pub fn wait_until(&self, moment: Timestamp) -> Option<StopCause> {
        while Timestamp::now() < moment {
            if let Some(cause) = self.cause() {
                return Some(cause);
            }
            sleep(POLL);
        }
        None
    }
}

/// Sets flags when it is dropped, so that a thread that others wait for signals its end even after a panic.
pub struct RaiseOnDrop<'a>(pub &'a [AtomicBool]);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|flag| flag.store(true, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_and_a_deadline_end_it_and_the_signal_is_told_first() {
        let interrupt = AtomicBool::new(false);
        let stop = Stop::on(&interrupt);
        let (past, future) = (Some(Timestamp::UNIX_EPOCH), Some(Timestamp::MAX));
        assert_eq!(stop.cause(), None);
        assert_eq!(stop.at(future).cause(), None);
        assert_eq!(stop.wait_until(Timestamp::UNIX_EPOCH), None);
        assert_eq!(stop.at(past).cause(), Some(StopCause::Deadline));
        interrupt.store(true, Relaxed);
        assert_eq!(stop.at(past).cause(), Some(StopCause::Signal));
        assert_eq!(stop.wait_until(Timestamp::MAX), Some(StopCause::Signal));
    }

    #[test]
    fn a_panic_raises_the_flags_too() {
        let flags = [AtomicBool::new(false), AtomicBool::new(false)];
        let panics = || {
            let _raises = RaiseOnDrop(&flags);
            assert!(flags.is_empty(), "as a job may");
        };
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(flags.iter().all(|flag| flag.load(Relaxed)));
    }
}
