//! The arguments of the verbs that read the ledger.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::views::formatted::AnswerFormat;
use domain::values::Percent;

/// Arguments of `runs`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: disksmith runs --target /var/lib/mysql"
)]
pub struct RunsArgs {
    /// Action instead of listing
    #[command(subcommand)]
    pub verb: Option<RunsVerb>,
    /// Only runs of this host
    #[arg(long)]
    pub host: Option<String>,
    /// Only runs of this path or device
    #[arg(long)]
    pub target: Option<String>,
    /// Only runs of this suite
    #[arg(long)]
    pub suite: Option<String>,
    /// The newest of them, at most
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub limit: u32,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Actions of `runs` besides listing.
#[derive(Debug, Subcommand)]
pub enum RunsVerb {
    /// Remove runs from the ledger
    #[command(after_help = "Example: disksmith runs remove 20261121-204512-k7q2")]
    Remove {
        /// Their ids, or unique parts of them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// List what watch --record has kept, or remove some of it
    #[command(
        after_help = "Examples:\n  disksmith runs recordings\n  disksmith runs recordings --remove 3"
    )]
    Recordings {
        /// Remove a recording, by its number
        #[arg(long, value_name = "NUMBER")]
        remove: Option<i64>,
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `show`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  disksmith show last\n  disksmith show last --format fio-json")]
pub struct ShowArgs {
    /// The run: its id, a unique beginning or end of it, `last` (the one that was added last) or `last~1`
    pub run: String,
    /// Answer with one JSON document, as `bench --json` does
    #[arg(long)]
    pub json: bool,
    /// Answer in CSV, or in another tool's format for its readers
    #[arg(long, value_parser = AnswerFormat::parser(), conflicts_with = "json")]
    pub format: Option<AnswerFormat>,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: disksmith compare last~1 last --fail-if-slower 5%\n\n\
                  Ratios are B over A, each with its 95 % interval from the windows. An imported run has none,\nso its difference is not judged.\n\n\
                  --fail-if-slower 5% passes (status 0) only when all that A measured was compared: B has each \
                  phase, with\nthe same work, neither run is invalid, and no interval leaves room for a slowdown \
                  of more than the\nbar twice over. Phases that only B has do not count. Else the \
                  status is 1."
)]
pub struct CompareArgs {
    /// The run to compare with
    pub a: String,
    /// The run that is compared
    pub b: String,
    /// Exit with status 1 when B is slower than A by more than this, such as 5%, beyond doubt, and
    /// when that cannot be decided
    #[arg(long, value_name = "PERCENT")]
    pub fail_if_slower: Option<Percent>,
    /// Exit with status 0 when nothing is slower beyond doubt and something cannot be decided
    #[arg(long, requires = "fail_if_slower")]
    pub allow_inconclusive: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith report last~1 last -o before-and-after.html")]
pub struct ReportArgs {
    /// The runs, which are laid over each other
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// The page to write
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,
    /// Replace a file that is not a report of disksmith
    #[arg(long)]
    pub force: bool,
}
