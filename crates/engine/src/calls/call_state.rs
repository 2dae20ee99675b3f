//! State that the threads of a phase share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use record::Nanos;

use super::message::Message;
use super::{CallPhase, Task, Timer};
use crate::clock::{BusyTime, Clock};
use crate::start_barrier::StartBarrier;
use crate::tally::{SLICES, Tally, Timetable};

/// State by which the threads begin and end together.
pub(super) struct CallState<'a> {
    pub(super) calls: &'a CallPhase<'a>,
    pub(super) clock: Clock,
    pub(super) ready: StartBarrier,
    pub(super) start: OnceLock<Timetable>,
    pub(super) failed: AtomicBool,
}

impl CallState<'_> {
    pub(super) fn slice(&self) -> Nanos {
        Nanos(self.calls.window.0 / SLICES as u64)
    }

    /// Body of a thread.
    pub(super) fn work<'t>(
        &self,
        thread: usize,
        mut task: Box<dyn Task + 't>,
        sender: &Sender<Message>,
    ) {
        self.ready.wait();
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
        // Windows that the last call filled are closed before the last, shortened one.
        timer.advance(self.clock.now());
        let end = done.map(|_| Box::new(timer.end()));
        let _ = sender.send(Message::End { thread, end });
    }

    pub(super) fn is_over(&self) -> bool {
        self.calls.interrupt.load(Relaxed) || self.failed.load(Relaxed)
    }
}
