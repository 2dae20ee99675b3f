//! Joins the windows of the threads that make calls. Unlike workers, each thread ends when its own work is done, and
//! later windows only have the remaining threads.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use record::{
    CpuTime, EngineKind, EngineUsed, Flow, HostConditions, Phase, StopReason, Window, WindowFlow,
    Workload,
};

use super::call_state::CallState;
use super::message::{Message, ThreadWindow};
use crate::clock::process_cpu_time;
use crate::job::{EngineError, Observer};
use crate::tally::{Flows, flows_for, merge_flows};

/// A window of which some threads have sent their parts.
#[derive(Default)]
struct PendingWindow {
    flows: Option<Flows>,
    /// Length of the window: that of its longest part.
    ticks: u64,
    /// Sum of the lengths of all parts, in ticks.
    thread_ticks: u64,
    /// Ticks in which threads ran or waited for a processor.
    busy_ticks: f64,
    /// Number of threads that continued after it.
    live: u64,
}

impl PendingWindow {
    fn add(&mut self, part: &ThreadWindow, workload: &Workload) {
        let flows = self.flows.get_or_insert_with(|| flows_for(workload));
        merge_flows(flows, &part.flows);
        self.ticks = self.ticks.max(part.ticks);
        self.thread_ticks += part.ticks;
        self.busy_ticks += part.busy_share * part.ticks as f64;
    }
}

/// The joined windows of all threads.
pub(super) struct PhaseTotals<'a> {
    call_state: &'a CallState<'a>,
    pending: BTreeMap<usize, PendingWindow>,
    /// The next window that each thread will send; `None` once it has ended.
    next_window: Vec<Option<usize>>,
    windows: Vec<Window>,
    totals: Flows,
    thread_ops: Vec<u64>,
    thread_seconds: Vec<f64>,
    cpu: CpuTime,
}

impl<'a> PhaseTotals<'a> {
    /// Empty totals for `threads` threads.
    pub(super) fn new(call_state: &'a CallState<'a>, threads: usize) -> PhaseTotals<'a> {
        PhaseTotals {
            call_state,
            pending: BTreeMap::new(),
            next_window: vec![Some(0); threads],
            windows: Vec::new(),
            totals: flows_for(call_state.calls.workload),
            thread_ops: vec![0; threads],
            thread_seconds: vec![0.0; threads],
            cpu: CpuTime::default(),
        }
    }

    /// Joins windows until all threads have ended.
    pub(super) fn gather(
        &mut self,
        receiver: &Receiver<Message>,
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        let workload = self.call_state.calls.workload;
        let mut began = process_cpu_time();
        let mut failure = None;
        for message in receiver {
            match message {
                Message::Begin => {
                    began = process_cpu_time();
                    observer.begin();
                }
                Message::Window { thread, part } => {
                    let pending = self.pending.entry(part.index).or_default();
                    pending.add(&part, workload);
                    pending.live += 1;
                    self.next_window[thread] = Some(part.index + 1);
                }
                Message::End {
                    thread,
                    end: Ok(end),
                } => {
                    let index = end.part.index;
                    self.pending
                        .entry(index)
                        .or_default()
                        .add(&end.part, workload);
                    self.next_window[thread] = None;
                    self.thread_ops[thread] = end.ops;
                    let span = self.call_state.clock.span(end.ticks);
                    self.thread_seconds[thread] = span.as_secs_f64();
                }
                Message::End {
                    thread,
                    end: Err(error),
                } => {
                    self.next_window[thread] = None;
                    failure.get_or_insert(error);
                }
            }
            self.close_complete(observer);
        }
        let ended = process_cpu_time();
        self.cpu = CpuTime {
            user_s: ended.user_s - began.user_s,
            system_s: ended.system_s - began.system_s,
        };
        failure.map_or(Ok(()), Err)
    }

    /// Closes the windows of which all threads have sent their parts.
    fn close_complete(&mut self, observer: &mut dyn Observer) {
        let complete_before = self.next_window.iter().flatten().copied().min();
        while let Some(entry) = self.pending.first_entry() {
            if complete_before.is_some_and(|before| *entry.key() >= before) {
                return;
            }
            let (index, pending) = entry.remove_entry();
            // A thread may end exactly at the end of a window, and sends an empty one.
            if pending.ticks > 0 {
                let mut window = self.window(index, pending);
                observer.window(&mut window);
                self.windows.push(window);
            }
        }
    }

    fn window(&mut self, index: usize, pending: PendingWindow) -> Window {
        let clock = self.call_state.clock;
        let flows = pending
            .flows
            .unwrap_or_else(|| flows_for(self.call_state.calls.workload));
        merge_flows(&mut self.totals, &flows);
        let [read, write, sync, commit, trim] = flows.map(|flow| {
            flow.map(|flow| WindowFlow {
                slices: flow.slices,
                latency: flow.latency.scaled(clock.nanos_per_tick()),
            })
        });
        let busy = pending.busy_ticks / pending.thread_ticks.max(1) as f64;
        Window {
            t_s: index as f64 * self.call_state.calls.window.as_secs_f64(),
            seconds: clock.span(pending.ticks).as_secs_f64(),
            slice_seconds: self.call_state.slice().as_secs_f64(),
            read,
            write,
            sync,
            commit,
            trim,
            in_flight: pending.live,
            idle_fraction: (1.0 - busy).clamp(0.0, 1.0),
            device: None,
        }
    }

    /// The phase's record; `detail` is a remark on its timing.
    pub(super) fn into_phase(self, detail: String) -> Phase {
        let CallState { calls, clock, .. } = self.call_state;
        let [read, write, sync, commit, trim] = self.totals.map(|flow| {
            flow.map(|flow| Flow {
                ops: flow.slices.iter().map(|slice| slice.ops).sum(),
                bytes: flow.slices.iter().map(|slice| slice.bytes).sum(),
                latency: flow.latency.scaled(clock.nanos_per_tick()),
                service: None,
            })
        });
        Phase {
            name: calls.name.to_owned(),
            workload: calls.workload.clone(),
            engine: EngineUsed {
                kind: EngineKind::Sync,
                clock: clock.kind(),
                detail,
            },
            began_s: 0.0,
            seconds: self.windows.iter().map(|window| window.seconds).sum(),
            drain_seconds: 0.0,
            stopped: match calls.interrupt.load(Relaxed) {
                true => StopReason::Signal,
                false => StopReason::Ops,
            },
            read,
            write,
            sync,
            commit,
            trim,
            thread_ops: self.thread_ops,
            thread_seconds: self.thread_seconds,
            cpu: self.cpu,
            windows: self.windows,
            surroundings: HostConditions::default(),
            outcome: record::JobFileResults::default(),
        }
    }
}
