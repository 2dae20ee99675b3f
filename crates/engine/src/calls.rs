//! A given work by blocking calls, timed one by one: what the classic suites of files do.
//!
//! Where a [`Job`](crate::Job) keeps requests in flight for a time, a [`Task`] makes its calls one
//! after another until its work is done, and what ends the work (an fsync) is in the measured time.
//! The calls themselves are the caller's; here they are timed, and counted by window.

mod gather;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::{io, thread};

use record::{Direction, Nanos, Phase, Workload};

use self::gather::Gathered;
use crate::clock::{BusyTime, Clock, monotonic_nanos};
use crate::disks::{drift, note};
use crate::job::{EngineError, Observer};
use crate::start_barrier::StartBarrier;
use crate::tally::{Flows, SLICES, Tally, Timetable};

/// A phase that is made of calls.
pub struct Calls<'a> {
    /// The phase's name, which goes into the record.
    pub name: &'a str,
    /// The workload, for the record. Its directions are those that may be counted.
    pub workload: &'a Workload,
    /// Length of a window.
    pub window: Nanos,
    /// Set by a signal handler: no call is made after the one under way.
    pub interrupt: &'a AtomicBool,
}

/// Work of one thread.
pub trait Task: Send {
    /// Makes the next calls, and times them; `false` when there was nothing left to do.
    ///
    /// # Errors
    /// When a call fails.
    fn step(&mut self, timer: &mut Timer<'_>) -> Result<bool, EngineError>;
}

/// Start of a call.
#[derive(Clone, Copy)]
pub struct Mark(u64);

/// Times the calls of one thread.
pub struct Timer<'a> {
    thread: usize,
    clock: Clock,
    tally: Tally,
    sender: &'a Sender<Message>,
    busy: BusyTime,
    /// Reads and writes so far, and the ticks that they took.
    ops: u64,
    ticks: u64,
}

impl Timer<'_> {
    /// A call begins now.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark(self.clock.now())
    }

    /// Records a call that began at `since` and moved so many bytes.
    #[inline]
    pub fn record(&mut self, direction: Direction, bytes: u64, since: Mark) {
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

    /// Makes a call and counts it, if it succeeds.
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
        let since = self.mark();
        let answer = call()?;
        self.record(direction, bytes, since);
        Ok(answer)
    }

    fn advance(&mut self, now: u64) {
        let (thread, sender, busy) = (self.thread, self.sender, &mut self.busy);
        // After a long call several windows are over, and one share is known for all of them.
        let mut busy_share = None;
        self.tally.advance(now, |index, ticks, flows| {
            let part = Box::new(Part {
                index,
                ticks,
                flows,
                busy_share: *busy_share.get_or_insert_with(|| busy.share()),
            });
            let _ = sender.send(Message::Window { thread, part });
        });
    }

    /// The window under way, cut short now.
    fn end(mut self) -> End {
        let busy_share = self.busy.share();
        let (index, ticks, flows) = self.tally.cut(self.clock.now());
        End {
            part: Part {
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

/// Work of a thread within a window.
struct Part {
    index: usize,
    ticks: u64,
    flows: Flows,
    busy_share: f64,
}

/// Result of a thread when its work is over.
struct End {
    part: Part,
    ops: u64,
    ticks: u64,
}

enum Message {
    Begin,
    Window {
        thread: usize,
        part: Box<Part>,
    },
    End {
        thread: usize,
        end: Result<Box<End>, EngineError>,
    },
}

/// Runs `tasks` at the same time, each on a thread of its own, until all are done, one fails or a
/// signal comes. The observer sees the windows; what it answers is not asked for, since half of a
/// given work is no figure of it. `began_s` of the record is left at 0.
///
/// # Errors
/// When a call fails, or a thread cannot be had.
pub fn run<'t>(
    calls: &Calls<'_>,
    tasks: Vec<Box<dyn Task + 't>>,
    observer: &mut dyn Observer,
) -> Result<Phase, EngineError> {
    let clock = Clock::best();
    let began = (clock.now(), monotonic_nanos());
    let together = Together {
        calls,
        clock,
        ready: StartBarrier::new(tasks.len()),
        start: OnceLock::new(),
        failed: AtomicBool::new(false),
    };
    let mut gathered = Gathered::new(&together, tasks.len());
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for (number, task) in tasks.into_iter().enumerate() {
            let (together, sender) = (&together, sender.clone());
            thread::Builder::new()
                .name(format!("io-{number}"))
                .spawn_scoped(scope, move || together.work(number, task, &sender))
                .map_err(|error| {
                    together.failed.store(true, Relaxed);
                    // The others wait for one that will not come.
                    together.ready.open();
                    EngineError::Setup(error)
                })?;
        }
        drop(sender);
        gathered.gather(&receiver, observer)
    })?;
    let mut detail = String::new();
    note(
        &mut detail,
        drift(clock, began, (clock.now(), monotonic_nanos())),
    );
    Ok(gathered.into_phase(detail))
}

/// State by which the threads begin and end together.
struct Together<'a> {
    calls: &'a Calls<'a>,
    clock: Clock,
    ready: StartBarrier,
    start: OnceLock<Timetable>,
    failed: AtomicBool,
}

impl Together<'_> {
    fn slice(&self) -> Nanos {
        Nanos(self.calls.window.0 / SLICES as u64)
    }

    /// One thread's life.
    fn work<'t>(&self, thread: usize, mut task: Box<dyn Task + 't>, sender: &Sender<Message>) {
        self.ready.pass();
        let timetable = *self.start.get_or_init(|| {
            let _ = sender.send(Message::Begin);
            Timetable {
                start: self.clock.now(),
                slice: self.clock.ticks(self.slice()),
                slices: u64::from(u32::MAX),
            }
        });
        let mut timer = Timer {
            thread,
            clock: self.clock,
            tally: Tally::new(self.calls.workload, timetable),
            sender,
            busy: BusyTime::of_this_thread(),
            ops: 0,
            ticks: 0,
        };
        let mut done = Ok(true);
        while matches!(done, Ok(true)) && !self.is_over() {
            done = task.step(&mut timer);
        }
        if done.is_err() {
            self.failed.store(true, Relaxed);
        }
        // What a long last call left open is closed before the cut.
        timer.advance(self.clock.now());
        let end = done.map(|_| Box::new(timer.end()));
        let _ = sender.send(Message::End { thread, end });
    }

    fn is_over(&self) -> bool {
        self.calls.interrupt.load(Relaxed) || self.failed.load(Relaxed)
    }
}

/// Makes the engine's error of a call that failed.
pub fn failed(what: impl Into<String>, source: impl Into<io::Error>) -> EngineError {
    EngineError::Call {
        what: what.into(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests;
