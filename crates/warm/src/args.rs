//! The arguments of `warm`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use domain::ready_by::ReadyBy;
use domain::values::{Size, Throughput};
use reader::{KeepArgs, ReportArgs};

/// Arguments of `warm`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith warm /dev/nvme1n1
  disksmith warm /dev/nvme1n1 --first /var/lib/mysql/ibdata1 --first '/var/lib/mysql/app/*.ibd'
  disksmith warm /dev/nvme1n1 --first /data --until-hot
  disksmith warm /dev/nvme1n1 --keep-p99 5ms --limit 100MiB/s
  disksmith warm vol-0123456789abcdef0 --snapshot snap-0123456789abcdef0
  disksmith warm --check /dev/nvme1n1 --ready-by 18:00
  disksmith warm --plan 200GiB --rate 50MB/s --ready-by 18:00

Exit status: 0 done; 1 done, and places could not be read, --check found cold blocks, or
--until-hot met files on volumes that are not named; 2 refused;
3 ended before all was warm: the message has the command to go on.")]
pub struct WarmArgs {
    /// The volumes: block devices, each read once from its own start to its end
    #[arg(required_unless_present = "plan", value_name = "DEVICE")]
    pub devices: Vec<PathBuf>,

    /// Warm the data of this file, or of all files in this folder, before anything else. The last
    /// parts of the path may hold *, ? and […]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "plan"])]
    pub first: Vec<OsString>,
    /// Leave out the space that no file uses
    #[arg(long, conflicts_with_all = ["check", "plan"])]
    pub only_used: bool,
    /// End as soon as what --first names is warm
    #[arg(long, requires = "first")]
    pub until_hot: bool,
    /// Warm only the blocks that this snapshot holds, which `aws ebs list-snapshot-blocks` lists. With one
    /// DEVICE, which was restored from it
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["check", "plan", "blocks"], value_parser = snapshot)]
    pub snapshot: Option<String>,
    /// The same by a file: the JSON that `aws ebs list-snapshot-blocks` prints, also several pages of it one after
    /// the other
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "plan"])]
    pub blocks: Option<PathBuf>,

    /// Targets of other programs' latency
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Read no more than this in a second from all devices together
    #[arg(long, value_name = "SIZE/s", conflicts_with = "plan")]
    pub limit: Option<Throughput>,
    /// Size of what the volume fetches at once, and of a request
    #[arg(long, value_name = "SIZE", default_value = "512KiB")]
    pub block: Size,
    /// Begin anew, also where by the ledger a part is warm already
    #[arg(long, conflicts_with_all = ["check", "plan"])]
    pub anew: bool,

    /// Only find out how much is cold: read a few hundred random places, each beside a warm one
    #[arg(long, conflicts_with_all = ["plan", "report"])]
    pub check: bool,
    /// Only compute how long it takes to warm a volume of this size, without one
    #[arg(
        long,
        value_name = "SIZE",
        requires = "rate",
        conflicts_with_all = ["devices", "report", "keep_p99", "keep_mean"]
    )]
    pub plan: Option<Size>,
    /// The rate at which cold blocks come, for --plan
    #[arg(long, value_name = "SIZE/s", requires = "plan")]
    pub rate: Option<Throughput>,
    /// Say when to begin so that all is warm at this time: 18:00, or 2026-11-22T18:00. With
    /// --check or --plan
    #[arg(long, value_name = "TIME")]
    pub ready_by: Option<ReadyBy>,

    /// The page of the foreground
    #[command(flatten)]
    pub page: ReportArgs,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Do not keep in the ledger what is warm
    #[arg(long)]
    pub no_ledger: bool,
}

/// Id of a snapshot.
fn snapshot(text: &str) -> Result<String, String> {
    match linux::aws::is_id(text, "snap") {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not the id of a snapshot, such as snap-0123456789abcdef0; a list of its blocks is given \
             with --blocks"
        )),
    }
}
