//! Measures the phases of the sweep on the mounted layout, by `bench`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Engine, derive_seed};
use ledger::Ledger;

use super::figures::figures_of;
use super::record::{CellOutcome, SweepSettings};
use bench::args::{BenchArgs, FioOptions, SharedOptions};
use bench::conclusion::Conclusion;
use bench::{FinishedRun, Suite};
use domain::values::{Percent, Size, Span};
use replay::ReplayOptions;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure, sentence};

/// Arguments of `bench`. All layouts of a block are measured with the same requests.
///
/// # Errors
/// When the text of the user's workload is invalid, as a sentence.
pub(crate) fn bench_args(
    settings: &SweepSettings,
    target: &Path,
    block: usize,
) -> Result<BenchArgs, String> {
    let workload = settings.own_workload()?;
    let phases = settings.phases.iter().map(Into::into);
    let trace = settings.replay.as_ref();
    Ok(BenchArgs {
        target: Some(target.to_path_buf()),
        suite: Suite::Database,
        phase: if workload.is_some() || trace.is_some() {
            Vec::new()
        } else {
            phases.collect()
        },
        workload,
        fio: None,
        fio_options: FioOptions::default(),
        replay: trace.map(|trace| trace.path.clone()),
        replay_options: trace.map_or_else(ReplayOptions::default, |trace| trace.options.clone()),
        more_targets: Vec::new(),
        threads: settings.threads,
        depth: settings.depth,
        block: None,
        read_fraction: None,
        span: None,
        dedupe: None,
        p99: None,
        files: None,
        file_size: None,
        directories: None,
        quick: false,
        seconds: Some(Span(settings.seconds)),
        precision: Some(Percent(settings.precision)),
        shared: SharedOptions::of_size(Some(Size(settings.size))),
        destroy: Vec::new(),
        planned: Vec::new(),
        engine: None,
        seed: Some(derive_seed(settings.seed, block as u64)),
        format: None,
        json: false,
        logs: None,
        report: None,
        force: false,
        no_ledger: true,
    })
}

/// Result of a measurement, and its duration.
pub(crate) struct CellMeasurement {
    /// Outcome of the measurement.
    pub outcome: CellOutcome,
    /// Seconds that the phases took.
    pub seconds: f64,
}

/// Measures the file system at `target` and keeps the run. `None` when a signal ended it early, since a partial
/// measurement is not comparable.
///
/// # Errors
/// When the ledger cannot be written.
pub(crate) fn measure(
    settings: &SweepSettings,
    target: &Path,
    block: usize,
    context: &mut Context,
    engine: &dyn Engine,
    ledger: &mut Ledger,
    interrupt: &AtomicBool,
) -> Result<Option<CellMeasurement>, Failure> {
    let args = bench_args(settings, target, block).map_err(Failure::refused)?;
    let ran = bench::run_once(&args, context, engine, interrupt);
    if interrupt.load(Relaxed) {
        return Ok(None);
    }
    let failed = |error: anyhow::Error| CellMeasurement {
        outcome: CellOutcome::Failed(format!("it could not be measured: {}", sentence(&error))),
        seconds: 0.0,
    };
    let run = match ran {
        Ok(FinishedRun { run, failed: None }) => run,
        Ok(FinishedRun {
            failed: Some(error),
            ..
        })
        | Err(Failure::Refused(error) | Failure::Midway(error)) => {
            return Ok(Some(failed(error)));
        }
    };
    let conclusion = Conclusion::of(&run);
    ledger
        .save(&run, conclusion.verdict, &conclusion.findings)
        .midway()?;
    let mut doubts: Vec<String> = conclusion
        .findings
        .iter()
        .filter(|finding| finding.severity > record::Severity::Note)
        .map(|finding| finding.code.name().to_owned())
        .collect();
    doubts.sort();
    doubts.dedup();
    Ok(Some(CellMeasurement {
        seconds: run.phases.iter().map(|phase| phase.seconds).sum(),
        outcome: CellOutcome::Measured {
            figures: figures_of(&run, &conclusion),
            run: run.id,
            doubts,
        },
    }))
}
