//! A fixed amount of work by blocking calls, timed one by one, as in the classic file benchmarks.
//!
//! A [`Job`](crate::Job) keeps requests in flight for a time. A [`Task`] makes its calls one after another until its
//! work is done, and the final call (an fsync) is part of the measured time. The caller makes the calls; this module
//! times them, and counts them by window.

mod call_state;
mod gather;
mod message;
mod run;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use record::{Direction, Nanos, Workload};

use self::message::{Message, ThreadEnd, ThreadWindow};
use crate::clock::{BusyTime, Clock};
use crate::job::EngineError;
use crate::tally::Tally;

pub use run::run;

/// A phase of blocking calls.
pub struct CallPhase<'a> {
    /// The phase's name, which goes into the record.
    pub name: &'a str,
    /// The workload, for the record. Only its directions are used for counting.
    pub workload: &'a Workload,
    /// Length of a window.
    pub window: Nanos,
    /// Set by a signal handler: after the present call no further one is made.
    pub interrupt: &'a AtomicBool,
}

/// Work of one thread.
pub trait Task: Send {
    /// Makes and times the next calls; returns false once the work is done.
    ///
    /// # Errors
    /// When a call fails.
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError>;
}

/// Time at which a call started, in ticks of the timer's clock.
#[derive(Clone, Copy)]
pub struct CallStart(u64);

/// Times the calls of one thread.
pub struct Timer<'a> {
    thread: usize,
    clock: Clock,
    tally: Tally,
    sender: &'a Sender<Message>,
    busy: BusyTime,
    /// Number of reads and writes so far.
    ops: u64,
    /// Total ticks of these reads and writes.
    ticks: u64,
}

impl Timer<'_> {
    /// Starts timing a call.
    #[inline]
    pub fn start_call(&self) -> CallStart {
        CallStart(self.clock.now())
    }

    /// Records a call that began at `since` and transferred `bytes` bytes.
    #[inline]
    pub fn record(&mut self, direction: Direction, bytes: u64, since: CallStart) {
        let now = self.clock.now();
        if now >= self.tally.slice_end() {
            self.advance(now);
        }
        let took = now.saturating_sub(since.0);
        self.tally.record(direction, bytes, took);
        if matches!(direction, Direction::Read | Direction::Write) {
            self.ops += 1;
            self.ticks += took;
        }
    }

    /// Makes a call, and records it if it succeeds.
    ///
    /// # Errors
    /// The error of the call.
    #[inline]
    pub fn time<T, E>(
        &mut self,
        direction: Direction,
        bytes: u64,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let since = self.start_call();
        let result = call()?;
        self.record(direction, bytes, since);
        Ok(result)
    }

    fn advance(&mut self, now: u64) {
        let (thread, sender, busy) = (self.thread, self.sender, &mut self.busy);
        // A long call may end several windows, for which only one share is known.
        let mut busy_share = None;
        self.tally.advance(now, |index, ticks, flows| {
            let part = Box::new(ThreadWindow {
                index,
                ticks,
                flows,
                busy_share: *busy_share.get_or_insert_with(|| busy.share()),
            });
            let _ = sender.send(Message::Window { thread, part });
        });
    }

    /// Ends the present window.
    fn end(mut self) -> ThreadEnd {
        let busy_share = self.busy.share();
        let (index, ticks, flows) = self.tally.cut(self.clock.now());
        ThreadEnd {
            part: ThreadWindow {
                index,
                ticks,
                flows,
                busy_share,
            },
            ops: self.ops,
            ticks: self.ticks,
        }
    }
}

/// The error for a failed call.
pub fn call_error(what: impl Into<String>, source: impl Into<io::Error>) -> EngineError {
    EngineError::Call {
        what: what.into(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests;
