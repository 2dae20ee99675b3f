//! The arguments of `fleet`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::floor::HostFloor;
use crate::hosts::{AddressKind, GroupBy, HostPattern, TieBreak, user};
use crate::sort_key::{Condition, SortKey};
use domain::bought::BoughtVolumes;
use domain::plan_binding::PlannedDisk;
use domain::values::{Percent, Size, Span};
use replay::ReplayOptions;
use sweep::{Figure, Requirement};

/// Arguments of `fleet`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet hosts --list burnin --exclude '^spare'
  disksmith fleet top --list burnin --sort latency
  disksmith fleet run --list burnin -- bench /mnt/data
  disksmith fleet exec --hosts 'db[1-30]' -- uptime
  disksmith fleet race --list burnin --keep 3 --per zone -- /mnt/data
  disksmith fleet plan --want 3 --per zone --from race.json")]
pub struct FleetArgs {
    /// Verb
    #[command(subcommand)]
    pub verb: FleetVerb,
}

/// The verbs of `fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// List the hosts that the other verbs would use, from a list, an inventory or EC2
    Hosts(HostsArgs),
    /// Show what all hosts do: network, disks, load, and the worst disk's latency
    Top(TopArgs),
    /// Run any verb on all hosts, and collect the answers
    Run(RunArgs),
    /// Run any program of the hosts on all of them, and collect what it prints
    Exec(ExecArgs),
    /// Show the answers of a 'fleet run', 'fleet exec', 'fleet zero' or 'fleet race' again
    Show(FleetShowArgs),
    /// Write zeros over disks of all hosts, after one plan of all of them is confirmed
    Zero(FleetZeroArgs),
    /// Compute from past results how many hosts to start so that enough of them are good, and what the
    /// race among them costs
    Plan(PlanArgs),
    /// Race hosts against each other round by round, and keep the best
    Race(Box<RaceArgs>),
}

/// Source of the hosts.
#[derive(Args, Debug)]
pub struct SourceArgs {
    /// A file with one host a line, or NAME for ~/.dsh/machines.NAME
    #[arg(long, value_name = "NAME|FILE", group = "source", required_unless_present_any = ["hosts", "inventory", "ec2"])]
    pub list: Option<PathBuf>,
    /// Hosts as node sets, as ClusterShell has them: db[1-30], r[1-2]n[01-16/2], db[1-9]!db5,web1, @group
    #[arg(long, value_name = "NODESET", group = "source")]
    pub hosts: Option<String>,
    /// An Ansible inventory, or the output of 'ansible-inventory --list' for one
    #[arg(long, value_name = "FILE", group = "source")]
    pub inventory: Option<PathBuf>,
    /// The running EC2 instances that match all filters, listed by 'aws'
    #[arg(long, value_name = "Name=…,Values=…", group = "source")]
    pub ec2: Vec<String>,
    /// Kind of address by which an EC2 instance is reached
    #[arg(long, value_enum, default_value_t, requires = "ec2")]
    pub address: AddressKind,
    /// Only hosts whose name, address or id this regular expression matches
    #[arg(long, value_name = "REGEX")]
    pub include: Vec<HostPattern>,
    /// Exclude hosts whose name, address or id this regular expression matches
    #[arg(long, value_name = "REGEX")]
    pub exclude: Vec<HostPattern>,
}

/// Connections to the hosts.
#[derive(Args, Debug)]
pub struct ReachArgs {
    /// User to log in as, unless the source of the hosts names one
    #[arg(long, value_name = "NAME", value_parser = user)]
    pub user: Option<String>,
    /// Become root on the hosts by sudo, which must not ask for a password
    #[arg(long)]
    pub sudo: bool,
    /// Number of hosts that are worked on at the same time; with 'top' and 'race', connected to
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// Timeout for connecting
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub connect: Span,
    /// A configuration for ssh instead of the user's own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// Send this binary of disksmith, for hosts with another processor; repeatable, the one that
    /// fits is sent [default: the running one]
    #[arg(long, value_name = "FILE")]
    pub binary: Vec<PathBuf>,
}

/// Arguments of `fleet run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet run --list burnin -- bench /mnt/data --seconds 30s
  disksmith fleet run --hosts 'db[1-30]' -- devices
  disksmith fleet run --list burnin --sudo --batch 8 -- warm /dev/nvme1n1
  disksmith fleet run --list burnin --sudo -- bench /dev/nvme1n1 --destroy /dev/nvme1n1
  disksmith fleet run --ec2 'Name=tag:role,Values=burnin' --user admin --json -- devices")]
pub struct RunArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Connections to the hosts
    #[command(flatten)]
    pub reach: ReachArgs,
    /// End the verb on a host where it takes longer [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Span>,
    /// Only on the hosts on which the last 'fleet run' of this verb did not complete
    #[arg(long)]
    pub retry_failed: bool,
    /// Confirm the plan of what a verb with --destroy overwrites
    #[arg(long)]
    pub yes: bool,
    /// Show that plan, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// The verb and its arguments, as they would be given on each host
    #[arg(last = true, required = true, value_name = "VERB")]
    pub verb: Vec<String>,
}

/// Arguments of `fleet exec`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet exec --hosts 'db[1-30]' -- uptime
  disksmith fleet exec --list burnin --sudo -- nvme list
  disksmith fleet exec --list burnin -- sh -c 'grep -c md0 /proc/mdstat'

Hosts that print the same are shown once. What the program changes is not checked, and is not undone.")]
pub struct ExecArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Connections to the hosts
    #[command(flatten)]
    pub reach: ReachArgs,
    /// End the program on a host where it takes longer [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Span>,
    /// Only on the hosts on which the last 'fleet exec' of this program did not complete
    #[arg(long)]
    pub retry_failed: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments. It is started without a shell, and has no input
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

/// Arguments of `fleet show`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet show
  disksmith fleet show 20260301-101500-bcdf --json")]
pub struct FleetShowArgs {
    /// The run's id, the beginning of one, or 'last'
    #[arg(value_name = "ID", default_value = "last")]
    pub run: String,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet zero`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet zero --list burnin --sudo --dry-run -- /dev/nvme1n1 --destroy /dev/nvme1n1
  disksmith fleet zero --list burnin --sudo -- /dev/sdf /dev/sdg --destroy /dev/sdf \\
      --destroy /dev/sdg=ext4

Where one host refuses, nothing is written on any. One that was stopped goes on where it was when the
same command is run again.")]
pub struct FleetZeroArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Connections to the hosts
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Confirm the plan
    #[arg(long)]
    pub yes: bool,
    /// Show the plan, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Arguments of 'disksmith zero' on each host: the disks, each also named by a --destroy
    #[arg(last = true, required = true, value_name = "DEVICE")]
    pub zero: Vec<String>,
}

/// Arguments of `fleet top`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet top --list burnin
  disksmith fleet top --list burnin --sort latency --only 'latency>=10ms'
  disksmith fleet top --list burnin --every 5s --for 1m --json")]
pub struct TopArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Connections to the hosts
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Interval between two samples
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub every: Span,
    /// End after this time [default: on Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub lasts: Option<Span>,
    /// Column that the hosts are sorted by, the largest value first
    #[arg(long, value_enum, default_value_t)]
    pub sort: SortKey,
    /// Show only hosts that meet this condition, such as 'latency>=10ms', 'iops<100' or 'load>8';
    /// repeatable, all must be met
    #[arg(long, value_name = "WHAT>=VALUE")]
    pub only: Vec<Condition>,
    /// Write one JSON document a line, one for each interval
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet hosts`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet hosts --list burnin
  disksmith fleet hosts --inventory hosts.yml --include '^db'
  disksmith fleet hosts --ec2 'Name=tag:role,Values=burnin' --address public --json

A line of a list is a host, what is known of it, and a comment:
  db1 az=us-east-1a type=i4i.large id=i-0123   # was slow last week")]
pub struct HostsArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet plan`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet plan --want 3 --per zone --from race.json
  disksmith fleet plan --want 3 --from hosts.txt --good 'page-write.iops>=10000' --price 0.172
  disksmith fleet plan --want 3 --per zone --from ledger.db --price 0.172 --volume 2xgp3:500GiB
  disksmith fleet plan --want 5 --per type --from ledger.db --good 'page-mixed.p99<5ms' --json

Past results are the answer of 'fleet race --json', a ledger, or a list with one host a line:
  db1 az=us-east-1a figure=11870 decision=keep")]
pub struct PlanArgs {
    /// Number of good hosts wanted, of each group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub want: u32,
    /// Property by which hosts are grouped [default: all hosts are one group]
    #[arg(long, value_enum)]
    pub per: Option<GroupBy>,
    /// The past results
    #[arg(long, value_name = "LEDGER|FILE")]
    pub from: PathBuf,
    /// Requirement for a good host, such as 'page-write.iops>=10000' [default: of a ledger those that its races kept or
    /// could not distinguish from these; else as good as the worst that was kept]
    #[arg(long, value_name = "FIGURE>=VALUE")]
    pub good: Option<Requirement>,
    /// Probability that there are enough good hosts, in all groups together
    #[arg(long, value_name = "SHARE", default_value = "95%")]
    pub chance: Percent,
    /// Length of a round of the race
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub round: Span,
    /// Price of a host for an hour, without its volumes
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub price: Option<f64>,
    /// Volumes of a host, such as 2xgp3,iops=6000:500GiB, at the prices of the table of 'cost'
    #[arg(long, value_name = "[COUNTx]TYPE:SIZE")]
    pub volume: Vec<BoughtVolumes>,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet race`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith fleet race --list burnin --keep 3 --per zone -- /mnt/data
  disksmith fleet race --list burnin --sudo --keep 3 --per zone \\
      --floor 'page-write.iops>=10000 for 60s' --floor 'disk.latency<1000ms' \\
      -- /dev/nvme1n1 /dev/nvme2n1 --destroy /dev/nvme1n1 --destroy /dev/nvme2n1
  disksmith fleet race --list burnin --keep 3 --per zone --dry-run
  disksmith fleet race --list burnin --keep 3 --collect rounds

Each target counts by itself: a host is as good as its worst disk. Floors hold for each of them.")]
pub struct RaceArgs {
    /// Source of the hosts
    #[command(flatten)]
    pub source: SourceArgs,
    /// Connections to the hosts
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Number of hosts to keep, of each group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub keep: u32,
    /// Property by which hosts are grouped [default: all hosts are one group]. Hosts of different sizes never compete
    #[arg(long, value_enum)]
    pub per: Option<GroupBy>,
    /// The figure that hosts are ranked by [default: the first rate of a floor, or page-read.iops; with --replay
    /// replay.p99]
    #[arg(long, value_name = "PHASE.METRIC")]
    pub by: Option<Figure>,
    /// Replay this trace on the targets in place of a suite, its first --round in each round. It must lie at this path
    /// on each host. Options follow the targets: --pace, --speed, --map, --device, --reads-only, --compressible
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Requirement that each disk of a host must meet throughout, such as 'page-write.iops>=10000 for 60s' or
    /// 'disk.latency<1000ms'; a host with a disk that does not is removed
    #[arg(long, value_name = "FIGURE>=VALUE[ for TIME]")]
    pub floor: Vec<HostFloor>,
    /// Length of a round
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = round)]
    pub round: Span,
    /// Maximum number of rounds
    #[arg(long, value_name = "N", default_value_t = 240,
        value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub rounds: u32,
    /// Timeout for hosts to be reached and to prepare; a host that is not ready by then is left out
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub ready: Span,
    /// Rule that breaks ties [default: they stay, and are reported]
    #[arg(long, value_enum)]
    pub ties: Option<TieBreak>,
    /// Terminate the instances that were measured to be bad through 'aws', after their list was shown
    /// and confirmed; never one that is tagged 'keep'
    #[arg(long, conflicts_with = "dry_run")]
    pub terminate: bool,
    /// Confirm the plan of what is overwritten, without the hosts that refuse, and the list of instances
    /// to terminate, from which doubtful ones are then left out
    #[arg(long)]
    pub yes: bool,
    /// Folder for keep.txt and cull.txt
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// Also write a page with the distribution by zone and type, which opens offline
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Replace existing files at the paths of keep.txt, cull.txt and the page that are not from a race
    #[arg(long)]
    pub force: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Show what would be raced, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Decide by rounds that another engine has measured, and reach no host: FOLDER/1/HOST.json and so on are
    /// answers of 'disksmith bench TARGET --json' on the host, one behind another where it has several targets
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = ["dry_run", "terminate", "replay", "targets"]
    )]
    pub collect: Option<PathBuf>,
    /// Targets on each host: a directory on each disk, or the disks, which are only read unless --destroy
    /// names them; also --size, --span, --threads, --depth, --block
    #[arg(
        last = true,
        required_unless_present_any = ["dry_run", "collect"],
        value_name = "TARGET"
    )]
    pub targets: Vec<String>,
}

/// Parses the length of a round.
fn round(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span.0 < record::Nanos(500_000_000) {
        return Err("a round of less than 500ms is too short".to_owned());
    }
    Ok(span)
}

/// Arguments of `rounds`: the targets on a host of a race.
#[derive(Args, Debug)]
#[command(mut_arg("compressible", |arg| arg.requires("replay")))]
pub struct RoundsArgs {
    /// A target: a directory on each disk, where a test file is laid out and removed again, or the disks
    /// themselves, which are only read unless --destroy names them
    #[arg(required = true, value_name = "TARGET")]
    pub target: Vec<PathBuf>,
    /// A figure that is wanted of each round, in which its phase is measured
    #[arg(long, value_name = "PHASE.METRIC", required = true, hide = true)]
    pub figure: Vec<Figure>,
    /// Allow this device or file to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. Set by 'fleet'
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
    /// Size of the test file in a directory [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Use only this much of each target, from its start
    #[arg(long, value_name = "SIZE")]
    pub span: Option<Size>,
    /// Threads that issue I/O
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Requests in flight a thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub depth: Option<u32>,
    /// Size of a request
    #[arg(long, value_name = "SIZE")]
    pub block: Option<Size>,
    /// Replay this trace of the host in place of phases
    #[arg(long, value_name = "FILE", conflicts_with_all = ["span", "threads", "block"])]
    pub replay: Option<PathBuf>,
    /// Pace, speed and map of a replay
    #[command(flatten)]
    pub replay_options: ReplayOptions,
}

/// Arguments of `look`: the verb whose disks are reported, with its arguments.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// The verb, as it would be given
    #[arg(last = true, required = true, value_name = "VERB")]
    pub verb: Vec<String>,
}

fn price(text: &str) -> Result<f64, String> {
    let price: Option<f64> = text.parse().ok();
    price
        .filter(|price| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| format!("'{text}' is not a price; write a number, such as 0.172"))
}
