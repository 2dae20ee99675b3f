//! Runs all threads of a phase of calls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use record::Phase;

use super::call_state::CallState;
use super::gather::PhaseTotals;
use super::{CallPhase, Task};
use crate::clock::{Clock, monotonic_nanos};
use crate::disks::{drift, note};
use crate::job::{EngineError, Observer};
use crate::start_barrier::StartBarrier;

/// Runs `tasks` at the same time, each on a separate thread, until all are done, one fails or a signal arrives. The
/// observer receives the windows; its decisions are ignored, since a part of the work is not comparable with the
/// whole. `began_s` of the record is left at 0.
///
/// # Errors
/// When a call fails, or a thread cannot be started.
pub fn run<'t>(
    calls: &CallPhase<'_>,
    tasks: Vec<Box<dyn Task + 't>>,
    observer: &mut dyn Observer,
) -> Result<Phase, EngineError> {
    let clock = Clock::best();
    let began = (clock.now(), monotonic_nanos());
    let call_state = CallState {
        calls,
        clock,
        ready: StartBarrier::new(tasks.len()),
        start: OnceLock::new(),
        failed: AtomicBool::new(false),
    };
    let mut totals = PhaseTotals::new(&call_state, tasks.len());
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for (number, task) in tasks.into_iter().enumerate() {
            let (call_state, sender) = (&call_state, sender.clone());
            thread::Builder::new()
                .name(format!("io-{number}"))
                .spawn_scoped(scope, move || call_state.work(number, task, &sender))
                .map_err(|error| {
                    call_state.failed.store(true, Relaxed);
                    // Otherwise the others would wait forever for this one.
                    call_state.ready.open();
                    EngineError::Setup(error)
                })?;
        }
        drop(sender);
        totals.gather(&receiver, observer)
    })?;
    let mut detail = String::new();
    note(
        &mut detail,
        drift(clock, began, (clock.now(), monotonic_nanos())),
    );
    Ok(totals.into_phase(detail))
}
