//! The arguments of `replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::args::{BenchArgs, EngineChoice, SharedOptions};
use domain::plan_binding::PlannedDisk;
use domain::values::Size;
use replay::ReplayOptions;

/// Arguments of `replay`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith replay mysql.trace /dev/nvme1n1 --destroy /dev/nvme1n1
  disksmith replay mysql.trace /dev/nvme1n1 --reads-only
  disksmith replay mysql.trace /data --map compact --pace dependencies
  disksmith replay both.trace /dev/sdb /dev/sdc --destroy /dev/sdb --destroy /dev/sdc
  disksmith replay mysql.load.gz /dev/nvme1n1 --reads-only --speed 4x --report replay.html
  disksmith replay mysql.trace /dev/nvme1n1 --reads-only --pace asap --depth 32")]
pub struct ReplayArgs {
    /// The trace: of 'trace record', or in a format that 'trace show' reads
    #[arg(id = "replay", value_name = "FILE")]
    pub file: PathBuf,
    /// Directories, files or block devices: one for each device of the trace, in the order in which the trace
    /// names them. In a directory a test file is laid out and removed again; a file or a device is only read,
    /// unless --destroy names it
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
    /// Pace, speed and map of a replay
    #[command(flatten)]
    pub options: ReplayOptions,
    /// I/Os in flight: with --pace asap always, else at most [default: 4096, with asap 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub depth: Option<u32>,
    /// Size of the test file in a directory [default: what the trace reaches; with --map compact what it touches]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Allow this file or device to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. 'fleet' says it
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
    /// I/O engine [default: io_uring, or threads where it is refused]
    #[arg(long, value_enum)]
    pub engine: Option<EngineChoice>,
    /// Seed of the random data, by which a run can be repeated
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also write a page with plots, which opens offline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a report of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
    /// Do not keep the run in the ledger
    #[arg(long)]
    pub no_ledger: bool,
}

impl ReplayArgs {
    /// Arguments of `bench` that make the same run.
    pub fn bench_args(&self) -> BenchArgs {
        let mut targets = self.targets.iter().cloned();
        BenchArgs {
            target: targets.next(),
            more_targets: targets.collect(),
            replay: Some(self.file.clone()),
            replay_options: self.options.clone(),
            depth: self.depth,
            shared: SharedOptions::of_size(self.size),
            destroy: self.destroy.clone(),
            planned: self.planned.clone(),
            engine: self.engine,
            seed: self.seed,
            json: self.json,
            report: self.report.clone(),
            force: self.force,
            no_ledger: self.no_ledger,
            ..BenchArgs::default()
        }
    }
}
