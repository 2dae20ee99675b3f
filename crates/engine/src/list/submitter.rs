//! The kernel's side of the loop, which a simulated volume stands in for in tests.

use record::Nanos;

use crate::clock::Clock;
use crate::job::EngineError;
use crate::list::Request;

/// A way to make requests. All times are since the list began.
pub(super) trait Submitter {
    /// The time.
    fn now(&self) -> Nanos;

    /// Queues a slot's request, which has none in flight.
    fn push(&mut self, slot: u32, request: &Request);

    /// Submits what was queued, and looks for answers without sleeping. Virtual time goes on to `until`.
    ///
    /// # Errors
    /// As [`Submitter::submit_and_wait`].
    fn submit(&mut self, until: Nanos) -> Result<(), EngineError>;

    /// Submits what was queued, and waits until an answer is there or until `wake_at`. It may
    /// return earlier.
    ///
    /// # Errors
    /// When the way itself fails; then nothing more is to be expected of it.
    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError>;

    /// Takes the answers that are there.
    fn reap(&mut self, into: &mut Vec<Completed>);
}

/// The answer to a slot's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    pub slot: u32,
    /// Bytes moved, or a negative error number.
    pub result: i32,
    /// Time of the completion.
    pub at: Nanos,
}

/// A clock that was started when the list began.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch {
    clock: Clock,
    start: u64,
}

impl Stopwatch {
    /// Starts now.
    pub(super) fn start(clock: Clock) -> Stopwatch {
        Stopwatch {
            clock,
            start: clock.now(),
        }
    }

    /// Since the start.
    pub(super) fn now(&self) -> Nanos {
        self.clock.span(self.clock.now().saturating_sub(self.start))
    }

    /// Reading of the clock at a time since the start.
    pub(super) fn ticks_at(&self, time: Nanos) -> u64 {
        self.start.saturating_add(self.clock.ticks(time))
    }
}
