//! The engine of real I/O: chooses the interface to the kernel, and runs the workers of a phase.

use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use record::{EngineKind, EngineUsed, Nanos, Phase, Workload};

use crate::budget::Budget;
use crate::clock::{Clock, monotonic_nanos};
use crate::gather::PhaseTotals;
use crate::job::{Engine, EngineError, IoInterface, Job, Observer};
use crate::phase_state::{PhaseState, WorkerCounts};
use crate::ring;
use crate::start::StartGroup;
use crate::start_barrier::StartBarrier;
use crate::thread_settings;
use crate::verify::{HEADER, Verifier};

/// The engine of real I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskEngine;

impl Engine for DiskEngine {
    fn check(&self, workload: &Workload, interface: IoInterface) -> Result<(), EngineError> {
        check_blocks(workload)?;
        check_settings(workload)?;
        choose(workload, interface).and_then(|(kind, _)| WorkerCounts::of(workload, kind).map(drop))
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
        self.run_concurrently(job, others, &StartGroup::of(1), observer)
    }

    fn run_concurrently(
        &self,
        job: &Job<'_>,
        others: &[&File],
        start: &StartGroup,
        observer: &mut dyn Observer,
    ) -> Result<Phase, EngineError> {
        let _pending = start.pending();
        job.check()?;
        let files: Vec<&File> = [job.file]
            .into_iter()
            .chain(others.iter().copied())
            .collect();
        check_files(job, &files)?;
        let clock = Clock::best();
        let (kind, detail) = choose(job.workload, job.interface)?;
        let worker_counts = WorkerCounts::of(job.workload, kind)?;
        let mut used = EngineUsed {
            kind,
            clock: clock.kind(),
            detail,
        };
        note(&mut used.detail, worker_counts.depth_note(job.workload));
        let began = (clock.now(), monotonic_nanos());
        let details = job.workload.details.as_deref();
        let phase_state = PhaseState {
            job,
            files: &files,
            clock,
            worker_counts: &worker_counts,
            ready: StartBarrier::new(worker_counts.workers as usize),
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
        let totals = run_workers(&phase_state, kind, observer)?;
        let granted = phase_state.granted.get();
        note(
            &mut used.detail,
            granted.and_then(|granted| granted.missing()),
        );
        let ended = (clock.now(), monotonic_nanos());
        note(&mut used.detail, drift(clock, began, ended));
        let mut phase = totals.into_phase(job, used, &worker_counts, clock);
        if let Some(verifier) = &phase_state.verifier {
            verifier.read_all(job.interrupt);
            phase.outcome.verified = Some(verifier.verified());
        }
        Ok(phase)
    }
}

/// Checks that blocks to be verified have room for a header.
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

/// Checks on a separate thread that the kernel accepts the workload's thread settings.
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

/// Checks that there are as many files as the workload uses.
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

/// Appends a remark to a detail, if there is one.
pub(crate) fn note(detail: &mut String, remark: Option<String>) {
    if let Some(remark) = remark {
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&remark);
    }
}

/// The interface to the kernel for a workload, and the reason if it is not the requested one.
fn choose(
    workload: &Workload,
    interface: IoInterface,
) -> Result<(EngineKind, String), EngineError> {
    let log_writer = workload.sync_every > 0 && workload.depth == 1;
    match interface {
        // Discards use blocking calls.
        _ if workload.discards() => Ok((EngineKind::Sync, String::new())),
        IoInterface::Sync => Ok((EngineKind::Sync, String::new())),
        IoInterface::Auto if log_writer => Ok((
            EngineKind::Sync,
            "a log writer calls fdatasync itself".to_owned(),
        )),
        IoInterface::Auto | IoInterface::Uring => match ring::probe(workload.depth) {
            Ok(()) => Ok((EngineKind::Uring, String::new())),
            Err(error) if interface == IoInterface::Uring => Err(EngineError::NoUring(error)),
            Err(error) => Ok((
                EngineKind::Sync,
                format!("io_uring is refused here: {error}"),
            )),
        },
    }
}

/// Runs the workers, and gathers their counts.
fn run_workers(
    phase_state: &PhaseState<'_>,
    kind: EngineKind,
    observer: &mut dyn Observer,
) -> Result<PhaseTotals, EngineError> {
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for id in 0..phase_state.worker_counts.workers as usize {
            let sender = sender.clone();
            thread::Builder::new()
                .name(format!("io-{id}"))
                // Workers keep their state on the heap; the stacks of thousands of threads must fit into memory.
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || phase_state.work(id, kind, sender))
                .map_err(|error| {
                    phase_state.enough.store(true, Relaxed);
                    // Otherwise the others would wait forever for this one.
                    phase_state.ready.open();
                    EngineError::Setup(error)
                })?;
        }
        drop(sender);
        PhaseTotals::gather(&receiver, phase_state, observer)
    })
}

/// A remark if the clock and the monotonic clock diverged during the phase, as when a virtual machine migrates to
/// another host.
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
