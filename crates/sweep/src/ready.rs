//! A sweep that can begin or continue.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use engine::Engine;
use job::{JobStore, OwnedJob};

use super::checkpoint::Checkpoint;
use super::run::Sweep;
use super::testbed::Testbed;
use array::host::ArrayHost;
use array::programs::Programs;
use ui::context::Context;
use ui::exit::Failure;

/// Folder of configuration files.
pub(crate) const ETC: &str = "/etc";

/// A sweep that can begin or continue.
pub(crate) struct ReadySweep {
    /// State of the sweep.
    pub checkpoint: Checkpoint,
    /// The job, in which states are saved.
    pub job: OwnedJob<Checkpoint>,
    /// The devices.
    pub testbed: Testbed,
}

impl ReadySweep {
    /// Runs the sweep.
    pub(crate) fn sweep<'a>(
        self,
        context: &'a mut Context,
        programs: &'a mut dyn Programs,
        engine: &'a dyn Engine,
        interrupt: &'a AtomicBool,
    ) -> Sweep<'a> {
        Sweep {
            ran_before_s: self.checkpoint.record.ran_s,
            checkpoint: self.checkpoint,
            job: self.job,
            testbed: self.testbed,
            programs,
            context,
            engine,
            interrupt,
            began: Instant::now(),
        }
    }
}

/// Opens the ledger, in which the sweep saves `records`. A dry run saves nothing.
///
/// # Errors
/// Refused, when it cannot be opened, or may only be read.
pub(crate) fn open(records: &str, dry_run: bool, context: &Context) -> Result<JobStore, Failure> {
    let store = JobStore::open(context)?;
    match store.ledger().is_writable() || dry_run {
        true => Ok(store),
        false => Err(Failure::refused(format!(
            "{} is read-only, and a sweep must record {records}; name another ledger with --ledger",
            store.ledger().path().display()
        ))),
    }
}

/// Refusal of a sweep, with its reasons.
pub(super) fn refused(problems: &[String]) -> Failure {
    Failure::refused_for("no sweep is begun", problems)
}

/// The host on which layouts are taken down.
pub(crate) fn host<'a>(
    context: &Context,
    programs: &'a mut dyn Programs,
    report: &'a mut dyn FnMut(&str),
) -> ArrayHost<'a> {
    ArrayHost {
        root: context.root.clone(),
        etc: PathBuf::from(ETC),
        programs,
        report,
        claims: Vec::new(),
        array: None,
        journal: None,
    }
}
