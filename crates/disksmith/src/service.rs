//! A verb as a service: its options come from a file, which SIGHUP has read again.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::{CommandFactory as _, Parser as _};

use admin::args::ServiceArgs;
use admin::config::{self, Program};

use crate::cli::{Cli, Verb};
use fleet::HostVerb;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::service_manager::notify;

/// The program, as its configuration is checked.
pub(crate) fn program() -> Program {
    Program {
        command: Cli::command(),
        validate,
    }
}

fn validate(words: &[OsString]) -> Result<(), Failure> {
    let cli = Cli::try_parse_from(words).refused()?;
    let context = Context::of_process(cli.ledger.named());
    match &cli.verb {
        Verb::Host(verb) => verb.validate(&context),
        Verb::Serve(args) => serve::validate(args, &context),
        _ => Ok(()),
    }
}

/// A service that runs.
pub(crate) struct Service {
    /// The verb, with the options of its file.
    pub cli: Cli,
    /// Set by SIGHUP; `None` of a verb that does not end for it.
    reload: Option<Arc<AtomicBool>>,
}

impl Service {
    /// Reads the options.
    ///
    /// # Errors
    /// Refused where something in the file is wrong.
    pub(crate) fn begin(args: &ServiceArgs) -> Result<Service, Failure> {
        let words = config::command_line(args, &program())?;
        let cli = Cli::try_parse_from(words).refused()?;
        let reload = match &cli.verb {
            Verb::Host(HostVerb::Tally(_)) => None,
            _ => Some(ui::signals::reload_flag().refused()?),
        };
        Ok(Service { cli, reload })
    }

    /// The end of the verb. After SIGHUP this program is started again in the same process, so that a new version of
    /// it takes over too.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn end(self, answer: CommandEnd) -> Outcome {
        if !self.reload.is_some_and(|reload| reload.load(Relaxed)) {
            return Ok(answer);
        }
        // Until the new one is ready, systemd waits for it.
        notify("RELOADING=1");
        let mut arguments = std::env::args_os();
        let named = arguments.next().unwrap_or_default();
        // The file of this process may have been replaced, and is then another than that of its name.
        let program = match Path::new(&named).is_absolute() {
            true => named.into(),
            false => std::env::current_exe().midway()?,
        };
        Err(Command::new(program).args(arguments).exec()).midway()
    }
}
