//! Arguments only: one file a command. Nothing here has an effect.

mod fleet;
mod lab;
mod mark;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use array::args::ArrayArgs;
use bench::args::BenchArgs;
use bench::imported::args::ImportArgs;
use bench::runs::args::{CompareArgs, ReportArgs, RunsArgs, ShowArgs};
pub(crate) use fleet::{
    FleetArgs, FleetShowArgs, FleetVerb, FleetZeroArgs, HostsArgs, LookArgs, Per, PlanArgs,
    RaceArgs, ReachArgs, RoundsArgs, RunArgs, SourceArgs, Ties, TopArgs,
};
pub(crate) use lab::{
    AccelChoice, CutTimes, LabArgs, LabRunArgs, LabServeArgs, LabVerb, VolumesArgs,
};
pub(crate) use mark::MarkArgs;
use scrub::args::ScrubArgs;
use sweep::args::SweepArgs;
use warm::args::WarmArgs;
use watch::args::WatchArgs;
use zero::args::ZeroArgs;

/// Database-grade I/O from cloud disks: every figure with an interval and a verdict.
#[derive(Debug, Parser)]
#[command(
    name = "disksmith",
    version,
    max_term_width = 100,
    after_help = "Example: disksmith bench /var/lib/mysql"
)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
    /// Where runs are kept
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// Where runs are kept.
#[derive(Args, Debug)]
pub(crate) struct LedgerArgs {
    /// The ledger: the file that remembers runs [default: in the user's state folder,
    /// root's in /var/lib/disksmith]
    #[arg(
        long = "ledger",
        value_name = "FILE",
        env = "DISKSMITH_LEDGER",
        hide_env_values = true,
        value_parser = clap::builder::OsStringValueParser::new(),
        display_order = 900,
        global = true
    )]
    path: Option<OsString>,
}

impl LedgerArgs {
    /// The file that was named. An empty name is none, as is the custom with the environment.
    pub(crate) fn named(&self) -> Option<PathBuf> {
        let named = self.path.clone().filter(|path| !path.is_empty());
        named.map(PathBuf::from)
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Measure a directory, a file or a block device, and say what the figures are worth
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
    /// Find the layout of disks that is best: level, members, chunk, file system, scheduler
    Sweep(Box<SweepArgs>),
    /// Read every block of a restored volume once, so that no later read waits for the snapshot
    Warm(Box<WarmArgs>),
    /// Check an array's copies and parity against each other, without hurting who uses it
    Scrub(Box<ScrubArgs>),
    /// Write zeros over whole disks, and say which of them is slow or bad
    Zero(ZeroArgs),
    /// Many hosts at once: what they do, any verb on all of them, and how many to start
    Fleet(Box<FleetArgs>),
    /// Serve 'fleet' on a host, which starts this there
    #[command(hide = true, after_help = "Example: disksmith agent")]
    Agent,
    /// Measure round by round what 'fleet race' asks for, which starts this on a host
    #[command(
        hide = true,
        after_help = "Example: disksmith rounds /mnt/data --figure page-read.iops"
    )]
    Rounds(Box<RoundsArgs>),
    /// Look at what a verb would overwrite here, for the plan of 'fleet run'
    #[command(
        hide = true,
        after_help = "Example: disksmith look -- bench /dev/sdf --destroy /dev/sdf"
    )]
    Look(LookArgs),
    /// See what the disks are doing, and what that means
    Watch(Box<WatchArgs>),
    /// Give a moment a name, which all graphs over time show
    Mark(MarkArgs),
    /// Rehearse on virtual volumes with known truth
    Lab(LabArgs),
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
        /// Replace files that are no man pages of disksmith
        #[arg(long)]
        force: bool,
    },
}

/// What `devices` takes.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith devices")]
pub(crate) struct DevicesArgs {
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also list loop and RAM devices that are not in use
    #[arg(long)]
    pub all: bool,
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
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string);
            let example = format!("disksmith {}", verb.get_name());
            assert!(
                help.is_some_and(|help| help.contains(&example)),
                "{example}"
            );
        }
    }
}
