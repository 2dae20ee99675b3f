//! Command lines for hosts, and the parser that checks them on this machine before any host is touched.

pub(crate) mod check;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

use crate::args::{FleetArgs, InspectArgs, RoundsArgs};
pub(crate) use crate::host_verb::HostVerb;
use ui::ledger_args::LedgerArgs;

/// Verbs that `fleet` starts on a host.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Agent of 'fleet' on a host, which starts it there
    #[command(hide = true, after_help = "Example: disksmith agent")]
    Agent,
    /// Measure the rounds of a 'fleet race' on a host, which starts this there
    #[command(
        hide = true,
        after_help = "Example: disksmith rounds /mnt/data --figure page-read.iops"
    )]
    Rounds(Box<RoundsArgs>),
    /// Show what a verb would overwrite here, for the plan of 'fleet run'
    #[command(
        name = "look",
        hide = true,
        after_help = "Example: disksmith look -- bench /dev/sdf --destroy /dev/sdf"
    )]
    Inspect(InspectArgs),
}

/// A whole command line, as given to `fleet` for its hosts.
#[derive(Debug, Parser)]
#[command(name = "disksmith", version, max_term_width = 100)]
pub(crate) struct HostLine {
    #[command(subcommand)]
    pub(crate) verb: LineVerb,
    #[command(flatten)]
    ledger: LedgerArgs,
}

/// The verbs, including those that are refused on a host.
#[derive(Debug, Subcommand)]
pub(crate) enum LineVerb {
    #[command(flatten)]
    Host(HostVerb),
    #[command(flatten)]
    Agent(AgentVerb),
    /// Many hosts at once
    Fleet(Box<FleetArgs>),
    /// Print a completion script for a shell
    Completions(AnyArgs),
    /// Write the man pages into a folder
    Man(AnyArgs),
}

/// Arguments that are not examined.
#[derive(Args, Debug)]
pub(crate) struct AnyArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Parses the words of a command line, without the program's name.
///
/// # Errors
/// clap's message without its `error: `, as a sentence.
pub(crate) fn parse<W: Into<OsString>>(
    words: impl IntoIterator<Item = W>,
) -> Result<LineVerb, String> {
    let words = words.into_iter().map(Into::into);
    let line = std::iter::once(OsString::from("disksmith")).chain(words);
    HostLine::try_parse_from(line)
        .map(|line| line.verb)
        .map_err(|why| {
            let text = why.to_string();
            text.trim().trim_start_matches("error: ").to_owned()
        })
}
