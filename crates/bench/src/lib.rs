//! The verb `bench`: suites, the preparation of a target, and what is concluded of a run.

pub(crate) mod answer;
pub mod args;
mod around;
pub mod conclusion;
pub mod descriptors;
mod findings;
mod fio;
pub mod imported;
mod layout;
mod measure;
pub mod prepared_target;
mod progress;
pub mod runs;
mod sample;
mod schedule;
pub mod suite;
pub(crate) mod suites;
mod target;
mod testfile;
#[cfg(test)]
mod tests;
pub mod views;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::anyhow;
use engine::{Choice, Engine};
use jiff::Timestamp;
use ledger::Ledger;
use linux::{Root, cloud, extents, machine};
use record::{Machine, Origin, Run, RunId, TargetKind};

use crate::args::{BenchArgs, EngineChoice, SuiteName};
use conclusion::Conclusion;
use measure::Measured;
use progress::Progress;
use suite::PhasePlan;
use target::Prepared;
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome, sentence};
use ui::output::{Format, OutputFile};

/// Measures a target and says what the figures are worth.
pub fn bench(
    args: &BenchArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let (path, _) = args.target_and_phases().map_err(Failure::refused)?;
    let report = check_report(args, &path)?;
    if let Some(file) = &args.fio {
        return fio::bench_jobs(args, file, report, context, engine, interrupt);
    }
    if args.suite == SuiteName::Bonnie && args.workload.is_none() {
        return suites::bonnie::bench(args, report, context, engine, interrupt);
    }
    if args.suite == SuiteName::Sysbench && args.workload.is_none() {
        return bench_grid(args, report, context, engine, interrupt);
    }
    let ready = Ready::make(args, &context.root, engine)?;
    let session = Session {
        args,
        context,
        engine,
        interrupt,
        seed: ready.seed,
        report,
    };
    session.run_and_finish(|session| session.run(ready))
}

/// Measures the grid of the suite sysbench.
fn bench_grid(
    args: &BenchArgs,
    report: Option<OutputFile>,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let started = Timestamp::now();
    let (path, names) = args.target_and_phases().map_err(Failure::refused)?;
    suite::check_options(args, &names).map_err(Failure::refused)?;
    let grid = suites::sysbench::Grid::make(args, &names, &path, context)?;
    let cells: Vec<PhasePlan> = grid.cells().cloned().collect();
    check_engine(engine, args, &cells)?;
    let session = Session {
        args,
        context,
        engine,
        interrupt,
        seed: seed(args, started),
        report,
    };
    session.run_and_finish(|session| session.run_grid(started, grid))
}

/// Measures a target, and neither shows nor keeps it.
///
/// # Errors
/// When nothing could be measured. An error after the first phase is in the answer.
pub fn run_once(
    args: &BenchArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Result<Ran, Failure> {
    let ready = Ready::make(args, &context.root, engine)?;
    let mut session = Session {
        args,
        context,
        engine,
        interrupt,
        seed: ready.seed,
        report: None,
    };
    session.run(ready)
}

/// Checks that `bench` would begin with these arguments, which have a --destroy: with it no suite prepares anything in a directory, so that nothing is touched.
///
/// # Errors
/// Refused, where it would not.
pub fn rehearse(args: &BenchArgs, context: &Context, engine: &dyn Engine) -> Result<(), Failure> {
    if args.destroy.is_empty() {
        return Err(Failure::refused(
            "a 'bench' without --destroy overwrites nothing, so there is nothing to check",
        ));
    }
    if let Some(file) = &args.fio {
        return fio::rehearse(args, file, context, engine);
    }
    if args.workload.is_none() {
        match args.suite {
            SuiteName::Bonnie => return suites::bonnie::rehearse(args, context),
            SuiteName::Sysbench => return suites::sysbench::rehearse(args, context),
            SuiteName::Database | SuiteName::Seek | SuiteName::Zones | SuiteName::Curve => {}
        }
    }
    Ready::make(args, &context.root, engine).map(drop)
}

/// True if the target that a --destroy of these arguments names is overwritten: a phase writes, or it may be
/// that one does, as the jobs of a file are only known where it lies.
pub fn overwrites(args: &BenchArgs) -> bool {
    if args.destroy.is_empty() {
        return false;
    }
    let is_of_own_files =
        args.workload.is_none() && matches!(args.suite, SuiteName::Bonnie | SuiteName::Sysbench);
    if args.fio.is_some() || is_of_own_files {
        return true;
    }
    let plans = args
        .target_and_phases()
        .and_then(|(_, names)| suite::plan(args, &names));
    // What makes no sense is refused by the host.
    plans.map_or(true, |plans| {
        plans.iter().any(|plan| plan.workload.writes())
    })
}

/// Everything that was checked and opened before anything is measured.
struct Ready {
    started: Timestamp,
    seed: u64,
    prepared: Prepared,
    phases: Vec<PhasePlan>,
}

impl Ready {
    fn make(args: &BenchArgs, root: &Root, engine: &dyn Engine) -> Result<Ready, Failure> {
        let started = Timestamp::now();
        let (path, names) = args.target_and_phases().map_err(Failure::refused)?;
        let phases = suite::plan(args, &names).map_err(Failure::refused)?;
        check_engine(engine, args, &phases)?;
        Ok(Ready {
            started,
            seed: seed(args, started),
            prepared: target::prepare(root, &path, args, &phases)?,
            phases,
        })
    }
}

/// Seed of a run that began at `started`.
fn seed(args: &BenchArgs, started: Timestamp) -> u64 {
    args.seed.unwrap_or(started.as_nanosecond() as u64)
}

/// The page that was asked for. One that cannot be written is refused before a minute of measuring.
///
/// # Errors
/// Why the page cannot be written.
fn check_report(args: &BenchArgs, target: &Path) -> Result<Option<OutputFile>, Failure> {
    let report = OutputFile::check_if_any(args.report.as_ref(), Format::Page, args.force)?;
    if let Some(report) = &report {
        report.is_not(target)?;
    }
    Ok(report)
}

/// The way to the kernel that was asked for.
fn choice(args: &BenchArgs) -> Choice {
    match args.engine {
        None => Choice::Auto,
        Some(EngineChoice::Uring) => Choice::Uring,
        Some(EngineChoice::Sync) => Choice::Sync,
    }
}

/// An engine that is refused should be known before anything is laid out.
fn check_engine(
    engine: &dyn Engine,
    args: &BenchArgs,
    phases: &[PhasePlan],
) -> Result<(), Failure> {
    phases
        .iter()
        .try_for_each(|plan| engine.check(&plan.workload, choice(args)))
        .refused()
}

/// The ledger, if the run is to be kept and can be.
fn open_ledger(args: &BenchArgs, context: &Context) -> Result<Option<Ledger>, Failure> {
    if args.no_ledger {
        return Ok(None);
    }
    let opened = context
        .open_ledger()
        .and_then(|ledger| ledger.demand_writable().refused().map(|()| ledger));
    match opened {
        Ok(ledger) => Ok(Some(ledger)),
        // A full or read-only disk is no reason not to measure.
        Err(Failure::Refused(error)) if is_of_place(&error) => {
            context.notice(&format!(
                "disksmith: this run will not be kept: {}",
                sentence(&error)
            ));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// True if an error means that the ledger cannot be written where it lies, and is sound itself.
fn is_of_place(error: &anyhow::Error) -> bool {
    let error: Option<&ledger::Error> = error.downcast_ref();
    error.is_some_and(ledger::Error::is_of_place)
}

/// State that the steps of a run share.
struct Session<'a> {
    args: &'a BenchArgs,
    context: &'a mut Context,
    engine: &'a dyn Engine,
    interrupt: &'a AtomicBool,
    seed: u64,
    /// The page to be written.
    report: Option<OutputFile>,
}

/// A run, and the error that ended it, if one did.
pub struct Ran {
    /// Measurements until then.
    pub run: Run,
    /// Error that ended it.
    pub failed: Option<anyhow::Error>,
}

impl Session<'_> {
    /// Measures by `run`, and then keeps and shows what came of it. The ledger is opened before
    /// anything is measured, so that one that is damaged is said before and not after.
    fn run_and_finish(mut self, run: impl FnOnce(&mut Self) -> Result<Ran, Failure>) -> Outcome {
        let ledger = open_ledger(self.args, self.context)?;
        let ran = run(&mut self)?;
        self.finish(ran, ledger)
    }

    fn run(&mut self, ready: Ready) -> Result<Ran, Failure> {
        let Ready {
            started,
            mut prepared,
            phases,
            ..
        } = ready;
        let mut progress = Progress::new(self.context.watched);
        if prepared.target.kind == TargetKind::Directory {
            let (engine, interrupt) = (self.engine, self.interrupt);
            let (args, seed) = (self.args, self.seed);
            lay_out(
                args,
                engine,
                &mut prepared,
                &phases,
                seed,
                interrupt,
                &mut progress,
            )?;
        }
        let mut notes = std::mem::take(&mut prepared.notes);
        let phases = keep_allowed(phases, prepared.writable, &mut notes)?;
        look_at_content(&mut prepared, &phases)?;
        let machine = self.machine(&prepared);
        let (size, whole) = (prepared.target.size, prepared.largest_request);
        let mut schedule =
            schedule::of(self.args, phases, size, whole).map_err(Failure::refused)?;
        let measured = measure::measure(
            self.engine,
            &prepared,
            &[&prepared.file],
            schedule.as_mut(),
            choice(self.args),
            self.seed,
            self.interrupt,
            &mut progress,
        );
        drop(progress);
        let missing = schedule.missing(&measured.phases);
        let target = prepared.target;
        Ok(self.recorded(started, target, machine, measured, &missing, notes))
    }

    /// The run that was measured, of which the phases of these names did not run.
    fn recorded(
        &self,
        started: Timestamp,
        target: record::Target,
        machine: Machine,
        measured: Measured,
        missing: &[String],
        mut notes: Vec<String>,
    ) -> Ran {
        let interrupted = self.interrupt.load(Relaxed);
        note_missing(&measured, missing, interrupted, &mut notes);
        let failed = measured.failed.map(|(phase, error)| {
            anyhow::Error::new(error).context(format!("{phase} on {}", target.path))
        });
        let id = RunId::new(started, self.seed ^ u64::from(std::process::id()));
        let run = Run {
            id,
            started,
            disksmith: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            origin: Origin::Measured,
            target,
            machine,
            suite: suite::name(self.args).to_owned(),
            p99_target: suites::curve::target(self.args),
            phases: measured.phases,
            notes,
            interrupted,
        };
        Ran { run, failed }
    }

    fn machine(&self, prepared: &Prepared) -> Machine {
        let root = &self.context.root;
        let mut machine = machine_of(root, prepared);
        machine.cloud = cloud::detect(root);
        machine
    }

    /// Keeps the run, shows it, and says how it ended.
    fn finish(&mut self, ran: Ran, ledger: Option<Ledger>) -> Outcome {
        let Ran { run, failed } = ran;
        let conclusion = Conclusion::of(&run);
        if !run.phases.is_empty() {
            let kept = self.keep(&run, &conclusion, ledger);
            let text = match self.args.format {
                Some(format) => formats::write(format, &formats::sum_up(&run)).midway(),
                None if self.args.json => Ok(views::json::document(&run, &conclusion)),
                None => Ok(views::text::run(
                    &run,
                    &conclusion,
                    self.context.columns,
                    kept,
                )),
            };
            let printed = text.and_then(|text| self.context.print(&text));
            // Also when nobody reads the answer any more, as in a closed pipe.
            self.write_report(&run, &conclusion)?;
            printed?;
        }
        match failed {
            Some(error) => Err(Failure::Midway(error)),
            None if run.interrupted => Err(Failure::Midway(anyhow!(
                "interrupted; what was measured until then {}, and no test file is left",
                if run.phases.is_empty() {
                    "is nothing"
                } else {
                    "is shown above"
                }
            ))),
            None => Ok(Answer::Done),
        }
    }

    /// Saves the run in the ledger; true if it is there now.
    fn keep(&self, run: &Run, conclusion: &Conclusion, ledger: Option<Ledger>) -> bool {
        let Some(ledger) = ledger else {
            return false;
        };
        let save = |mut ledger: Ledger| -> anyhow::Result<()> {
            Ok(ledger.save(run, conclusion.verdict, &conclusion.findings)?)
        };
        let mut saved = save(ledger);
        if let Err(error) = &saved
            && let Some(ledger::Error::Gone { .. }) = error.downcast_ref()
        {
            let told = sentence(error);
            self.context.notice(&format!(
                "disksmith: {told}; a new one is made for this run."
            ));
            let anew = self.context.open_ledger();
            saved = anew.map_err(Failure::error).and_then(save);
        }
        if let Err(error) = &saved {
            self.context.notice(&format!(
                "disksmith: the run is not kept: {}",
                sentence(error)
            ));
        }
        saved.is_ok()
    }

    fn write_report(&self, run: &Run, conclusion: &Conclusion) -> Result<(), Failure> {
        let Some(report) = &self.report else {
            return Ok(());
        };
        // A ledger that cannot be read was complained of when the run was to be kept.
        let marks = self
            .context
            .open_ledger_if_there()
            .ok()
            .flatten()
            .and_then(|ledger| ledger.marks(run.started, Timestamp::MAX).ok())
            .unwrap_or_default();
        views::html::write_file(report, &[(run.clone(), conclusion.clone())], &[], &marks).midway()
    }
}

/// Notes how much of what the phases use was never written, and on a device how much is zero: such blocks may
/// be answered without the disk.
///
/// # Errors
/// Failed midway, where the extents of a file cannot be read.
fn look_at_content(prepared: &mut Prepared, phases: &[PhasePlan]) -> Result<(), Failure> {
    let largest = measure::largest_span(phases, prepared.target.size);
    prepared.target.unwritten_fraction =
        extents::unwritten_fraction(&prepared.file, largest.0).midway()?;
    if prepared.target.kind == TargetKind::Block {
        prepared.target.zero_fraction = sample::zero_fraction(&prepared.file, largest);
    }
    Ok(())
}

/// Lays out the test file of a directory, as large as the phases need it.
///
/// # Errors
/// Failed midway, where there is no room, a write fails, or a signal comes; the file is gone then.
fn lay_out(
    args: &BenchArgs,
    engine: &dyn Engine,
    prepared: &mut Prepared,
    phases: &[PhasePlan],
    seed: u64,
    interrupt: &AtomicBool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    // A span that was asked for need not be laid out beyond.
    let size = prepared.target.size;
    let largest = measure::largest_span(phases, size);
    prepared.target.size = size.min(record::Bytes(
        largest.0.next_multiple_of(record::Bytes::MIB.0),
    ));
    // A span that a phase names must be there whole.
    let spans = phases.iter().any(|plan| plan.workload.span.is_some());
    let fixed = args.size.is_some() || spans;
    let path = prepared.target.path.clone();
    layout::lay_out(engine, prepared, fixed, seed, interrupt, progress)
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

/// The machine that a target is on, without its cloud.
fn machine_of(root: &Root, prepared: &Prepared) -> Machine {
    let path = Path::new(&prepared.target.path);
    let on_files = prepared.target.kind != TargetKind::Block;
    let device = prepared.target.disks.first().map(String::as_str);
    machine::facts(root, device, on_files.then_some(path))
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

/// Notes the phases that did not run.
fn note_missing(
    measured: &Measured,
    missing: &[String],
    interrupted: bool,
    notes: &mut Vec<String>,
) {
    if let Some((phase, error)) = &measured.failed {
        notes.push(format!("{phase} failed: {error}."));
    }
    if !missing.is_empty() && interrupted {
        notes.push(format!(
            "Not run, because of a signal: {}.",
            missing.join(", ")
        ));
    }
}
