//! Runs of phases through one opened target: the suites that need no files of their own.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use engine::Engine;
use linux::{Root, extents};
use record::TargetKind;

use crate::args::BenchArgs;
use crate::layout::Layout;
use crate::phase_plan::PhasePlan;
use crate::progress::Progress;
use crate::session::{FinishedRun, Session};
use crate::target::{self, Prepared};
use crate::{layout, measure, sample, suite, suites};
use ui::exit::{ExitClass as _, Failure};

/// A run of phases, with everything checked and opened before anything is measured.
pub(crate) struct ReadyPhases {
    pub prepared: Prepared,
    pub phases: Vec<PhasePlan>,
}

impl ReadyPhases {
    /// Plans the phases and opens their target.
    ///
    /// # Errors
    /// Refused, where they make no sense, or the target cannot be measured by them.
    pub(crate) fn make(
        args: &BenchArgs,
        root: &Root,
        engine: &dyn Engine,
    ) -> Result<ReadyPhases, Failure> {
        let (path, names) = args.target_and_phases().map_err(Failure::refused)?;
        let phases = suite::plan(args, &names).map_err(Failure::refused)?;
        check_engine(engine, args, &phases)?;
        Ok(ReadyPhases {
            prepared: target::prepare(root, &path, args, &phases)?,
            phases,
        })
    }
}

/// Refuses an engine that cannot run here, before anything is laid out.
pub(crate) fn check_engine(
    engine: &dyn Engine,
    args: &BenchArgs,
    phases: &[PhasePlan],
) -> Result<(), Failure> {
    phases
        .iter()
        .try_for_each(|plan| engine.check(&plan.workload, args.interface()))
        .refused()
}

impl Session<'_> {
    /// Measures the phases, one after another.
    pub(crate) fn run_phases(&mut self, ready: ReadyPhases) -> Result<FinishedRun, Failure> {
        let ReadyPhases {
            mut prepared,
            phases,
        } = ready;
        let mut progress = Progress::new(self.context.watched);
        lay_out_in_directory(
            self.args,
            self.engine,
            &mut prepared,
            &phases,
            self.seed,
            self.interrupt,
            &mut progress,
        )?;
        let mut notes = std::mem::take(&mut prepared.notes);
        let phases = keep_allowed(phases, prepared.writable, &mut notes)?;
        inspect_content(&mut prepared, &phases)?;
        let machine = self.machine(&prepared);
        let (size, whole) = (prepared.target.size, prepared.largest_request);
        let mut schedule =
            suites::schedule(self.args, phases, size, whole).map_err(Failure::refused)?;
        let measured = measure::measure(
            self.engine,
            &prepared,
            &[&prepared.file],
            schedule.as_mut(),
            self.args.interface(),
            self.seed,
            self.interrupt,
            &mut progress,
        );
        drop(progress);
        let missing = schedule.missing(&measured.phases);
        let target = prepared.target;
        Ok(self.recorded(target, machine, measured, &missing, notes))
    }
}

/// Notes the share of the used part that was never written, and on a device the share that holds only zeros: such
/// blocks may be served without the disk.
///
/// # Errors
/// Failed midway, where the extents of a file cannot be read.
pub(crate) fn inspect_content(
    prepared: &mut Prepared,
    phases: &[PhasePlan],
) -> Result<(), Failure> {
    let largest = measure::largest_span(phases, prepared.target.size);
    prepared.target.unwritten_fraction =
        extents::unwritten_fraction(&prepared.file, largest.0).midway()?;
    if prepared.target.kind == TargetKind::Block {
        prepared.target.zero_fraction = sample::zero_fraction(&prepared.file, largest);
    }
    Ok(())
}

/// Lays out the test file of a target that is a directory, as large as the phases need it.
///
/// # Errors
/// Failed midway, where there is no room, a write fails, or a signal arrives; the file is removed then.
pub(crate) fn lay_out_in_directory(
    args: &BenchArgs,
    engine: &dyn Engine,
    prepared: &mut Prepared,
    phases: &[PhasePlan],
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    if prepared.target.kind != TargetKind::Directory {
        return Ok(());
    }
    // Beyond a requested span nothing needs to be laid out.
    let size = prepared.target.size;
    let largest = measure::largest_span(phases, size);
    prepared.target.size = size.min(record::Bytes(
        largest.0.next_multiple_of(record::Bytes::MIB.0),
    ));
    // A span that a phase names must be laid out completely.
    let spans = phases.iter().any(|plan| plan.workload.span.is_some());
    let fixed = args.shared.size.is_some() || spans;
    let path = prepared.target.path.clone();
    let contents = args.contents();
    let data = Layout {
        most: prepared.target.size,
        fixed,
        contents: contents.as_ref(),
    };
    layout::lay_out(engine, prepared, &data, seed, interrupt, progress)
        .map_err(|error| {
            anyhow::Error::new(error).context(format!(
                "the test file in {path} could not be laid out; it is removed"
            ))
        })
        .midway()?;
    if interrupt.load(Relaxed) {
        return Err(Failure::Midway(anyhow!(
            "interrupted while the test file was laid out; it is removed, and nothing was \
             measured"
        )));
    }
    Ok(())
}

/// Leaves out the phases that write where the target may only be read.
fn keep_allowed(
    phases: Vec<PhasePlan>,
    writable: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<PhasePlan>, Failure> {
    let (allowed, refused): (Vec<_>, Vec<_>) = phases
        .into_iter()
        .partition(|plan| writable || !plan.workload.writes());
    if refused.is_empty() {
        return Ok(allowed);
    }
    let names: Vec<&str> = refused.iter().map(|plan| plan.name.as_str()).collect();
    let what = names.join(", ");
    if allowed.is_empty() {
        return Err(Failure::refused(format!(
            "{what} would write, and an existing file or device is only read unless --destroy \
             names it"
        )));
    }
    notes.push(format!(
        "Left out, because they write and the target was not named with --destroy: {what}."
    ));
    Ok(allowed)
}
