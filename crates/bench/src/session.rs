//! State that the steps of a run share, and the finished run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::Engine;
use jiff::Timestamp;
use linux::{Root, cloud, machine};
use record::{Machine, Origin, Run, RunId, TargetKind};

use crate::args::BenchArgs;
use crate::measure::MeasuredPhases;
use crate::target::Prepared;
use ui::context::Context;

/// State that the steps of a run share.
pub(crate) struct Session<'a> {
    pub args: &'a BenchArgs,
    pub context: &'a Context,
    pub engine: &'a dyn Engine,
    pub interrupt: &'a AtomicBool,
    pub started: Timestamp,
    pub seed: u64,
}

/// A run, and the error that ended it, if any.
pub struct FinishedRun {
    /// The run, with all measurements before the error.
    pub run: Run,
    /// Error that ended it.
    pub failed: Option<anyhow::Error>,
}

impl Session<'_> {
    /// The measured run; `missing` are the names of the phases that did not run.
    pub(crate) fn recorded(
        &self,
        target: record::Target,
        machine: Machine,
        measured: MeasuredPhases,
        missing: &[String],
        mut notes: Vec<String>,
    ) -> FinishedRun {
        let interrupted = self.interrupt.load(Relaxed);
        note_missing(&measured, missing, interrupted, &mut notes);
        let failed = measured.failed.map(|(phase, error)| {
            anyhow::Error::new(error).context(format!("{phase} on {}", target.path))
        });
        let id = RunId::new(self.started, self.seed ^ u64::from(std::process::id()));
        let run = Run {
            id,
            started: self.started,
            disksmith: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            origin: Origin::Measured,
            target,
            machine,
            suite: self.args.suite_name().to_owned(),
            p99_target: self.args.p99_target(),
            replay: None,
            phases: measured.phases,
            notes,
            interrupted,
        };
        FinishedRun { run, failed }
    }

    pub(crate) fn machine(&self, prepared: &Prepared) -> Machine {
        let root = &self.context.root;
        let mut machine = machine_of(root, prepared);
        machine.cloud = cloud::detect(root);
        machine
    }
}

/// Seed of a run that began at `started`.
pub(crate) fn seed(args: &BenchArgs, started: Timestamp) -> u64 {
    args.seed.unwrap_or(started.as_nanosecond() as u64)
}

/// The machine of a target, without its cloud.
pub(crate) fn machine_of(root: &Root, prepared: &Prepared) -> Machine {
    let path = Path::new(&prepared.target.path);
    let on_files = prepared.target.kind != TargetKind::Block;
    let device = prepared.target.disks.first().map(String::as_str);
    machine::facts(root, device, on_files.then_some(path))
}

/// Notes the phases that did not run.
fn note_missing(
    measured: &MeasuredPhases,
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
