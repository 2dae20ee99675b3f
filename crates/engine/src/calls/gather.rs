//! Joins the windows of the threads that make calls. Unlike those of workers, threads end when their
//! own work is done, and windows after that are the others'.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use record::{
    CpuTime, EngineKind, EngineUsed, Flow, Phase, Stopped, Surroundings, Window, WindowFlow,
    Workload,
};

use super::message::{Message, Part};
use super::together::Together;
use crate::clock::process_cpu_time;
use crate::job::{EngineError, Observer};
use crate::tally::{Flows, flows_for, merge_flows};

/// A window for which some threads' parts have come.
#[derive(Default)]
struct Joining {
    flows: Option<Flows>,
    /// The longest part: how long the window was.
    ticks: u64,
    /// All parts together.
    thread_ticks: u64,
    /// Ticks in which threads ran or waited for a processor.
    busy_ticks: f64,
    /// Threads that continued after it.
    live: u64,
}

impl Joining {
    fn add(&mut self, part: &Part, workload: &Workload) {
        let flows = self.flows.get_or_insert_with(|| flows_for(workload));
        merge_flows(flows, &part.flows);
        self.ticks = self.ticks.max(part.ticks);
        self.thread_ticks += part.ticks;
        self.busy_ticks += part.busy_share * part.ticks as f64;
    }
}

/// The joined windows of all threads.
pub(super) struct Gathered<'a> {
    together: &'a Together<'a>,
    joining: BTreeMap<usize, Joining>,
    /// The first window that each thread has yet to tell of; `None` when it has ended.
    reached: Vec<Option<usize>>,
    windows: Vec<Window>,
    totals: Flows,
    thread_ops: Vec<u64>,
    thread_seconds: Vec<f64>,
    cpu: CpuTime,
}

impl<'a> Gathered<'a> {
    /// Of so many threads, nothing yet.
    pub(super) fn new(together: &'a Together<'a>, threads: usize) -> Gathered<'a> {
        Gathered {
            together,
            joining: BTreeMap::new(),
            reached: vec![Some(0); threads],
            windows: Vec::new(),
            totals: flows_for(together.calls.workload),
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
        let workload = self.together.calls.workload;
        let mut began = process_cpu_time();
        let mut failure = None;
        for message in receiver {
            match message {
                Message::Begin => {
                    began = process_cpu_time();
                    observer.begin();
                }
                Message::Window { thread, part } => {
                    let joining = self.joining.entry(part.index).or_default();
                    joining.add(&part, workload);
                    joining.live += 1;
                    self.reached[thread] = Some(part.index + 1);
                }
                Message::End {
                    thread,
                    end: Ok(end),
                } => {
                    let index = end.part.index;
                    self.joining
                        .entry(index)
                        .or_default()
                        .add(&end.part, workload);
                    self.reached[thread] = None;
                    self.thread_ops[thread] = end.ops;
                    let span = self.together.clock.span(end.ticks);
                    self.thread_seconds[thread] = span.as_secs_f64();
                }
                Message::End {
                    thread,
                    end: Err(error),
                } => {
                    self.reached[thread] = None;
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

    /// Closes the windows of which all that will come has come.
    fn close_complete(&mut self, observer: &mut dyn Observer) {
        let all_told = self.reached.iter().flatten().copied().min();
        while let Some(entry) = self.joining.first_entry() {
            if all_told.is_some_and(|told| *entry.key() >= told) {
                return;
            }
            let (index, joining) = entry.remove_entry();
            // A thread may end as a window does, and leaves an empty one.
            if joining.ticks > 0 {
                let mut window = self.window(index, joining);
                observer.window(&mut window);
                self.windows.push(window);
            }
        }
    }

    fn window(&mut self, index: usize, joining: Joining) -> Window {
        let clock = self.together.clock;
        let flows = joining
            .flows
            .unwrap_or_else(|| flows_for(self.together.calls.workload));
        merge_flows(&mut self.totals, &flows);
        let [read, write, sync, commit, trim] = flows.map(|flow| {
            flow.map(|flow| WindowFlow {
                slices: flow.slices,
                latency: flow.latency.scaled(clock.nanos_per_tick()),
            })
        });
        let busy = joining.busy_ticks / joining.thread_ticks.max(1) as f64;
        Window {
            t_s: index as f64 * self.together.calls.window.as_secs_f64(),
            seconds: clock.span(joining.ticks).as_secs_f64(),
            slice_seconds: self.together.slice().as_secs_f64(),
            read,
            write,
            sync,
            commit,
            trim,
            in_flight: joining.live,
            idle_fraction: (1.0 - busy).clamp(0.0, 1.0),
            device: None,
        }
    }

    /// The phase's record, with what should be known of how it was timed.
    pub(super) fn into_phase(self, detail: String) -> Phase {
        let Together { calls, clock, .. } = self.together;
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
                true => Stopped::Signal,
                false => Stopped::Ops,
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
            surroundings: Surroundings::default(),
            outcome: record::Outcome::default(),
        }
    }
}
