//! The run of all threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use record::Phase;

use super::gather::Gathered;
use super::together::Together;
use super::{Calls, Task};
use crate::clock::{Clock, monotonic_nanos};
use crate::disks::{drift, note};
use crate::job::{EngineError, Observer};
use crate::start_barrier::StartBarrier;

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
