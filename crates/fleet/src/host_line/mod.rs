//! Command lines that a host runs: its verbs, and the parser that checks them here before any host is touched.

pub(crate) mod check;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

use crate::args::{FleetArgs, LookArgs, RoundsArgs};
use array::args::ArrayArgs;
use bench::ReplayArgs;
use bench::args::BenchArgs;
use bench::imported::args::ImportArgs;
use bench::runs::args::{CompareArgs, ReportArgs, RunsArgs, ShowArgs};
use cost::args::CostArgs;
use devices::args::DevicesArgs;
use doctor::args::{DoctorArgs, PlaybookArgs};
use lab::args::LabArgs;
use scrub::args::ScrubArgs;
use sweep::args::SweepArgs;
use tally::args::TallyArgs;
use trace::args::TraceArgs;
use ui::ledger_args::LedgerArgs;
use warm::args::WarmArgs;
use watch::args::WatchArgs;
use watch::mark::MarkArgs;
use zero::args::ZeroArgs;

/// Verbs that work on one host.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Measure a directory, a file or a block device, and judge the figures
    Bench(Box<BenchArgs>),
    /// List the disks, what is stacked on them, and whether they may be written
    Devices(DevicesArgs),
    /// List the runs in the ledger, or remove one
    Runs(RunsArgs),
    /// Show a run again
    Show(ShowArgs),
    /// Compare two runs, phase by phase
    Compare(CompareArgs),
    /// Draw one or more runs as an HTML page that opens offline
    Report(ReportArgs),
    /// Keep what fio, sysbench or Bonnie++ measured, to compare with it
    Import(ImportArgs),
    /// Build, list and take down arrays of disks (Linux software RAID)
    Array(ArrayArgs),
    /// Find the best layout of disks: level, members, chunk, file system, scheduler
    Sweep(Box<SweepArgs>),
    /// Read every block of a restored volume once, so that no later read waits for the snapshot
    Warm(Box<WarmArgs>),
    /// Check an array's copies and parity without slowing down the foreground
    Scrub(Box<ScrubArgs>),
    /// Write zeros over whole disks, and report slow and bad ones
    Zero(ZeroArgs),
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
        hide = true,
        after_help = "Example: disksmith look -- bench /dev/sdf --destroy /dev/sdf"
    )]
    Look(LookArgs),
    /// Show what the disks do and what is wrong with them
    Watch(Box<WatchArgs>),
    /// Mark a moment with a name, which all graphs over time show
    Mark(MarkArgs),
    /// Record the block I/O of a workload, look at it, and convert it
    Trace(TraceArgs),
    /// Issue the I/O of a trace again, on other disks, and compare
    Replay(Box<ReplayArgs>),
    /// Price the volumes that carry a measured workload, cheapest first
    Cost(Box<CostArgs>),
    /// Sum events exactly once into roll-ups by minute, hour, day and month, and show them
    Tally(Box<TallyArgs>),
    /// Check the host and its database against what the disks were measured to do
    Doctor(Box<DoctorArgs>),
    /// Print what to do about a finding of 'doctor'
    Playbook(PlaybookArgs),
    /// Rehearse on virtual volumes with known truth
    Lab(LabArgs),
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

/// All verbs, also those that are refused on a host.
#[derive(Debug, Subcommand)]
pub(crate) enum LineVerb {
    #[command(flatten)]
    Host(HostVerb),
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
