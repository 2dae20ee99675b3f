//! Joins the workers' windows, shows them to the observer, and makes the phase's record of them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use record::{CpuTime, EngineUsed, Flow, Phase, Stopped, Window, WindowFlow, Workload};

use crate::clock::Clock;
use crate::disks::{Shape, Together};
use crate::job::{Control, EngineError, Job, Observer};
use crate::plan::{Message, WorkerEnd};
use crate::tally::{Flows, SLICES, WindowTally, flows_for, merge_flows, ops_of};

/// The joined windows of all workers, in ticks.
pub(crate) struct Gathered {
    windows: Vec<Window>,
    totals: Flows,
    worker_ops: Vec<u64>,
    stopped: Stopped,
    drain_ticks: u64,
}

/// A window for which some workers' parts have come.
struct Joining {
    parts: u32,
    ticks: u64,
    flows: Flows,
    in_flight: u64,
    cpu_nanos: u64,
    worker_ops: Vec<u64>,
}

impl Joining {
    fn new(workload: &Workload, workers: u32) -> Joining {
        Joining {
            parts: 0,
            ticks: 0,
            flows: flows_for(workload),
            in_flight: 0,
            cpu_nanos: 0,
            worker_ops: vec![0; workers as usize],
        }
    }

    fn add(&mut self, worker: usize, tally: &WindowTally) {
        self.parts += 1;
        self.ticks = self.ticks.max(tally.ticks);
        merge_flows(&mut self.flows, &tally.flows);
        self.in_flight += tally.in_flight;
        self.cpu_nanos += tally.cpu_nanos;
        self.worker_ops[worker] += ops_of(&tally.flows);
    }
}

impl Gathered {
    /// Joins windows until all workers have ended.
    pub(crate) fn gather(
        receiver: &Receiver<Message>,
        together: &Together<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Gathered, EngineError> {
        let (job, workers) = (together.job, together.shape.workers);
        let mut gathered = Gathered {
            windows: Vec::new(),
            totals: flows_for(job.workload),
            worker_ops: vec![0; workers as usize],
            stopped: Stopped::Time,
            drain_ticks: 0,
        };
        let mut joining: BTreeMap<usize, Joining> = BTreeMap::new();
        let mut ends: Vec<(usize, Box<WorkerEnd>)> = Vec::new();
        let mut failure = None;
        let mut precise = false;
        for message in receiver {
            match message {
                Message::Window { worker, tally } => {
                    let index = tally.index;
                    let window = joining
                        .entry(index)
                        .or_insert_with(|| Joining::new(job.workload, workers));
                    window.add(worker, &tally);
                    if window.parts < workers || precise {
                        continue;
                    }
                    if let Some(window) = joining.remove(&index) {
                        let mut window = gathered.close(index, window, together);
                        precise = observer.window(&mut window) == Control::Stop;
                        gathered.windows.push(window);
                    }
                    if precise {
                        together.enough.store(true, Relaxed);
                    }
                }
                Message::End {
                    worker,
                    end: Ok(end),
                } => ends.push((worker, end)),
                Message::End {
                    end: Err(error), ..
                } => {
                    failure.get_or_insert(error);
                }
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        gathered.stopped = if precise {
            Stopped::Precise
        } else if job.interrupt.load(Relaxed) {
            Stopped::Signal
        } else if together
            .budget
            .as_ref()
            .is_some_and(|left| left.load(Relaxed) == 0)
        {
            Stopped::Ops
        } else {
            Stopped::Time
        };
        gathered.add_ends(joining, &ends, together, observer);
        Ok(gathered)
    }

    /// Adds what the workers had in hand when they ended. Where a signal or the number of requests
    /// ended the phase, that is a last, short window; otherwise the measured time was over, and
    /// only the latencies are kept.
    fn add_ends(
        &mut self,
        mut joining: BTreeMap<usize, Joining>,
        ends: &[(usize, Box<WorkerEnd>)],
        together: &Together<'_>,
        observer: &mut dyn Observer,
    ) {
        let short = matches!(self.stopped, Stopped::Signal | Stopped::Ops);
        let most = together.begin.get().map_or(0, |(timetable, _)| {
            (timetable.slices as usize).div_ceil(SLICES)
        });
        for (worker, end) in ends {
            if short && end.cut.index < most {
                joining
                    .entry(end.cut.index)
                    .or_insert_with(|| Joining::new(together.job.workload, together.shape.workers))
                    .add(*worker, &end.cut);
            } else {
                merge_flows(&mut self.totals, &latencies_only(&end.cut.flows));
            }
            merge_flows(&mut self.totals, &latencies_only(&end.drained));
            self.drain_ticks = self.drain_ticks.max(end.drain_ticks);
        }
        for (index, window) in joining {
            if short && window.ticks > 0 {
                let mut window = self.close(index, window, together);
                observer.window(&mut window);
                self.windows.push(window);
            } else {
                merge_flows(&mut self.totals, &latencies_only(&window.flows));
            }
        }
    }

    /// Makes a window's record of its joined parts and adds it to the totals.
    fn close(&mut self, index: usize, joined: Joining, together: &Together<'_>) -> Window {
        let (clock, job) = (together.clock, together.job);
        merge_flows(&mut self.totals, &joined.flows);
        for (total, ops) in self.worker_ops.iter_mut().zip(&joined.worker_ops) {
            *total += ops;
        }
        let seconds = clock.span(joined.ticks).as_secs_f64();
        let worker_seconds = seconds * f64::from(together.shape.workers);
        let busy = joined.cpu_nanos as f64 / 1e9 / worker_seconds.max(1e-9);
        let [read, write, sync, commit] = joined.flows.map(|flow| {
            flow.map(|flow| WindowFlow {
                slices: flow.slices,
                latency: flow.latency.scaled(clock.nanos_per_tick()),
            })
        });
        Window {
            t_s: index as f64 * job.window.as_secs_f64(),
            seconds,
            slice_seconds: job.window.as_secs_f64() / SLICES as f64,
            read,
            write,
            sync,
            commit,
            in_flight: joined.in_flight,
            idle_fraction: (1.0 - busy).clamp(0.0, 1.0),
            device: None,
        }
    }

    pub(crate) fn into_phase(
        self,
        job: &Job<'_>,
        used: EngineUsed,
        shape: &Shape,
        clock: Clock,
    ) -> Phase {
        let mut workload = job.workload.clone();
        workload.span = Some(job.span);
        let [read, write, sync, commit] = self.totals.map(|flow| {
            flow.map(|flow| Flow {
                ops: flow.slices.iter().map(|slice| slice.ops).sum(),
                bytes: flow.slices.iter().map(|slice| slice.bytes).sum(),
                latency: flow.latency.scaled(clock.nanos_per_tick()),
                service: flow
                    .service
                    .map(|service| service.scaled(clock.nanos_per_tick())),
            })
        });
        Phase {
            name: job.name.to_owned(),
            workload,
            engine: used,
            began_s: 0.0,
            seconds: self.windows.iter().map(|window| window.seconds).sum(),
            drain_seconds: clock.span(self.drain_ticks).as_secs_f64(),
            stopped: self.stopped,
            read,
            write,
            sync,
            commit,
            thread_ops: self
                .worker_ops
                .chunks(shape.workers_a_thread as usize)
                .map(|workers| workers.iter().sum())
                .collect(),
            cpu: CpuTime::default(),
            windows: self.windows,
        }
    }
}

/// The same counts without the numbers of requests: they came back after the measured time.
fn latencies_only(flows: &Flows) -> Flows {
    let mut late = flows.clone();
    for flow in late.iter_mut().flatten() {
        flow.slices.clear();
    }
    late
}
