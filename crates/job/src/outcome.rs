//! The end of a command: the hint for the user of a job that was stopped, and the exit status.

use anyhow::anyhow;
use ui::exit::{CommandEnd, Failure, Outcome};

/// Time for which a job can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumable {
    /// Wherever and whenever its target is attached.
    Anywhere,
    /// While its target stays attached to a host that is not restarted.
    WhileAttached,
    /// No longer: the target went away, and only its path identifies it.
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

    /// The same, when the target went away.
    pub fn when_detached(self) -> Resumable {
        match self {
            Resumable::WhileAttached => Resumable::Detached,
            other => other,
        }
    }

    /// True when the same command continues where the job ended.
    pub fn goes_on(self) -> bool {
        matches!(self, Resumable::Anywhere | Resumable::WhileAttached)
    }

    /// A sentence for the user: the same command continues, or begins again.
    pub fn hint(self) -> &'static str {
        match self {
            Resumable::Anywhere => "The same command goes on from there.",
            Resumable::WhileAttached => {
                "The same command goes on from there, unless the volume is attached anew or the \
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

/// The outcome of a command: `stopped` has a sentence for each job that did not come to its end, and `answer` is
/// that of those that did.
///
/// # Errors
/// Failed midway, where a job did not come to its end.
pub fn outcome(stopped: &[String], answer: CommandEnd) -> Outcome {
    match stopped.is_empty() {
        true => Ok(answer),
        false => Err(Failure::Midway(anyhow!(stopped.join("\n")))),
    }
}
