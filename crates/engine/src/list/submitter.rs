//! The interface to the kernel of the loop, which tests replace by a simulated volume.

use record::Nanos;

use crate::clock::Clock;
use crate::job::EngineError;
use crate::list::Request;

/// An interface for submitting requests. All times are since the start of the list.
pub(super) trait Submitter {
    /// The time.
    fn now(&self) -> Nanos;

    /// Queues a request in a slot without one in flight.
    fn push(&mut self, slot: u32, request: &Request);

    /// Submits what was queued, and checks for completions without sleeping. Virtual time advances to `until`.
    ///
    /// # Errors
    /// As [`Submitter::submit_and_wait`].
    fn submit(&mut self, until: Nanos) -> Result<(), EngineError>;

    /// Submits what was queued, and waits for a completion or until `wake_at`. It may return earlier.
    ///
    /// # Errors
    /// When the interface itself fails; no further completion arrives then.
    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError>;

    /// Appends the completions that have arrived.
    fn reap(&mut self, into: &mut Vec<SlotCompletion>);
}

/// Completion of a slot's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotCompletion {
    pub slot: u32,
    /// Number of bytes transferred, or a negative error number.
    pub result: i32,
    /// Time of the completion.
    pub at: Nanos,
}

/// A clock that starts with the list.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch {
    clock: Clock,
    start: u64,
}

impl Stopwatch {
    /// A stopwatch that starts now.
    pub(super) fn start(clock: Clock) -> Stopwatch {
        Stopwatch {
            clock,
            start: clock.now(),
        }
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Nanos {
        self.clock.span(self.clock.now().saturating_sub(self.start))
    }

    /// Reading of the clock at a time since the start.
    pub(super) fn ticks_at(&self, time: Nanos) -> u64 {
        self.start.saturating_add(self.clock.ticks(time))
    }
}
