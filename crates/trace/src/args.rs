//! The arguments of `trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::write::TraceFormat;
use domain::values::{Size, Span};

/// Arguments of `trace`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith trace record /dev/nvme1n1 -o mysql.dst --for 10m
  disksmith trace show mysql.dst
  disksmith trace convert mysql.dst mysql.log --to fio-iolog-v3")]
pub struct TraceArgs {
    /// The action
    #[command(subcommand)]
    pub action: TraceAction,
}

/// Actions of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Record the block I/O of devices
    Record(RecordArgs),
    /// Show a trace: rates, sizes, mix, queue depth, working set, skew, and latency by class, file and process
    Show(ShowArgs),
    /// Write a trace in another format
    Convert(ConvertArgs),
}

/// Arguments of `trace record`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith trace record /dev/nvme1n1 -o mysql.dst --for 10m
  disksmith trace record /dev/nvme1n1 -o mysql.dst --comm --dataset /var/lib/mysql
  disksmith trace record /dev/md0 /dev/sdb /dev/sdc -o array.dst --max-size 2GiB

Needs root. The trace must not lie on a recorded device.")]
pub struct RecordArgs {
    /// The devices: disks, arrays or volumes, and no partitions
    #[arg(required = true, value_name = "DEVICE")]
    pub devices: Vec<PathBuf>,
    /// The file of the trace
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after this time [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Span>,
    /// End when the file is this large
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<Size>,
    /// Record the names of processes
    #[arg(long)]
    pub comm: bool,
    /// Record the I/O of these processes alone; what the kernel writes for them later is not recorded
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Record the file of this folder that each I/O belongs to
    #[arg(long, value_name = "DIR")]
    pub dataset: Option<PathBuf>,
    /// Memory of the kernel for events, for each processor [default: 30 s of events at the rate of the devices before
    /// the recording, within bounds that the machine's memory sets]
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<Size>,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace show`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith trace show mysql.dst
  disksmith trace show sda.blktrace.0 --report sda.html
  disksmith trace show hm_0.csv.gz --json

Reads what 'trace record' writes, blktrace (of the files of all processors one is enough), blkparse, fio iolog v2
and v3, blkreplay, MSR Cambridge, SYSTOR '17, Alibaba and Tencent, plain or compressed by gzip or zstd.")]
pub struct ShowArgs {
    /// The trace
    pub file: PathBuf,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also write a page with rate, latency and queue depth over time, and a heat map of places
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a page of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
}

/// Arguments of `trace convert`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith trace convert linux-mysql.load.gz mysql.dst
  disksmith trace convert mysql.dst mysql.log --to fio-iolog-v3

What the format cannot hold is listed, with the number of I/Os that had it.")]
pub struct ConvertArgs {
    /// The trace
    pub from: PathBuf,
    /// The file to write
    pub to: PathBuf,
    /// The format to write
    #[arg(
        long = "to",
        value_name = "FORMAT",
        value_enum,
        default_value = "disksmith"
    )]
    pub format: FormatArg,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A format that traces are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// The format of 'trace record'
    Disksmith,
    /// blktrace's binary events, version 7
    Blktrace,
    /// The text of blkparse
    Blkparse,
    /// fio's log of I/O, version 2
    FioIologV2,
    /// fio's log of I/O, version 3
    FioIologV3,
}

impl FormatArg {
    pub(crate) fn format(self) -> TraceFormat {
        match self {
            FormatArg::Disksmith => TraceFormat::Own,
            FormatArg::Blktrace => TraceFormat::Blktrace,
            FormatArg::Blkparse => TraceFormat::Blkparse,
            FormatArg::FioIologV2 => TraceFormat::Iolog2,
            FormatArg::FioIologV3 => TraceFormat::Iolog3,
        }
    }
}
