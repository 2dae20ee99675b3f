//! The arguments of `scrub`.

use clap::Args;

use crate::calendar::{DueBy, Hours};
use domain::values::Span;
use reader::{KeepArgs, ReportArgs};

/// Arguments of `scrub`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith scrub /dev/md0
  disksmith scrub /dev/md0 --keep-p99 5ms
  disksmith scrub /dev/md0 --window 01:00-06:00
  disksmith scrub /dev/md0 --by sunday --deadline-wins
  disksmith scrub /dev/md0 --locate
  disksmith scrub /dev/md0 --repair
  disksmith scrub --install-timer --all --window 01:00-06:00
  disksmith scrub --read /dev/md1 /dev/nvme0n1
  disksmith scrub --status

Exit status: 0 done, and all copies agree; 1 done, and mismatches or places that cannot be
read were found, or with --all an array lacks a member; 2 refused; 3 ended before its end: the
same command goes on.")]
pub struct ScrubArgs {
    /// The arrays: /dev/md0, md0, or a name below /dev/md. Of several, no two may share a disk
    #[arg(
        required_unless_present_any = ["status", "guard", "all", "uninstall_timer"],
        value_name = "ARRAY"
    )]
    pub arrays: Vec<String>,
    /// All arrays that can be scrubbed; those that share a disk one after the other
    #[arg(long, conflicts_with_all = ["arrays", "status"])]
    pub all: bool,

    /// Targets of other programs' latency
    #[command(flatten)]
    pub keep: KeepArgs,

    /// Run only at these hours, such as 01:00-06:00: wait for them, and end with them. The same
    /// command goes on at the next ones
    #[arg(long, value_name = "FROM-TO", conflicts_with = "status")]
    pub window: Option<Hours>,
    /// End after this time. The same command goes on
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "status")]
    pub lasts: Option<Span>,
    /// Time by which it is to be done: sunday, 2026-11-29 (when that day begins), 18:00, 2026-11-29T18:00
    #[arg(long, value_name = "WHEN", conflicts_with = "status")]
    pub by: Option<DueBy>,
    /// Where latency and --by cannot both be kept, keep --by
    #[arg(long, requires = "by")]
    pub deadline_wins: bool,
    /// Begin anew, also where by the ledger a part is done already
    #[arg(long, conflicts_with = "status")]
    pub anew: bool,

    /// Leave out what was scrubbed to its end less than so long ago
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["status", "anew", "repair"])]
    pub every: Option<Span>,

    /// Locate mismatches that were counted: read the members again, and name the positions and the files
    /// there. After a scrub that found some it needs no new one
    #[arg(long, conflicts_with = "status")]
    pub locate: bool,
    /// Make the members agree. RAID 6, and three copies or more: where one member alone is wrong, its
    /// block is written anew from the others; where several are, nothing is written. RAID 4 and 5: md
    /// keeps the data, right or wrong, and computes the parity anew. Two copies: md writes the first
    /// that it can read over the other
    #[arg(long, conflicts_with = "status")]
    pub repair: bool,

    /// Read every member of the arrays from end to end instead, and list what cannot be read: what
    /// is left for RAID 0 and linear, which keep nothing to compare with. Single disks can be named
    /// too, and --locate names the files that lie where it cannot be read
    #[arg(long, conflicts_with_all = ["status", "repair", "all", "every", "install_timer"])]
    pub read: bool,

    /// Only show the state of the scrubs of this host's arrays, and what they found
    #[arg(long, conflicts_with_all = ["report", "keep_p99", "keep_mean"])]
    pub status: bool,
    /// The page of the foreground
    #[command(flatten)]
    pub page: ReportArgs,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,

    /// Write a timer of systemd that runs this command, and turn off the checks that the distribution
    /// has scheduled: monthly, or each night where it has --window, --for or --every
    #[arg(long, conflicts_with_all = ["status", "anew", "repair", "json", "report"])]
    pub install_timer: bool,
    /// Take that timer out, and turn on again what it replaced
    #[arg(long, conflicts_with_all = ["install_timer", "arrays", "all", "status", "anew", "repair",
        "json", "locate", "every", "report"])]
    pub uninstall_timer: bool,
    /// For the command of a timer: an end by --window, --for or a signal is not a failure (status 0, or 1 with
    /// mismatches), and --for holds for each night until --by
    #[arg(long, conflicts_with_all = ["status", "read", "repair", "anew", "install_timer",
        "uninstall_timer"])]
    pub scheduled: bool,
    /// Only show what would be done to install or take out the timer
    #[arg(long)]
    pub dry_run: bool,

    /// Internal: process that restores the tunables when the scrub is killed
    #[arg(long, hide = true)]
    pub guard: bool,
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::{Parser, Subcommand};

    use super::ScrubArgs;

    /// The program with this verb alone.
    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        verb: Verb,
        /// The ledger, a global option of the program.
        #[arg(long, global = true)]
        ledger: Option<std::path::PathBuf>,
    }

    #[derive(Subcommand)]
    enum Verb {
        Scrub(Box<ScrubArgs>),
    }

    /// The arguments of a command line, `disksmith scrub ...`.
    pub(crate) fn parsed(command: &str) -> ScrubArgs {
        let Program { verb, ledger: _ } = Program::try_parse_from(command.split(' '))
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let Verb::Scrub(args) = verb;
        *args
    }
}
