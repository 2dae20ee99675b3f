//! Workers of a phase: their number, the share of each, and their shared state.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use record::{EngineKind, MaxLatency, Nanos, Workload};

use crate::arrivals::Arrivals;
use crate::backend::Backend;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::depth_search::Search;
use crate::flow::FlowHandle;
use crate::job::{EngineError, Job};
use crate::plan::{Message, Plan, ThreadShare};
use crate::positions::PositionGenerator;
use crate::random::derive_seed;
use crate::ring::RingFeatures;
use crate::start::StartGroup;
use crate::start_barrier::StartBarrier;
use crate::tally::{SLICES, Timetable};
use crate::think_pause::ThinkPause;
use crate::thread_settings;
use crate::threads::{self, Blocking};
use crate::throttle::{Backlog, Throttle};
use crate::uring::{self, Uring};
use crate::verify::Verifier;
use crate::worker::Worker;

/// Maximum number of requests in flight of an open loop with blocking calls.
const OPEN_LOOP_WORKERS: u32 = 512;
/// Interval at which a job that has not begun checks whether it must end.
const POLL_INTERVAL: Nanos = Nanos(20_000_000);
/// Maximum number of worker threads.
const MAX_WORKERS: u32 = 8192;

/// Number of workers, and of the slots of each.
pub(crate) struct WorkerCounts {
    pub workers: u32,
    pub workers_a_thread: u32,
    pub slots: u32,
}

impl WorkerCounts {
    pub(crate) fn of(workload: &Workload, kind: EngineKind) -> Result<WorkerCounts, EngineError> {
        let (workers_a_thread, slots) = match kind {
            EngineKind::Uring => (1, workload.depth),
            _ if pauses_together(workload) => {
                return Err(EngineError::Unfit(
                    "think time with several requests in flight needs io_uring, which cannot be used here: each \
                     thread would pause on its own; give iodepth=1"
                        .to_owned(),
                ));
            }
            // A request without a free worker waits in the schedule, and is timed from its due time.
            _ if workload.rate_per_s.is_some() => {
                let most = (OPEN_LOOP_WORKERS / workload.threads).max(1);
                (workload.depth.min(most), 1)
            }
            _ => (workload.depth, 1),
        };
        let workers = workload.threads * workers_a_thread;
        if workers > MAX_WORKERS {
            return Err(EngineError::Unfit(format!(
                "{} requests in flight would take a thread each without io_uring, and at most \
                 {MAX_WORKERS} are started; give a smaller --depth",
                workload.in_flight()
            )));
        }
        Ok(WorkerCounts {
            workers,
            workers_a_thread,
            slots,
        })
    }

    /// A remark if fewer requests can be in flight than requested.
    pub(crate) fn depth_note(&self, workload: &Workload) -> Option<String> {
        let most = u64::from(self.workers) * u64::from(self.slots);
        (most < workload.in_flight())
            .then(|| format!("at most {most} requests in flight, with a thread for each"))
    }

    /// Shares of the workers of each thread; the first of them leads.
    fn shares(&self, phase_state: &PhaseState<'_>, start: u64) -> Vec<ThreadShare> {
        let (job, clock) = (phase_state.job, phase_state.clock);
        let workload = job.workload;
        let throttle = phase_state.throttle(self.slots, start);
        let details = workload.details.as_deref();
        let mut shares = Vec::new();
        for thread in 0..workload.threads {
            let arrivals = |rate: f64| {
                let a_second = clock.ticks(Nanos::from_secs(1)) as f64;
                let mean_gap = a_second * f64::from(workload.threads) / rate;
                // A sequence that differs from that of the positions.
                let seed = derive_seed(!job.seed, u64::from(thread));
                let even = details.is_some_and(|details| details.even_rate);
                Arc::new(Mutex::new(Arrivals::new(mean_gap, start, seed, even)))
            };
            let one_sided = details.and_then(|details| details.one_sided_rate);
            let one_sided = one_sided.map(|limit| (limit.direction(), arrivals(limit.per_s)));
            let arrivals = workload.rate_per_s.map(arrivals);
            let positions = PositionGenerator::of(workload, job.span.0, thread, job.seed);
            shares.extend((0..self.workers_a_thread).map(|member| ThreadShare {
                positions: positions.clone(),
                arrivals: arrivals.clone(),
                one_sided: one_sided.clone(),
                leads: member == 0,
                slots: self.slots,
                throttle: throttle.clone().if_any(),
            }));
        }
        shares
    }
}

/// True if several requests in flight must complete before one pause.
fn pauses_together(workload: &Workload) -> bool {
    let details = workload.details.as_deref();
    workload.depth > 1 && details.is_some_and(|details| details.think.is_some())
}

/// Number of windows of a phase that belong to its ramp, and are not counted.
pub(crate) fn ramp_windows(job: &Job<'_>) -> usize {
    let details = job.workload.details.as_ref();
    details.map_or(0, |details| details.ramp.0.div_ceil(job.window.0) as usize)
}

/// Delay after which a job begins.
fn delay(job: &Job<'_>) -> Nanos {
    let details = job.workload.details.as_ref();
    details.map_or(Nanos(0), |details| details.delay)
}

/// The slices of a phase, including its ramp; a phase has at least one.
fn timetable(job: &Job<'_>, clock: Clock, start: u64) -> Timetable {
    let slice = job.window.0 / SLICES as u64;
    Timetable {
        start,
        slice: clock.ticks(Nanos(slice)),
        slices: job.workload.longest.0.div_ceil(slice).max(1) + (ramp_windows(job) * SLICES) as u64,
    }
}

/// State that the workers of a phase share.
pub(crate) struct PhaseState<'a> {
    pub job: &'a Job<'a>,
    pub files: &'a [&'a File],
    pub clock: Clock,
    pub worker_counts: &'a WorkerCounts,
    /// Barrier of the workers of this job, which they pass before one of them waits for the other jobs.
    pub ready: StartBarrier,
    pub start: &'a StartGroup,
    pub begin: OnceLock<(Timetable, Vec<ThreadShare>)>,
    pub budget: Option<Budget>,
    pub enough: AtomicBool,
    /// Set when a rule of its job file ends the phase.
    pub finished: AtomicBool,
    pub verifier: Option<Verifier<'a>>,
    /// The job's handle in its group of shares.
    pub flow: Option<FlowHandle>,
    pub granted: OnceLock<RingFeatures>,
}

impl PhaseState<'_> {
    /// Body of a worker's thread.
    pub(crate) fn work(&self, id: usize, kind: EngineKind, sender: Sender<Message>) {
        let seed = derive_seed(self.job.seed, id as u64);
        let workload = self.job.workload;
        let block = workload.largest_block().0 as u32;
        let details = workload.details.as_deref();
        let full_sync = details.is_some_and(|details| details.full_sync);
        let uses_data =
            self.verifier.is_some() || details.is_some_and(|details| details.contents.is_some());
        let mixed = workload.reads() && workload.writes() && !uses_data && !workload.trims();
        let settings = details.and_then(|details| details.thread_settings.as_ref());
        if let Err(error) = settings.map_or(Ok(()), thread_settings::apply) {
            self.loop_over(id, Err::<Uring, _>(error), sender);
            return;
        }
        match kind {
            EngineKind::Uring => {
                let rules = uring::Rules {
                    full_sync,
                    own_data: uses_data,
                    mixed,
                    priorities: details
                        .map_or_else(Vec::new, |details| details.priority_shares.clone()),
                };
                let ring = Uring::new(
                    self.files,
                    block,
                    self.worker_counts.slots,
                    self.worker_counts.workers.saturating_mul(self.start.jobs()),
                    seed,
                    self.clock,
                    rules,
                );
                if let Ok(ring) = &ring {
                    self.granted.get_or_init(|| ring.granted());
                }
                self.loop_over(id, ring, sender);
            }
            _ => {
                let rules = threads::Rules {
                    full_sync,
                    stamps: !uses_data && !workload.trims(),
                    trims: workload.trims(),
                    mixed,
                };
                let calls = Blocking::new(self.files, block, seed, self.clock, rules);
                self.loop_over(id, calls, sender);
            }
        }
    }

    /// Waits for the delayed start of a job, unless the job ends before.
    fn wait_until(&self, start: u64) {
        let ends = || self.job.interrupt.load(Relaxed) || self.enough.load(Relaxed);
        loop {
            let left = self.clock.span(start.saturating_sub(self.clock.now()));
            if left.0 == 0 || ends() {
                return;
            }
            thread::sleep(left.min(POLL_INTERVAL).into());
        }
    }

    /// Throttle of a worker with this number of slots, in a phase that begins at `start`.
    fn throttle(&self, slots: u32, start: u64) -> Throttle {
        let Some(details) = self.job.workload.details.as_deref() else {
            return Throttle::default();
        };
        let ticks = |span| self.clock.ticks(span);
        let think_pause = details.think;
        let backlog = self.verifier.as_ref().map_or(0, Verifier::backlog);
        Throttle {
            think_pause: think_pause.map(|think| ThinkPause::new(&think, start, ticks)),
            flow: self.flow.clone(),
            search: (details.depth_search.as_ref())
                .filter(|_| slots == self.job.workload.depth)
                .map(|rules| Search::new(rules, slots, ticks)),
            backlog: (backlog > 0).then(|| Backlog::new(backlog)),
        }
    }

    /// Maximum ticks of reads, and of writes and trims.
    fn longest(&self) -> [u64; 2] {
        let details = self.job.workload.details.as_deref();
        let most = details.and_then(|details| details.max_latency);
        let MaxLatency { reads, writes } = most.unwrap_or_default();
        [reads, writes].map(|most| match most.0 {
            0 => u64::MAX,
            _ => self.clock.ticks(most),
        })
    }

    fn loop_over(&self, id: usize, backend: io::Result<impl Backend>, sender: Sender<Message>) {
        // A job that fails still arrives at the barrier, so that the others do not wait forever.
        if backend.is_err() {
            self.enough.store(true, Relaxed);
        }
        self.ready.wait();
        let (timetable, shares) = self.begin.get_or_init(|| {
            let start = self.start.wait_for_all(self.clock) + self.clock.ticks(delay(self.job));
            self.wait_until(start);
            let _ = sender.send(Message::Begin);
            (
                timetable(self.job, self.clock, start),
                self.worker_counts.shares(self, start),
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
                longest: self.longest(),
                interrupt: self.job.interrupt,
                enough: &self.enough,
                finished: &self.finished,
                verifier: self.verifier.as_ref(),
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
