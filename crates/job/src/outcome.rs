//! The end of a command: the hint for the user of an interrupted job, and the exit status.

use anyhow::anyhow;
use ui::exit::{CommandEnd, Failure, Outcome};

/// Conditions under which a job can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumable {
    /// Anywhere and at any time, with its target attached.
    Anywhere,
    /// Only while its target stays attached to a host that is not rebooted.
    WhileAttached,
    /// No longer: the target was detached, and is only identified by its path.
    Detached,
    /// Never: the state is not stored.
    Never,
}

impl Resumable {
    /// Resumable anywhere if the checkpoint was written, otherwise never.
    pub fn if_written(is_written: bool) -> Resumable {
        match is_written {
            true => Resumable::Anywhere,
            false => Resumable::Never,
        }
    }

    /// The same, if the target was detached.
    pub fn when_detached(self) -> Resumable {
        match self {
            Resumable::WhileAttached => Resumable::Detached,
            other => other,
        }
    }

    /// True if the same command continues from the last checkpoint.
    pub fn continues(self) -> bool {
        matches!(self, Resumable::Anywhere | Resumable::WhileAttached)
    }

    /// A sentence for the user: the same command continues, or begins anew.
    pub fn hint(self) -> &'static str {
        match self {
            Resumable::Anywhere => "The same command continues from there.",
            Resumable::WhileAttached => {
                "The same command continues from there, unless the volume is attached anew or the \
                 host restarted meanwhile: only its path is known, by which it is not recognized then."
            }
            Resumable::Detached => {
                "The same command begins anew, since only the volume's path is known, by which it is \
                 not recognized after it is attached anew."
            }
            Resumable::Never => "The same command begins anew, since its progress was not saved.",
        }
    }
}

/// The outcome of a command: `stopped` has a sentence for each job that did not finish, and `answer` is the outcome of
/// the others.
///
/// # Errors
/// Failed midway, if a job did not finish.
pub fn outcome(stopped: &[String], answer: CommandEnd) -> Outcome {
    match stopped.is_empty() {
        true => Ok(answer),
        false => Err(Failure::Midway(anyhow!(stopped.join("\n")))),
    }
}
