//! The command line: the verbs of one host, those of a fleet, and those of the installed program itself. Each
//! capability defines its own arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use admin::args::{ConfigArgs, ServiceArgs};
use fleet::args::FleetArgs;
use fleet::{AgentVerb, HostVerb};
use serve::args::ServeArgs;
use ui::deferred::Deferred;
use ui::ledger_args::LedgerArgs;

/// Database-grade I/O from cloud disks: every figure with an interval and a verdict.
#[derive(Debug, Parser)]
#[command(
    name = "disksmith",
    version,
    max_term_width = 100,
    after_help = "Example: disksmith bench /var/lib/mysql"
)]
pub(crate) struct Cli {
    /// Action
    #[command(subcommand)]
    pub verb: Verb,
    /// The ledger
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Host(HostVerb),
    #[command(flatten)]
    Agent(AgentVerb),
    /// Many hosts at once: what they do, any verb on all of them, and how many to start
    #[command(display_order = 13)]
    Fleet(Deferred<FleetArgs>),
    /// Show response times, load and disks in a browser, and which of them a change came from
    #[command(display_order = 12)]
    Serve(Deferred<ServeArgs>),
    /// Check the configuration of services
    #[command(display_order = 14)]
    Config(ConfigArgs),
    /// Run a verb as a service, with the options of its file in /etc/disksmith
    #[command(display_order = 14)]
    Service(ServiceArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: disksmith completions bash > \
                            /etc/bash_completion.d/disksmith")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    #[command(after_help = "Example: disksmith man /usr/local/share/man/man1")]
    Man {
        /// The folder
        folder: PathBuf,
        /// Replace files that are not man pages of disksmith
        #[arg(long)]
        force: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_an_example() {
        let mut program = Cli::command();
        program.build();
        let verbs = program.get_subcommands();
        for verb in verbs.filter(|verb| verb.get_name() != "help") {
            let help = verb.get_after_help().map(ToString::to_string);
            let example = format!("disksmith {}", verb.get_name());
            assert!(
                help.is_some_and(|help| help.contains(&example)),
                "{example}"
            );
        }
    }
}
