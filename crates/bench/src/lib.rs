//! The verb `bench`: suites, the preparation of a target, and the conclusions from a run.

pub(crate) mod answer;
pub mod args;
pub mod conclusion;
mod contents;
pub mod descriptors;
pub mod figures;
mod findings;
mod finish;
mod fio;
mod fio_options;
mod from_trace;
pub mod imported;
mod judged;
mod layout;
mod measure;
mod phase_observer;
mod phase_plan;
mod phases;
pub mod prepared_target;
mod progress;
pub mod runs;
mod sample;
mod schedule;
mod session;
mod shared_options;
pub mod suite;
mod suite_kind;
pub(crate) mod suites;
mod target;
mod test_folder;
mod testfile;
#[cfg(test)]
mod tests;
mod trials;
pub mod views;
mod zone_phases;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use engine::Engine;
use jiff::Timestamp;
use replay::ReplayOptions;

use crate::args::BenchArgs;
use finish::Outputs;
use session::Session;
use suites::{bonnie, sysbench};
use ui::context::Context;
use ui::exit::{Failure, Outcome};
use ui::output::{OutputFile, OutputFormat};
use views::logs::Logs;

pub use fio_options::with_two_dashes;
pub use from_trace::REPLAY;
pub use from_trace::args::ReplayArgs;
pub use phase_plan::PhasePlan;
pub use session::FinishedRun;
pub use suite_kind::Suite;

/// Measures a target, and shows and keeps the run.
pub fn bench(
    args: &BenchArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    let (path, _) = args.target_and_phases().map_err(Failure::refused)?;
    let outputs = check_outputs(args, &path)?;
    let started = Timestamp::now();
    let ready = ReadyRun::make(args, context, engine, interrupt)?;
    // Opened before anything is measured, so that a damaged ledger is reported before and not after.
    let ledger = finish::open_ledger(args, context)?;
    let mut session = ready.session(started, args, context, engine, interrupt);
    let ran = ready.run(&mut session)?;
    finish::finish(ran, args, context, ledger, &outputs)
}

/// Replays a trace, and shows and keeps the run.
pub fn replay(
    args: &ReplayArgs,
    context: &mut Context,
    engine: &dyn Engine,
    interrupt: &AtomicBool,
) -> Outcome {
    bench(&args.bench_args(), context, engine, interrupt)
}

/// Checks that a trace can be read, and be replayed on one target with these options.
///
/// # Errors
/// Refused, where it cannot.
pub fn check_trace(
    file: &Path,
    options: &ReplayOptions,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let args = BenchArgs {
        replay_options: options.clone(),
        ..BenchArgs::default()
    };
    from_trace::surveyed(&args, file, 1, interrupt).map(drop)
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
) -> Result<FinishedRun, Failure> {
    let started = Timestamp::now();
    let ready = ReadyRun::make(args, context, engine, interrupt)?;
    let mut session = ready.session(started, args, context, engine, interrupt);
    ready.run(&mut session)
}

/// Checks that `bench` would accept these arguments, which have a --destroy. With that option no suite prepares
/// anything in a directory, so that nothing is changed.
///
/// # Errors
/// Refused, where it would not.
pub fn dry_run(args: &BenchArgs, context: &Context, engine: &dyn Engine) -> Result<(), Failure> {
    if args.destroy.is_empty() {
        return Err(Failure::refused(
            "a 'bench' without --destroy overwrites nothing, so there is nothing to check",
        ));
    }
    ReadyRun::make(args, context, engine, &AtomicBool::new(false)).map(drop)
}

/// A run of each kind, with everything checked and opened before anything is measured.
enum ReadyRun {
    Phases(phases::ReadyPhases),
    Jobs(fio::FioJobs),
    Grid(sysbench::Grid),
    Bonnie(bonnie::ReadyTests),
    Trace(from_trace::ReadyTrace),
}

impl ReadyRun {
    /// Plans the run that the arguments request, and opens its target. Nothing is written yet.
    ///
    /// # Errors
    /// Refused, where the target cannot be measured as requested.
    fn make(
        args: &BenchArgs,
        context: &Context,
        engine: &dyn Engine,
        interrupt: &AtomicBool,
    ) -> Result<ReadyRun, Failure> {
        if let Some(file) = &args.replay {
            return from_trace::ReadyTrace::make(args, file, &context.root, interrupt)
                .map(ReadyRun::Trace);
        }
        if let Some(jobs) = fio::jobs(args, context)? {
            return fio::FioJobs::make(args, &jobs, context, engine).map(ReadyRun::Jobs);
        }
        match args.suite {
            Suite::Bonnie if args.workload.is_none() => {
                bonnie::ReadyTests::make(args, context).map(ReadyRun::Bonnie)
            }
            Suite::Sysbench if args.workload.is_none() => {
                let (path, names) = args.target_and_phases().map_err(Failure::refused)?;
                suite::check_options(args, &names).map_err(Failure::refused)?;
                sysbench::Grid::make(args, &names, &path, context, engine).map(ReadyRun::Grid)
            }
            _ => phases::ReadyPhases::make(args, &context.root, engine).map(ReadyRun::Phases),
        }
    }

    fn session<'a>(
        &self,
        started: Timestamp,
        args: &'a BenchArgs,
        context: &'a Context,
        engine: &'a dyn Engine,
        interrupt: &'a AtomicBool,
    ) -> Session<'a> {
        let seed = match self {
            // As in fio, a run repeats the requests of the run before, unless `randrepeat=0`.
            ReadyRun::Jobs(jobs) if jobs.repeats() => args.seed.unwrap_or(0),
            _ => session::seed(args, started),
        };
        Session {
            args,
            context,
            engine,
            interrupt,
            started,
            seed,
        }
    }

    fn run(self, session: &mut Session<'_>) -> Result<FinishedRun, Failure> {
        match self {
            ReadyRun::Phases(ready) => session.run_phases(ready),
            ReadyRun::Jobs(ready) => session.run_jobs(ready),
            ReadyRun::Grid(grid) => session.run_grid(grid),
            ReadyRun::Bonnie(ready) => session.run_bonnie(ready),
            ReadyRun::Trace(ready) => session.run_trace(ready),
        }
    }
}

/// True if the target that `--destroy` names may be overwritten: a phase writes, or there is a job file, whose jobs
/// are only known on the host that has it.
pub fn overwrites(args: &BenchArgs) -> bool {
    if args.destroy.is_empty() {
        return false;
    }
    if args.replay.is_some() {
        return !args.replay_options.reads_only;
    }
    let is_of_own_files =
        args.workload.is_none() && matches!(args.suite, Suite::Bonnie | Suite::Sysbench);
    if args.has_jobs() || is_of_own_files {
        return true;
    }
    let plans = args
        .target_and_phases()
        .and_then(|(_, names)| suite::plan(args, &names));
    // Arguments that make no sense are refused by the host.
    plans.map_or(true, |plans| {
        plans.iter().any(|plan| plan.workload.writes())
    })
}

/// Checks that the requested files can be written, so that an error is found before the run.
///
/// # Errors
/// Reason why one cannot be written.
fn check_outputs(args: &BenchArgs, target: &Path) -> Result<Outputs, Failure> {
    let report = OutputFile::check_if_any(args.report.as_ref(), OutputFormat::Page, args.force)?;
    if let Some(report) = &report {
        report.is_not(target)?;
    }
    let logs = args.logs.as_ref();
    Ok(Outputs {
        report,
        logs: logs
            .map(|prefix| Logs::check(prefix, args.force, target))
            .transpose()?,
    })
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::whole::<views::json::RunDocument>("bench", None),
        DocumentType::of::<runs::compare::ComparisonBody>("compare"),
        DocumentType::of::<imported::ImportBody>("import"),
        DocumentType::whole::<views::json::ImportedDocument>("import", None),
        DocumentType::of::<runs::RunsBody>("runs"),
        DocumentType::of::<runs::recordings::RecordingsBody>("runs"),
        DocumentType::of::<runs::recordings::RemovedBody>("runs"),
    ]
}
