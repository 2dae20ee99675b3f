//! The arguments of `watch`.

use clap::Args;

use super::{Every, Latency};

/// What `watch` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith watch
  disksmith watch md0 --interval 100ms
  disksmith watch --json --count 60 > minute.jsonl

It ends with Ctrl-C. What was found is said when it begins, and again when it is over.")]
pub(crate) struct WatchArgs {
    /// Show only these devices and what they lie on, such as md0 or /dev/nvme1n1
    #[arg(value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Look so often: 100ms at the least
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub interval: Every,
    /// End after so many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print lines, also on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Print one JSON document a line
    #[arg(long, conflicts_with = "plain")]
    pub json: bool,
    /// Also show partitions, and devices that do nothing
    #[arg(long)]
    pub all: bool,
    /// Call a device stalled when nothing completes for so long
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub stall: Latency,
}
