//! A sweep that can begin or go on.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use engine::Engine;
use job::Job;

use super::checkpoint::Checkpoint;
use super::run::Sweep;
use super::testbed::Testbed;
use array::host::Host;
use array::programs::Programs;
use ui::context::Context;
use ui::exit::Failure;

/// Folder of programs' settings.
pub(crate) const ETC: &str = "/etc";

/// Result of starting.
pub(crate) enum Start {
    /// Nothing is to be done: the plan was shown.
    Rehearsed,
    /// It can begin.
    Ready(Box<Ready>),
}

/// A sweep that can begin or go on.
pub(crate) struct Ready {
    /// Its state.
    pub checkpoint: Checkpoint,
    /// The job, which takes later states.
    pub job: Job<Checkpoint>,
    /// The devices.
    pub testbed: Testbed,
}

impl Ready {
    /// The sweep.
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

/// Refusal of a sweep, with its reasons.
pub(super) fn refused(problems: &[String]) -> Failure {
    Failure::refused_for("no sweep is begun", problems)
}

/// The host on which layouts are taken down.
pub(crate) fn host<'a>(
    context: &Context,
    programs: &'a mut dyn Programs,
    report: &'a mut dyn FnMut(&str),
) -> Host<'a> {
    Host {
        root: context.root.clone(),
        etc: PathBuf::from(ETC),
        programs,
        report,
        claims: Vec::new(),
        array: None,
        journal: None,
    }
}
