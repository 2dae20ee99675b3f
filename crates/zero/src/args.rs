//! The arguments of `zero`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use domain::plan_binding::PlannedDisk;
use domain::values::Throughput;
use reader::{KeepArgs, ReportArgs};

/// Arguments of `zero`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith zero /dev/sdf /dev/sdg --destroy /dev/sdf --destroy /dev/sdg=ext4
  disksmith zero /dev/nvme1n1 --destroy /dev/nvme1n1 --limit 200MiB/s
  disksmith zero /dev/nvme1n1 --destroy /dev/nvme1n1 --discard --json

One that was stopped or killed goes on where it was when the same command is run again.")]
pub struct ZeroArgs {
    /// The disks. Each must also be named by a --destroy
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<PathBuf>,
    /// Allow this disk to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// Discard the blocks of the disks in place of writing zeros: quick, but the storage behind them
    /// is then not allocated
    #[arg(long, conflicts_with = "write_zeroes")]
    pub discard: bool,
    /// Tell the disks to write the zeros themselves, in place of sending them
    #[arg(long)]
    pub write_zeroes: bool,
    /// Forget how far these disks were zeroed before, and begin anew. It is needed where a disk that
    /// was begun under a name is not the one that has this name now
    #[arg(long)]
    pub anew: bool,
    /// Zero no more than this in a second on each disk
    #[arg(long, value_name = "SIZE/s")]
    pub limit: Option<Throughput>,
    /// Targets of other programs' latency
    #[command(flatten)]
    pub keep: KeepArgs,
    /// The page of the foreground
    #[command(flatten)]
    pub page: ReportArgs,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Check everything and say what would be done, and touch nothing
    #[arg(long, conflicts_with = "report")]
    pub dry_run: bool,
    /// A disk of a plan: another one under its name is refused. 'fleet' says it
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
}
