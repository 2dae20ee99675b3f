//! Runs a phase: starts the workers, joins their windows, shows them to the observer, and ends the
//! phase.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use record::{
    CpuTime, EngineKind, EngineUsed, Flow, Nanos, Phase, Stopped, Window, WindowFlow, Workload,
};

use crate::arrivals::Arrivals;
use crate::clock::{Clock, monotonic_nanos, process_cpu_time};
use crate::job::{Choice, Control, Engine, EngineError, Job, Observer};
use crate::places::Places;
use crate::tally::{Flows, SLICES, Timetable, WindowTally, flows_for, merge_flows, ops_of};
use crate::threads::Blocking;
use crate::uring::{self, Granted, Uring};
use crate::worker::{Backend, Message, Plan, Share, Worker, WorkerEnd};

/// The engine that makes real I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disks;

impl Engine for Disks {
    fn run(&self, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Phase, EngineError> {
        job.check()?;
        let clock = Clock::best();
        let mut used = choose(job, clock)?;
        let shape = Shape::of(job.workload, used.kind);
        let cpu_before = process_cpu_time();
        let began = (clock.now(), monotonic_nanos());
        let gathered = run_workers(job, used.kind, &shape, clock, observer, &mut used.detail)?;
        let cpu_after = process_cpu_time();
        let ended = (clock.now(), monotonic_nanos());
        note_drift(&mut used.detail, clock, began, ended);
        let mut phase = gathered.into_phase(job, used, &shape, clock);
        phase.cpu = CpuTime {
            user_s: cpu_after.user_s - cpu_before.user_s,
            system_s: cpu_after.system_s - cpu_before.system_s,
        };
        Ok(phase)
    }
}

/// Finds out which way to the kernel is open.
fn choose(job: &Job<'_>, clock: Clock) -> Result<EngineUsed, EngineError> {
    let log_writer = job.workload.sync_every > 0 && job.workload.depth == 1;
    let (kind, detail) = match job.choice {
        Choice::Sync => (EngineKind::Sync, String::new()),
        Choice::Auto if log_writer => (
            EngineKind::Sync,
            "a log writer calls fdatasync itself".to_owned(),
        ),
        Choice::Auto | Choice::Uring => match uring::probe(job.workload.depth) {
            Ok(()) => (EngineKind::Uring, String::new()),
            Err(error) if job.choice == Choice::Uring => return Err(EngineError::NoUring(error)),
            Err(error) => (
                EngineKind::Sync,
                format!("io_uring is refused here: {error}"),
            ),
        },
    };
    Ok(EngineUsed {
        kind,
        clock: clock.kind(),
        detail,
    })
}

/// How many workers there are and what each has to do.
struct Shape {
    workers: u32,
    workers_a_thread: u32,
    slots: u32,
}

impl Shape {
    fn of(workload: &Workload, kind: EngineKind) -> Shape {
        let (workers_a_thread, slots) = match kind {
            EngineKind::Uring => (1, workload.depth),
            _ => (workload.depth, 1),
        };
        Shape {
            workers: workload.threads * workers_a_thread,
            workers_a_thread,
            slots,
        }
    }

    /// What the workers of each thread share, with the first of them leading.
    fn shares(&self, job: &Job<'_>, clock: Clock, start: u64) -> Vec<Share> {
        let workload = job.workload;
        let mut shares = Vec::new();
        for thread in 0..workload.threads {
            let arrivals = workload.rate_per_s.map(|rate| {
                let a_second = clock.ticks(Nanos::from_secs(1)) as f64;
                let mean_gap = a_second * f64::from(workload.threads) / rate;
                // Another sequence than the one that the places are drawn from.
                let seed = !job.seed.wrapping_add(u64::from(thread));
                Arc::new(Mutex::new(Arrivals::new(mean_gap, start, seed)))
            });
            let places = Places::new(
                workload.pattern,
                job.span.0,
                workload.block.0,
                thread,
                workload.threads,
            );
            shares.extend((0..self.workers_a_thread).map(|member| Share {
                places: places.clone(),
                arrivals: arrivals.clone(),
                leads: member == 0,
                slots: self.slots,
            }));
        }
        shares
    }
}

/// The slices of a phase; a phase always has at least one.
fn timetable(job: &Job<'_>, clock: Clock, start: u64) -> Timetable {
    let slice = job.window.0 / SLICES as u64;
    Timetable {
        start,
        slice: clock.ticks(Nanos(slice)),
        slices: job.workload.longest.0.div_ceil(slice).max(1),
    }
}

/// What the workers of a phase share to begin and end together.
struct Together<'a> {
    job: &'a Job<'a>,
    clock: Clock,
    shape: &'a Shape,
    ready: Barrier,
    begin: OnceLock<(Timetable, Vec<Share>)>,
    budget: Option<AtomicU64>,
    enough: AtomicBool,
    granted: OnceLock<Granted>,
}

fn run_workers(
    job: &Job<'_>,
    kind: EngineKind,
    shape: &Shape,
    clock: Clock,
    observer: &mut dyn Observer,
    detail: &mut String,
) -> Result<Gathered, EngineError> {
    let together = Together {
        job,
        clock,
        shape,
        ready: Barrier::new(shape.workers as usize),
        begin: OnceLock::new(),
        budget: job.workload.ops.map(AtomicU64::new),
        enough: AtomicBool::new(false),
        granted: OnceLock::new(),
    };
    let (sender, receiver) = channel();
    let gathered = thread::scope(|scope| {
        for id in 0..shape.workers as usize {
            let (together, sender) = (&together, sender.clone());
            thread::Builder::new()
                .name(format!("io-{id}"))
                // Workers keep their state on the heap; thousands of threads must fit.
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || together.work(id, kind, sender))
                .map_err(|error| {
                    together.enough.store(true, Relaxed);
                    EngineError::Setup(error)
                })?;
        }
        drop(sender);
        Gathered::gather(&receiver, &together, observer)
    })?;
    if let Some(granted) = together.granted.get() {
        detail.push_str(&granted.missing());
    }
    Ok(gathered)
}

impl Together<'_> {
    /// One worker's life, on its own thread.
    fn work(&self, id: usize, kind: EngineKind, sender: Sender<Message>) {
        let seed = self.job.seed.wrapping_mul(31).wrapping_add(id as u64);
        let block = self.job.workload.block.0 as u32;
        let file: &File = self.job.file;
        match kind {
            EngineKind::Uring => {
                let ring = Uring::new(file, block, self.shape.slots, seed, self.clock);
                if let Ok(ring) = &ring {
                    self.granted.get_or_init(|| ring.granted());
                }
                self.loop_over(id, ring, sender);
            }
            _ => self.loop_over(id, Blocking::new(file, block, seed, self.clock), sender),
        }
    }

    fn loop_over(&self, id: usize, backend: io::Result<impl Backend>, sender: Sender<Message>) {
        // Whoever fails still comes to the barrier, so that the others do not wait for ever.
        if backend.is_err() {
            self.enough.store(true, Relaxed);
        }
        self.ready.wait();
        let (timetable, shares) = self.begin.get_or_init(|| {
            let start = self.clock.now();
            (
                timetable(self.job, self.clock, start),
                self.shape.shares(self.job, self.clock, start),
            )
        });
        let end = backend.map_err(EngineError::Setup).and_then(|backend| {
            let plan = Plan {
                workload: self.job.workload,
                timetable: *timetable,
                seed: self.job.seed,
                budget: self.budget.as_ref(),
                interrupt: self.job.interrupt,
                enough: &self.enough,
            };
            Worker::new(id, &plan, shares[id].clone(), backend, sender.clone()).run()
        });
        if end.is_err() {
            self.enough.store(true, Relaxed);
        }
        let _ = sender.send(Message::End {
            worker: id,
            end: end.map(Box::new),
        });
    }
}

/// The joined windows of all workers, in ticks.
struct Gathered {
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
    fn gather(
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

    fn into_phase(self, job: &Job<'_>, used: EngineUsed, shape: &Shape, clock: Clock) -> Phase {
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

/// Says so when the clock and the monotonic clock went apart during the phase, as they do when a
/// virtual machine moves to another host.
fn note_drift(detail: &mut String, clock: Clock, began: (u64, u64), ended: (u64, u64)) {
    let counted = clock.span(ended.0.saturating_sub(began.0)).as_secs_f64();
    let passed = Nanos(ended.1.saturating_sub(began.1)).as_secs_f64();
    let apart = (counted / passed.max(1e-9) - 1.0).abs();
    if passed > 0.1 && apart > 1e-3 {
        let note = format!(
            "the clock went {:.2} % apart from the monotonic clock during the phase",
            apart * 100.0
        );
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&note);
    }
}
