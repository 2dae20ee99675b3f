//! The arguments of `sweep`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use array::parsers::{fs_parser, layout_parser, level_parser};
use domain::bought::BoughtVolumes;
use domain::filesystem::Fs;
use domain::plan_binding::PlannedDisk;
use domain::raid::{Level, Raid10Layout};
use domain::values::{Percent, Size, Span};
use replay::ReplayOptions;

/// Arguments of `sweep`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith sweep --devices /dev/sdf,/dev/sdg,/dev/sdh,/dev/sdi --destroy /dev/sdf \\
      --destroy /dev/sdg --destroy /dev/sdh --destroy /dev/sdi=ext4
  disksmith sweep --devices … --members 2,4,8 --level 0,10 --chunk 64k,256k --fs xfs,ext4 \\
      --objective page-mixed.iops --require 'page-write.p99<5ms' --survives 1
  disksmith sweep --devices … --price gp3.prices --objective 'page-mixed.iops/$'
  disksmith sweep --devices … --replay mysql.trace --map compact --require 'replay.commit.p99<5ms'
  disksmith sweep --show last --report sweep.html
  disksmith sweep --ec2 gp3:100GiB --ec2 gp3,iops=6000:100GiB --ec2 io2,iops=6000:100GiB --dry-run

A sweep that was killed goes on where it was when the same command is run again.",
    mut_arg("compressible", |arg| arg.requires("replay")))]
pub struct SweepArgs {
    /// The disks, with commas between. Each must also be named by a --destroy
    #[arg(
        long,
        value_name = "DEVICE,…",
        num_args = 1..,
        value_delimiter = ',',
        required_unless_present_any = ["show", "abandon", "ec2"],
        conflicts_with_all = ["show", "abandon", "ec2"]
    )]
    pub devices: Vec<PathBuf>,
    /// Allow this device to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. 'fleet' says it
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,

    /// Compare types of EBS volumes instead of layouts, such as gp3:100GiB and io2,iops=6000:100GiB; repeatable. Each
    /// is created in this instance's zone, attached, measured, detached and deleted, after its price was shown and
    /// confirmed
    #[arg(
        long,
        value_name = "TYPE:SIZE",
        conflicts_with_all = [
            "destroy", "members", "level", "layout", "chunk", "fs", "scheduler", "replay", "survives", "price", "full", "show",
            "abandon", "report",
        ]
    )]
    pub ec2: Vec<BoughtVolumes>,
    /// The instance of EC2 that this host is [default: what its firmware or metadata say]
    #[arg(long, value_name = "ID", value_parser = instance)]
    pub instance: Option<String>,
    /// With --ec2: timeout for a volume to be created, and to be seen as a disk
    #[arg(long, value_name = "TIME", default_value = "3m")]
    pub attach_timeout: Span,
    /// Confirm the volumes to create and their price; with --abandon, those to delete
    #[arg(long)]
    pub yes: bool,

    /// Numbers of members; 1 is a single disk [default: 1, 2, 4, 8, … and all]
    #[arg(long, value_name = "N,…", num_args = 1.., value_delimiter = ',')]
    pub members: Vec<usize>,
    /// The RAID levels
    #[arg(long, value_parser = level_parser(), num_args = 1.., value_delimiter = ',', default_values = ["0", "10"])]
    pub level: Vec<Level>,
    /// Layouts of the two copies of RAID 10: n2 near, f2 far, o2 offset
    #[arg(long, value_parser = layout_parser(), num_args = 1.., value_delimiter = ',', default_values = ["n2"])]
    pub layout: Vec<Raid10Layout>,
    /// Chunk size, which is stored on one member before the next one follows
    #[arg(
        long,
        value_name = "SIZE,…",
        num_args = 1..,
        value_delimiter = ',',
        default_values = ["64k", "256k"]
    )]
    pub chunk: Vec<Size>,
    /// The file systems
    #[arg(long, value_parser = fs_parser(), num_args = 1.., value_delimiter = ',', default_values = ["xfs"])]
    pub fs: Vec<Fs>,
    /// The I/O schedulers of the disks, such as none,mq-deadline [default: what they have]
    #[arg(long, value_name = "NAME,…", num_args = 1.., value_delimiter = ',')]
    pub scheduler: Vec<String>,

    /// The phases that --phase and --objective choose from
    #[arg(long, value_enum, default_value_t = SweepSuite::Database, conflicts_with = "workload")]
    pub suite: SweepSuite,
    /// Measure these phases too, beside those that --objective and --require name
    #[arg(
        long,
        value_name = "NAME",
        num_args = 1..,
        value_delimiter = ',',
        conflicts_with = "workload"
    )]
    pub phase: Vec<String>,
    /// One workload of your own in place of a suite; its figures are workload.iops and so on
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub workload: Option<String>,
    /// A trace to replay in place of a suite, on a test file of --size; its figures are replay.p99,
    /// replay.commit.p99 and so on
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["suite", "phase", "workload"])]
    pub replay: Option<PathBuf>,
    /// Pace, speed and map of a replay
    #[command(flatten)]
    pub replay_options: ReplayOptions,
    /// Figure by which the best layout is chosen: PHASE.METRIC, with the metrics iops,
    /// bytes, mean, p50, p90, p95, p99 and p99.9; or PHASE.iops/$ or cost, which need --price
    /// [default: page-mixed.iops, with --replay replay.p99]
    #[arg(long, visible_alias = "by", value_name = "FIGURE")]
    pub objective: Option<String>,
    /// Requirement that a layout must meet, such as 'page-write.p99<5ms'
    #[arg(long, value_name = "FIGURE<VALUE")]
    pub require: Vec<String>,
    /// Number of members that may fail, whichever they are, without loss of data
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub survives: usize,
    /// A file that says what volumes cost: lines such as 'gib-month 0.08'
    #[arg(long, value_name = "FILE")]
    pub price: Option<PathBuf>,

    /// Measure every layout in every block, rather than drop those that are worse beyond doubt
    #[arg(long)]
    pub full: bool,
    /// Maximum number of blocks, in each of which every layout is built and measured once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = block_count)]
    pub blocks: usize,
    /// Layouts within this of the best are as good as it
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    pub tie: Percent,

    /// A phase ends at the latest after this long
    #[arg(long, value_name = "DURATION", default_value = "8s")]
    pub seconds: Span,
    /// A phase ends when the 95 % interval of its IOPS is within this; 0 never ends it early
    #[arg(long, value_name = "PERCENT", default_value = "3%")]
    pub precision: Percent,
    /// Size of the test file, the same on every layout [default: 1 GiB, or half of what the
    /// smallest layout has room for]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Threads that issue I/O, in every phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Requests in flight a thread, in every phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub depth: Option<u32>,
    /// Seed of the random order, by which it can be repeated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Check everything and list the layouts, but build nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Show a sweep again: its id, or last; of --ec2 its whole id
    #[arg(long, value_name = "SWEEP", conflicts_with_all = ["abandon", "dry_run", "destroy"])]
    pub show: Option<String>,
    /// Take down what an unfinished sweep left, and do not go on with it: its id, or last. Of --ec2 its whole id, also
    /// where its ledger is lost: its volumes are found by their tag, and deleted
    #[arg(long, value_name = "SWEEP", conflicts_with_all = ["dry_run", "destroy"])]
    pub abandon: Option<String>,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also write a page with plots, which opens offline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a report of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
}

/// Id of an instance.
fn instance(text: &str) -> Result<String, String> {
    match linux::aws::is_id(text, "i") {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not the id of an instance, such as i-0123456789abcdef0"
        )),
    }
}

/// Maximum number of blocks of a sweep.
const MAX_BLOCKS: usize = 1000;

fn block_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=MAX_BLOCKS).contains(&count) => Ok(count),
        _ => Err(format!("write a number from 1 to {MAX_BLOCKS}")),
    }
}

/// The suites whose phases a sweep can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SweepSuite {
    /// The I/O of a database: pages, a log, scans and loads
    Database,
}
