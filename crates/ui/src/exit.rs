//! Ends of a command, and their exit statuses.

use std::process::ExitCode;

use crate::journal::{JournalPriority, report};

/// Reason for which a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// Refused or misused: nothing was touched. Status 2.
    Refused(anyhow::Error),
    /// Failed midway: the message says what was undone and what remains. Status 3.
    Midway(anyhow::Error),
}

/// Ends of a command without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// Done. Status 0.
    Done,
    /// Done, and the answer is no: slower than the other run, a bar missed. Status 1.
    No,
    /// Done, with the status of the command that was run elsewhere.
    Status(u8),
}

/// Result of every command.
pub type Outcome = Result<CommandEnd, Failure>;

impl Failure {
    /// Refused, with a sentence.
    pub fn refused(text: impl Into<String>) -> Failure {
        Failure::Refused(anyhow::Error::msg(text.into()))
    }

    /// Refused for several reasons, in one message; `what` is the consequence, as in `no array is built`.
    pub fn refused_for(what: &str, problems: &[String]) -> Failure {
        Failure::refused(match problems {
            [only] => format!("{what}: {only}"),
            all => format!("{what}:{}", listed(all)),
        })
    }

    /// The error, for callers that continue.
    pub fn error(self) -> anyhow::Error {
        match self {
            Failure::Refused(error) | Failure::Midway(error) => error,
        }
    }
}

/// The error with its causes, without duplicates: some messages already contain the text of their cause, some are
/// contained in it. All errors are printed through this.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    let mut before = text.clone();
    for cause in error.chain().skip(1) {
        let message = cause.to_string();
        if !text.contains(&message) {
            match text.strip_suffix(&before) {
                Some(start) if message.contains(&before) => text.truncate(start.len()),
                _ => text.push_str(": "),
            }
            text.push_str(&message);
        }
        before = message;
    }
    text
}

/// Sentences, one below the other.
pub fn listed(sentences: &[String]) -> String {
    let lines: Vec<String> = sentences
        .iter()
        .map(|sentence| format!("\n  - {}", sentence.replace('\n', "\n  ")))
        .collect();
    lines.concat()
}

/// Converts an error to a failure of a command: before anything was changed, or after.
pub trait ExitClass<T> {
    /// A failure before anything was touched.
    fn refused(self) -> Result<T, Failure>;
    /// A failure while something was under way.
    fn midway(self) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> ExitClass<T> for Result<T, E> {
    fn refused(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::Refused(error.into()))
    }

    fn midway(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::Midway(error.into()))
    }
}

/// Prints the error, if any, and returns the exit status. A closed pipe ends quietly.
pub fn exit_code(outcome: Outcome) -> ExitCode {
    let (status, error) = match outcome {
        Ok(CommandEnd::Done) => return ExitCode::SUCCESS,
        Ok(CommandEnd::No) => return ExitCode::from(1),
        Ok(CommandEnd::Status(status)) => return ExitCode::from(status),
        Err(Failure::Refused(error)) => (2, error),
        Err(Failure::Midway(error)) => (3, error),
    };
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    let text = format!("disksmith: {}", sentence(&error));
    report(JournalPriority::Error, &text, &[]);
    ExitCode::from(status)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_cause_is_shown_once_whether_or_not_its_message_holds_it() {
        let cause = || io::Error::from_raw_os_error(2);
        #[derive(Debug, thiserror::Error)]
        #[error("no folder can be made in there: {source}")]
        struct FolderError {
            source: io::Error,
        }
        let held = FolderError { source: cause() };
        let bare = Err::<(), _>(cause()).context("it cannot be opened");
        let deep = Err::<(), _>(linux::Error::Read {
            path: "/x".into(),
            source: cause(),
        });
        let deep = deep.context("the disk is not known").context("no plan");
        // As SQLite's: the outer cause has the words, and the inner one a number too.
        let grown = Err::<(), _>(io::Error::other("error 9: os error 2"));
        let grown = grown.context("os error 2").context("no ledger: os error 2");
        for (error, words) in [
            (held.into(), &["no folder can be made in there"][..]),
            (bare.unwrap_err(), &["it cannot be opened: "]),
            (
                deep.unwrap_err(),
                &["no plan: the disk is not known: ", "/x"],
            ),
            (grown.unwrap_err(), &["no ledger: error 9: os error 2"]),
            (cause().into(), &[]),
        ] {
            let text = sentence(&error);
            assert_eq!(text.matches("os error 2").count(), 1, "{text}");
            for word in words {
                assert!(text.contains(word), "no '{word}' in {text}");
            }
        }
    }
}
