//! Context of every command: the host, the outputs, and the terminal, if any.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use anyhow::Context as _;

use ledger::Ledger;
use linux::Root;

use crate::exit::{ExitClass as _, Failure};
use crate::journal::{JournalPriority, report};
use crate::window::{width, width_of_errors};
use crate::{charset, usage};

/// The error of an answer that could not be written.
const OUTPUT_LOST_MESSAGE: &str = "the answer could not be written to standard output";

/// Context of every command.
pub struct Context {
    /// The kernel's files.
    pub root: Root,
    /// The ledger that the user named.
    pub ledger: Option<PathBuf>,
    /// Output of answers.
    pub out: Box<dyn Write>,
    /// True if a person watches standard error, so that progress is shown.
    pub watched: bool,
    /// True if standard output is a terminal, so that a person reads the answers.
    pub answers_a_person: bool,
    /// Number of columns that a table may take. Prose takes no more than reads well ([`crate::table::wrap`]).
    pub columns: usize,
}

impl Context {
    /// The context of this process.
    pub fn of_process(ledger: Option<PathBuf>) -> Context {
        Context {
            root: Root::host(),
            ledger,
            out: Box::new(io::BufWriter::new(io::stdout())),
            watched: io::stderr().is_terminal(),
            answers_a_person: io::stdout().is_terminal(),
            columns: width(terminal_size::terminal_size_of(io::stdout())),
        }
    }

    /// Opens the ledger of this command; an error where it cannot be opened.
    pub fn open_ledger(&self) -> Result<Ledger, Failure> {
        Ledger::open(self.ledger_path()?).refused()
    }

    /// Opens the ledger if it exists, otherwise an empty one in memory.
    pub fn open_ledger_or_empty(&self) -> Result<Ledger, Failure> {
        match self.open_ledger_if_there()? {
            Some(ledger) => Ok(ledger),
            None => Ledger::absent(self.ledger_path()?).refused(),
        }
    }

    /// Opens the ledger if it exists, without creating one.
    pub fn open_ledger_if_there(&self) -> Result<Option<Ledger>, Failure> {
        let path = self.ledger_path()?;
        match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // What else is in the way is reported by the ledger.
            _ => Ledger::open(path).refused().map(Some),
        }
    }

    /// Path of the ledger, whether or not it exists.
    ///
    /// # Errors
    /// If there is no folder for it.
    pub fn ledger_path(&self) -> Result<PathBuf, Failure> {
        match &self.ledger {
            Some(path) => Ok(path.clone()),
            None => ledger::default_path(
                |name| std::env::var_os(name),
                rustix::process::geteuid().is_root(),
            )
            .refused(),
        }
    }

    /// Writes an answer. A closed pipe is an error that ends the program quietly.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out
            .write_all(charset::shown(&charset::printable(text)).as_bytes())
            .and_then(|()| self.out.flush())
            .context(OUTPUT_LOST_MESSAGE)
            .midway()
    }

    /// Reports something to the user that is not part of the answer.
    pub fn notice(&self, text: &str) {
        notice(text);
    }
}

/// Prints the output of --help and --version, in colours if standard output is a terminal.
///
/// # Errors
/// As [`Context::print`].
pub fn print_help(help: &clap::Error) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let columns = width(terminal_size::terminal_size_of(io::stdout()));
    out.write_all(usage::broken(help, columns, usize::MAX).as_bytes())
        .and_then(|()| out.flush())
        .context(OUTPUT_LOST_MESSAGE)
        .midway()
}

/// Prints the error of invalid arguments, in colours if standard error is a terminal.
pub fn print_misuse(error: &clap::Error) {
    let of_usage = width(terminal_size::terminal_size_of(io::stderr()));
    let text = usage::broken(error, of_usage, width_of_errors());
    // With standard error closed it cannot be reported.
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Reports something to the user that is not part of the answer, on standard error.
pub fn notice(text: &str) {
    report(JournalPriority::Notice, text, &[]);
}
