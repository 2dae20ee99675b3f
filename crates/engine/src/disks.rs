//! Runs a phase on real files: finds out which way to the kernel is open, starts the workers, and
//! lets them begin and end together.

use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use record::{EngineKind, EngineUsed, Nanos, Phase, Workload};

use crate::budget::Budget;
use crate::clock::{Clock, monotonic_nanos};
use crate::gather::Gathered;
use crate::job::{Choice, Engine, EngineError, Job, Observer};
use crate::ring;
use crate::start::Start;
use crate::start_barrier::StartBarrier;
use crate::thread_settings;
use crate::together::{Shape, Together};
use crate::verify::{HEADER, Verifier};

/// The engine that makes real I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disks;

impl Engine for Disks {
    fn check(&self, workload: &Workload, choice: Choice) -> Result<(), EngineError> {
        check_blocks(workload)?;
        check_settings(workload)?;
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
        let details = job.workload.details.as_deref();
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
            finished: AtomicBool::new(false),
            verifier: Verifier::of(job.workload, &files),
            flow: details
                .and_then(|details| details.flow.as_ref())
                .map(|share| start.share(share, clock)),
            granted: OnceLock::new(),
        };
        let gathered = run_workers(&together, kind, observer)?;
        let granted = together.granted.get();
        note(
            &mut used.detail,
            granted.and_then(|granted| granted.missing()),
        );
        let ended = (clock.now(), monotonic_nanos());
        note(&mut used.detail, drift(clock, began, ended));
        let mut phase = gathered.into_phase(job, used, &shape, clock);
        if let Some(verifier) = &together.verifier {
            verifier.read_all(job.interrupt);
            phase.outcome.verified = Some(verifier.verified());
        }
        Ok(phase)
    }
}

/// Checks that blocks that are verified have room for a header.
fn check_blocks(workload: &Workload) -> Result<(), EngineError> {
    let verify = workload
        .details
        .as_ref()
        .and_then(|details| details.verify.as_ref());
    let Some(verify) = verify.filter(|verify| !verify.pattern_only) else {
        return Ok(());
    };
    let smallest = workload.smallest_block();
    let block = verify
        .interval
        .map_or(smallest, |interval| interval.min(smallest));
    match block.0 as usize >= HEADER + verify.header_at as usize {
        true => Ok(()),
        false => Err(EngineError::Unfit(format!(
            "blocks of {block} have no room for a header of {HEADER} bytes by which they are verified"
        ))),
    }
}

/// Checks that threads can have the settings of the workload, on one that ends.
fn check_settings(workload: &Workload) -> Result<(), EngineError> {
    let settings = workload
        .details
        .as_ref()
        .and_then(|details| details.thread_settings.as_ref());
    let Some(settings) = settings else {
        return Ok(());
    };
    let applied = thread::scope(|scope| {
        let tried = scope.spawn(|| thread_settings::apply(settings)).join();
        tried.unwrap_or_else(|_| Err(std::io::Error::other("a thread ended by itself")))
    });
    applied.map_err(EngineError::Setup)
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
        // Discards are calls that wait.
        _ if workload.discards() => Ok((EngineKind::Sync, String::new())),
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

/// Starts the workers, and gathers what they count until all have ended.
fn run_workers(
    together: &Together<'_>,
    kind: EngineKind,
    observer: &mut dyn Observer,
) -> Result<Gathered, EngineError> {
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for id in 0..together.shape.workers as usize {
            let sender = sender.clone();
            thread::Builder::new()
                .name(format!("io-{id}"))
                // Workers keep their state on the heap; thousands of threads must fit.
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || together.work(id, kind, sender))
                .map_err(|error| {
                    together.enough.store(true, Relaxed);
                    // The others wait for one that will not come.
                    together.ready.open();
                    EngineError::Setup(error)
                })?;
        }
        drop(sender);
        Gathered::gather(&receiver, together, observer)
    })
}

/// Reports when the clock and the monotonic clock went apart during the phase, as they do when a
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
