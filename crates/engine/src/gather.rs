//! Joins the workers' windows, passes them to the observer, and makes the phase's record.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use record::{
    CpuTime, Direction, EngineUsed, FailedRequests, Flow, HostConditions, JobFileResults, Phase,
    StopReason, Window, WindowFlow, Workload,
};

use crate::budget::Budget;
use crate::clock::{Clock, cpu_since, process_cpu_time};
use crate::job::{Control, EngineError, Job, Observer};
use crate::phase_state::{PhaseState, WorkerCounts, ramp_windows};
use crate::plan::{Message, WorkerEnd};
use crate::tally::{Flows, SLICES, WindowTally, flows_for, merge_flows, ops_of};

/// The joined windows of all workers, in ticks.
pub(crate) struct PhaseTotals {
    /// Number of windows of the ramp, before the first that counts.
    ramp: usize,
    windows: Vec<Window>,
    totals: Flows,
    worker_ops: Vec<u64>,
    /// Total ticks of the requests of each worker.
    worker_ticks: Vec<f64>,
    stopped: StopReason,
    drain_ticks: u64,
    /// The result of a search for the depth.
    depth: Option<u32>,
    /// Non-fatal failures.
    failed: FailedRequests,
    /// Processor time of the workers' threads.
    worker_cpu: CpuTime,
    cpu: CpuTime,
}

/// A window of which some workers have sent their parts.
struct PendingWindow {
    parts: u32,
    ticks: u64,
    flows: Flows,
    in_flight: u64,
    /// Ticks in which workers ran or waited for a processor.
    busy_ticks: f64,
    worker_ops: Vec<u64>,
    worker_ticks: Vec<f64>,
}

impl PendingWindow {
    fn new(workload: &Workload, workers: u32) -> PendingWindow {
        PendingWindow {
            parts: 0,
            ticks: 0,
            flows: flows_for(workload),
            in_flight: 0,
            busy_ticks: 0.0,
            worker_ops: vec![0; workers as usize],
            worker_ticks: vec![0.0; workers as usize],
        }
    }

    fn add(&mut self, worker: usize, tally: &WindowTally) {
        self.parts += 1;
        self.ticks = self.ticks.max(tally.ticks);
        merge_flows(&mut self.flows, &tally.flows);
        self.in_flight += tally.in_flight;
        self.busy_ticks += tally.busy_share * tally.ticks as f64;
        self.worker_ops[worker] += ops_of(&tally.flows);
        self.worker_ticks[worker] += ticks_of(&tally.flows);
    }
}

impl PhaseTotals {
    /// Joins windows until all workers have ended.
    pub(crate) fn gather(
        receiver: &Receiver<Message>,
        phase_state: &PhaseState<'_>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseTotals, EngineError> {
        let (job, workers) = (phase_state.job, phase_state.worker_counts.workers);
        let mut totals = PhaseTotals {
            ramp: ramp_windows(job),
            windows: Vec::new(),
            totals: flows_for(job.workload),
            worker_ops: vec![0; workers as usize],
            worker_ticks: vec![0.0; workers as usize],
            stopped: StopReason::Time,
            drain_ticks: 0,
            depth: None,
            failed: FailedRequests::default(),
            worker_cpu: CpuTime::default(),
            cpu: CpuTime::default(),
        };
        let mut pending: BTreeMap<usize, PendingWindow> = BTreeMap::new();
        let mut ends: Vec<(usize, Box<WorkerEnd>)> = Vec::new();
        let mut failure = None;
        let mut ended = None;
        let mut began = process_cpu_time();
        for message in receiver {
            match message {
                Message::Begin => {
                    began = process_cpu_time();
                    if totals.ramp == 0 {
                        observer.begin();
                    }
                }
                Message::Window { worker, tally } => {
                    let index = tally.index;
                    totals.add_cpu(index, tally.cpu);
                    let window = pending
                        .entry(index)
                        .or_insert_with(|| PendingWindow::new(job.workload, workers));
                    window.add(worker, &tally);
                    if window.parts < workers || ended.is_some() {
                        continue;
                    }
                    let complete = pending.remove(&index);
                    if index < totals.ramp {
                        if index + 1 == totals.ramp {
                            began = process_cpu_time();
                            observer.begin();
                        }
                        continue;
                    }
                    if let Some(window) = complete {
                        let mut window = totals.close(index, window, phase_state);
                        ended = match observer.window(&mut window) {
                            Control::Continue => None,
                            Control::StopPrecise => Some(StopReason::Precise),
                            Control::StopByRule => Some(StopReason::Rule),
                        };
                        totals.windows.push(window);
                    }
                    if ended.is_some() {
                        phase_state.enough.store(true, Relaxed);
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
        let used = cpu_since(process_cpu_time(), began);
        totals.stopped = if let Some(ended) = ended {
            ended
        } else if phase_state.finished.load(Relaxed) {
            StopReason::Rule
        } else if job.interrupt.load(Relaxed) {
            StopReason::Signal
        } else if phase_state.budget.as_ref().is_some_and(Budget::is_spent) {
            StopReason::Ops
        } else {
            StopReason::Time
        };
        totals.add_ends(pending, &ends, phase_state, observer);
        // The processor time of the process covers all jobs that run at the same time.
        totals.cpu = match phase_state.start.jobs() {
            1 => used,
            _ => totals.worker_cpu,
        };
        Ok(totals)
    }

    /// Adds the processor time of a worker's thread in window `index`, unless the window is in the ramp.
    fn add_cpu(&mut self, index: usize, cpu: CpuTime) {
        if index >= self.ramp {
            self.worker_cpu.user_s += cpu.user_s;
            self.worker_cpu.system_s += cpu.system_s;
        }
    }

    /// Adds the last, incomplete windows of the workers. If a signal or the number of requests ended the phase, they
    /// form a last, short window; otherwise the measured time was over, and only their latencies count.
    fn add_ends(
        &mut self,
        mut pending: BTreeMap<usize, PendingWindow>,
        ends: &[(usize, Box<WorkerEnd>)],
        phase_state: &PhaseState<'_>,
        observer: &mut dyn Observer,
    ) {
        let workload = phase_state.job.workload;
        let last = self.last_open_window(ends, phase_state);
        for (worker, end) in ends {
            self.add_cpu(end.cut.index, end.cut.cpu);
            self.depth = self.depth.max(end.depth);
            self.failed.add(&end.failed);
            if end.cut.index < self.ramp {
                continue;
            }
            if last == Some(end.cut.index) {
                pending
                    .entry(end.cut.index)
                    .or_insert_with(|| {
                        PendingWindow::new(workload, phase_state.worker_counts.workers)
                    })
                    .add(*worker, &end.cut);
            } else {
                merge_flows(
                    &mut self.totals,
                    &late_completions(&end.cut.flows, workload),
                );
            }
            merge_flows(&mut self.totals, &late_completions(&end.drained, workload));
            self.drain_ticks = self.drain_ticks.max(end.drain_ticks);
        }
        let counted = pending.into_iter().filter(|(index, _)| *index >= self.ramp);
        for (index, window) in counted.collect::<Vec<_>>() {
            if last == Some(index) && window.ticks > 0 {
                let mut window = self.close(index, window, phase_state);
                observer.window(&mut window);
                self.windows.push(window);
            } else {
                merge_flows(&mut self.totals, &late_completions(&window.flows, workload));
            }
        }
    }

    /// The window that was shortened by a signal or the number of requests: the one in which the first worker ended.
    /// Later completions, such as those of a worker that was stuck in a call, are late.
    fn last_open_window(
        &self,
        ends: &[(usize, Box<WorkerEnd>)],
        phase_state: &PhaseState<'_>,
    ) -> Option<usize> {
        let slices = phase_state.begin.get()?.0.slices as usize;
        let first_cut = ends.iter().map(|(_, end)| end.cut.index).min()?;
        let short = match self.stopped {
            StopReason::Signal | StopReason::Ops => true,
            StopReason::Rule => phase_state.finished.load(Relaxed),
            StopReason::Precise | StopReason::Time => false,
        };
        let open = self.ramp + self.windows.len()..slices.div_ceil(SLICES);
        (short && open.contains(&first_cut)).then_some(first_cut)
    }

    /// Makes a window's record from its joined parts and adds it to the totals.
    fn close(
        &mut self,
        index: usize,
        joined: PendingWindow,
        phase_state: &PhaseState<'_>,
    ) -> Window {
        let (clock, job) = (phase_state.clock, phase_state.job);
        merge_flows(&mut self.totals, &joined.flows);
        for (total, ops) in self.worker_ops.iter_mut().zip(&joined.worker_ops) {
            *total += ops;
        }
        for (total, ticks) in self.worker_ticks.iter_mut().zip(&joined.worker_ticks) {
            *total += ticks;
        }
        let seconds = clock.span(joined.ticks).as_secs_f64();
        let worker_ticks =
            joined.ticks.max(1) as f64 * f64::from(phase_state.worker_counts.workers);
        let busy = joined.busy_ticks / worker_ticks;
        let [read, write, sync, commit, trim] = joined.flows.map(|flow| {
            flow.map(|flow| WindowFlow {
                slices: flow.slices,
                latency: flow.latency.scaled(clock.nanos_per_tick()),
            })
        });
        Window {
            t_s: (index - self.ramp) as f64 * job.window.as_secs_f64(),
            seconds,
            slice_seconds: job.window.as_secs_f64() / SLICES as f64,
            read,
            write,
            sync,
            commit,
            trim,
            in_flight: joined.in_flight,
            idle_fraction: (1.0 - busy).clamp(0.0, 1.0),
            device: None,
        }
    }

    pub(crate) fn into_phase(
        self,
        job: &Job<'_>,
        used: EngineUsed,
        worker_counts: &WorkerCounts,
        clock: Clock,
    ) -> Phase {
        let mut workload = job.workload.clone();
        workload.span = Some(job.span);
        let [read, write, sync, commit, trim] = self.totals.map(|flow| {
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
            trim,
            thread_ops: self
                .worker_ops
                .chunks(worker_counts.workers_a_thread as usize)
                .map(|workers| workers.iter().sum())
                .collect(),
            thread_seconds: self
                .worker_ticks
                .chunks(worker_counts.workers_a_thread as usize)
                .map(|workers| workers.iter().sum::<f64>() * clock.nanos_per_tick() / 1e9)
                .collect(),
            cpu: self.cpu,
            windows: self.windows,
            surroundings: HostConditions::default(),
            outcome: JobFileResults {
                depth: self.depth,
                failed: Some(self.failed).filter(|failed| failed.count() > 0),
                ..JobFileResults::default()
            },
        }
    }
}

/// Total ticks of the reads, writes and trims.
fn ticks_of(flows: &Flows) -> f64 {
    [Direction::Read, Direction::Write, Direction::Trim]
        .into_iter()
        .filter_map(|direction| flows[direction as usize].as_ref())
        .map(|flow| flow.latency.mean() * flow.latency.count() as f64)
        .sum()
}

/// Completions after the measured time: their latencies count, their number does not. The single sync at the end of a
/// workload is always late, and counts.
fn late_completions(flows: &Flows, workload: &Workload) -> Flows {
    let mut late = flows.clone();
    let last_sync = workload.sync_at_end && workload.sync_every == 0;
    for (direction, flow) in Direction::ALL.into_iter().zip(&mut late) {
        if let Some(flow) = flow
            && !(direction == Direction::Sync && last_sync)
        {
            flow.slices.clear();
        }
    }
    late
}
