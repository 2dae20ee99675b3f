//! Runs a phase on real files: finds out which way to the kernel is open, starts the workers, and
//! lets them begin and end together.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::{io, thread};

use record::{EngineKind, EngineUsed, Nanos, Phase, Workload};

use crate::arrivals::Arrivals;
use crate::backend::Backend;
use crate::budget::Budget;
use crate::clock::{Clock, monotonic_nanos};
use crate::gather::Gathered;
use crate::job::{Choice, Engine, EngineError, Job, Observer};
use crate::places::Places;
use crate::plan::{Message, Plan, Share};
use crate::random::part_of_seed;
use crate::ring::{self, Granted};
use crate::start::Start;
use crate::start_barrier::StartBarrier;
use crate::tally::{SLICES, Timetable};
use crate::threads::Blocking;
use crate::uring::Uring;
use crate::worker::Worker;

/// The engine that makes real I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disks;

impl Engine for Disks {
    fn check(&self, workload: &Workload, choice: Choice) -> Result<(), EngineError> {
        choose(workload, choice).and_then(|(kind, _)| Shape::of(workload, kind).map(drop))
    }

    fn run(&self, job: &Job<'_>, observer: &mut dyn Observer) -> Result<Phase, EngineError> {
        self.run_over(job, &[], observer)
    }

    fn run_over(
        &self,
        job: &Job<'_>,
        others: &[&File],
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        self.run_beside(job, others, &Start::of(1), observer)
    }

    fn run_beside(
        &self,
        job: &Job<'_>,
        others: &[&File],
        start: &Start,
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        let _attended = start.attended();
        job.check()?;
        let files: Vec<&File> = [job.file]
            .into_iter()
            .chain(others.iter().copied())
            .collect();
        check_files(job, &files)?;
        let clock = Clock::best();
        let (kind, detail) = choose(job.workload, job.choice)?;
        let shape = Shape::of(job.workload, kind)?;
        let mut used = EngineUsed {
            kind,
            clock: clock.kind(),
            detail,
        };
        note(&mut used.detail, shape.remark(job.workload));
        let began = (clock.now(), monotonic_nanos());
        let together = Together {
            job,
            files: &files,
            clock,
            shape: &shape,
            ready: StartBarrier::new(shape.workers as usize),
            start,
            begin: OnceLock::new(),
            budget: Budget::of(job.workload),
            enough: AtomicBool::new(false),
            granted: OnceLock::new(),
        };
        let gathered = together.run(kind, observer)?;
        let granted = together.granted.get();
        note(
            &mut used.detail,
            granted.and_then(|granted| granted.missing()),
        );
        let ended = (clock.now(), monotonic_nanos());
        note(&mut used.detail, drift(clock, began, ended));
        Ok(gathered.into_phase(job, used, &shape, clock))
    }
}

/// Checks that there are as many files as the workload takes turns with.
fn check_files(job: &Job<'_>, files: &[&File]) -> Result<(), EngineError> {
    let details = job.workload.details.as_ref();
    let wanted = details.map_or(1, |details| details.files.max(1));
    if files.len() == wanted as usize {
        return Ok(());
    }
    Err(EngineError::Unfit(format!(
        "the workload takes turns with {wanted} files, and there are {}",
        files.len()
    )))
}

/// Adds a remark to a detail, if there is one.
pub(crate) fn note(detail: &mut String, remark: Option<String>) {
    if let Some(remark) = remark {
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&remark);
    }
}

/// Finds out which way to the kernel is open.
fn choose(workload: &Workload, choice: Choice) -> Result<(EngineKind, String), EngineError> {
    let log_writer = workload.sync_every > 0 && workload.depth == 1;
    match choice {
        Choice::Sync => Ok((EngineKind::Sync, String::new())),
        Choice::Auto if log_writer => Ok((
            EngineKind::Sync,
            "a log writer calls fdatasync itself".to_owned(),
        )),
        Choice::Auto | Choice::Uring => match ring::probe(workload.depth) {
            Ok(()) => Ok((EngineKind::Uring, String::new())),
            Err(error) if choice == Choice::Uring => Err(EngineError::NoUring(error)),
            Err(error) => Ok((
                EngineKind::Sync,
                format!("io_uring is refused here: {error}"),
            )),
        },
    }
}

/// An open loop that is made by blocking calls has at most so many in flight.
const OPEN_LOOP_WORKERS: u32 = 512;
/// More threads than this are refused.
const MOST_WORKERS: u32 = 8192;

/// Number of workers, and the work of each.
pub(crate) struct Shape {
    pub workers: u32,
    pub workers_a_thread: u32,
    slots: u32,
}

impl Shape {
    fn of(workload: &Workload, kind: EngineKind) -> Result<Shape, EngineError> {
        let (workers_a_thread, slots) = match kind {
            EngineKind::Uring => (1, workload.depth),
            // Who finds no free worker waits in the schedule, and is timed there.
            _ if workload.rate_per_s.is_some() => {
                let most = (OPEN_LOOP_WORKERS / workload.threads).max(1);
                (workload.depth.min(most), 1)
            }
            _ => (workload.depth, 1),
        };
        let workers = workload.threads * workers_a_thread;
        if workers > MOST_WORKERS {
            return Err(EngineError::Unfit(format!(
                "{} requests in flight would take a thread each without io_uring, and at most \
                 {MOST_WORKERS} are started; give a smaller --depth",
                workload.in_flight()
            )));
        }
        Ok(Shape {
            workers,
            workers_a_thread,
            slots,
        })
    }

    /// Says so when fewer requests can be in flight than was asked for.
    fn remark(&self, workload: &Workload) -> Option<String> {
        let most = u64::from(self.workers) * u64::from(self.slots);
        (most < workload.in_flight())
            .then(|| format!("at most {most} requests in flight, with a thread for each"))
    }

    /// Shares of the workers of each thread, with the first of them leading.
    fn shares(&self, job: &Job<'_>, clock: Clock, start: u64) -> Vec<Share> {
        let workload = job.workload;
        let mut shares = Vec::new();
        for thread in 0..workload.threads {
            let arrivals = workload.rate_per_s.map(|rate| {
                let a_second = clock.ticks(Nanos::from_secs(1)) as f64;
                let mean_gap = a_second * f64::from(workload.threads) / rate;
                // Another sequence than those that the places are drawn from.
                let seed = part_of_seed(!job.seed, u64::from(thread));
                let even = workload
                    .details
                    .as_ref()
                    .is_some_and(|details| details.even_rate);
                Arc::new(Mutex::new(Arrivals::new(mean_gap, start, seed, even)))
            });
            let places = Places::of(workload, job.span.0, thread, job.seed);
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

/// Number of windows of a phase that are its ramp, and not counted.
pub(crate) fn ramp_windows(job: &Job<'_>) -> usize {
    let details = job.workload.details.as_ref();
    details.map_or(0, |details| details.ramp.0.div_ceil(job.window.0) as usize)
}

/// The slices of a phase, with its ramp; a phase always has at least one.
fn timetable(job: &Job<'_>, clock: Clock, start: u64) -> Timetable {
    let slice = job.window.0 / SLICES as u64;
    Timetable {
        start,
        slice: clock.ticks(Nanos(slice)),
        slices: job.workload.longest.0.div_ceil(slice).max(1) + (ramp_windows(job) * SLICES) as u64,
    }
}

/// State by which the workers of a phase begin and end together.
pub(crate) struct Together<'a> {
    pub job: &'a Job<'a>,
    files: &'a [&'a File],
    pub clock: Clock,
    pub shape: &'a Shape,
    /// Where the workers of this job meet, before one of them meets the other jobs.
    ready: StartBarrier,
    pub start: &'a Start,
    pub begin: OnceLock<(Timetable, Vec<Share>)>,
    pub budget: Option<Budget>,
    pub enough: AtomicBool,
    granted: OnceLock<Granted>,
}

impl Together<'_> {
    /// Starts the workers, and gathers what they count until all have ended.
    fn run(&self, kind: EngineKind, observer: &mut dyn Observer) -> Result<Gathered, EngineError> {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for id in 0..self.shape.workers as usize {
                let sender = sender.clone();
                thread::Builder::new()
                    .name(format!("io-{id}"))
                    // Workers keep their state on the heap; thousands of threads must fit.
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || self.work(id, kind, sender))
                    .map_err(|error| {
                        self.enough.store(true, Relaxed);
                        // The others wait for one that will not come.
                        self.ready.open();
                        EngineError::Setup(error)
                    })?;
            }
            drop(sender);
            Gathered::gather(&receiver, self, observer)
        })
    }

    /// One worker's life, on its own thread.
    fn work(&self, id: usize, kind: EngineKind, sender: Sender<Message>) {
        let seed = part_of_seed(self.job.seed, id as u64);
        let workload = self.job.workload;
        let block = workload.largest_block().0 as u32;
        let full_sync = workload
            .details
            .as_ref()
            .is_some_and(|details| details.full_sync);
        match kind {
            EngineKind::Uring => {
                let ring = Uring::new(
                    self.files,
                    block,
                    self.shape.slots,
                    self.shape.workers.saturating_mul(self.start.jobs()),
                    seed,
                    self.clock,
                    full_sync,
                );
                if let Ok(ring) = &ring {
                    self.granted.get_or_init(|| ring.granted());
                }
                self.loop_over(id, ring, sender);
            }
            _ => {
                let calls = Blocking::new(self.files, block, seed, self.clock, full_sync);
                self.loop_over(id, calls, sender);
            }
        }
    }

    fn loop_over(&self, id: usize, backend: io::Result<impl Backend>, sender: Sender<Message>) {
        // Whoever fails still comes to the gate, so that the others do not wait for ever.
        if backend.is_err() {
            self.enough.store(true, Relaxed);
        }
        self.ready.pass();
        let (timetable, shares) = self.begin.get_or_init(|| {
            let start = self.start.meet(self.clock);
            let _ = sender.send(Message::Begin);
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
                free_until: timetable.start
                    + (ramp_windows(self.job) * SLICES) as u64 * timetable.slice,
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

/// Says so when the clock and the monotonic clock went apart during the phase, as they do when a
/// virtual machine moves to another host.
pub(crate) fn drift(clock: Clock, began: (u64, u64), ended: (u64, u64)) -> Option<String> {
    let counted = clock.span(ended.0.saturating_sub(began.0)).as_secs_f64();
    let passed = Nanos(ended.1.saturating_sub(began.1)).as_secs_f64();
    let apart = (counted / passed.max(1e-9) - 1.0).abs();
    (passed > 0.1 && apart > 1e-3).then(|| {
        format!(
            "the clock went {:.2} % apart from the monotonic clock during the phase",
            apart * 100.0
        )
    })
}
