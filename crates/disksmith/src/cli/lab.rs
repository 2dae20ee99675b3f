//! The arguments of `lab`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lab::spec::VolumeGroup;

use super::{Size, Span};

/// What `lab` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab run --volumes 8xgp3:16GiB --volumes cold:8GiB -- disksmith devices
  disksmith lab serve --volumes 2xgp3,iops=6000:16GiB --socket-dir /run/volumes")]
pub(crate) struct LabArgs {
    /// What to do
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// What `lab` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Boot a small machine with virtual volumes, and run a command in it
    Run(Box<LabRunArgs>),
    /// Serve virtual volumes to NBD clients of this host, until interrupted
    Serve(LabServeArgs),
}

/// The volumes, of both.
#[derive(Args, Debug)]
pub(crate) struct VolumesArgs {
    /// Volumes: [COUNTx]WHAT:SIZE, where WHAT is a profile (gp3, gp2, io2, nvme, cold), key=value
    /// pairs joined by commas, or both. May be given more than once
    #[arg(long = "volumes", value_name = "[COUNTx]WHAT:SIZE", required = true)]
    pub groups: Vec<VolumeGroup>,
    /// Multiply all caps by this, where emulation is too slow for them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// The most operations a second over all volumes, as an instance has it
    #[arg(long, value_name = "N")]
    pub instance_iops: Option<f64>,
    /// The most bytes a second over all volumes, as an instance has it
    #[arg(long, value_name = "SIZE")]
    pub instance_throughput: Option<Size>,
    /// When it ends, well or not, write what each volume did and still holds to this file, as JSON.
    /// A file that is there is replaced
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Where the volumes' random numbers begin, so that they behave the same again
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// What `lab run` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab run --volumes 8xgp3:16GiB -- disksmith bench /dev/vda
  disksmith lab run --volumes 8xiops=400:1GiB --scale 0.5 -- sh -c 'mdadm --version; lsblk'")]
pub(crate) struct LabRunArgs {
    #[command(flatten)]
    pub volumes: VolumesArgs,
    /// The machine's memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub memory: Size,
    /// The machine's processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Cut the machine off after this long
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Span>,
    /// Where the kernel and the tools are kept [default: disksmith/lab in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// The binary that is disksmith in the machine [default: this one]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Also copy the machine's whole ledger to this file, which must not exist. Its runs are added
    /// to this host's ledger in any case
    #[arg(long, value_name = "FILE")]
    pub ledger_out: Option<PathBuf>,
    /// Keep the machine's own disk, with its ledger, in this file: it outlives the machine. The
    /// file is made when it is absent, and one that an earlier machine left is used again; any
    /// other file is refused
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// What the machine runs on
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
    /// What is run in the machine. Its exit status is this command's
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What the machine runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccelChoice {
    /// KVM where a kernel really starts on it, emulation otherwise
    Auto,
    /// KVM
    Kvm,
    /// Emulation
    Emulation,
}

/// What `lab serve` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab serve --volumes 2xgp3:16GiB --socket-dir /run/volumes
  disksmith lab serve --volumes cold:8GiB --listen 127.0.0.1:10809")]
pub(crate) struct LabServeArgs {
    #[command(flatten)]
    pub volumes: VolumesArgs,
    /// A folder in which the server makes its own, with a unix socket for each volume
    #[arg(long, value_name = "DIR", required_unless_present = "listen")]
    pub socket_dir: Option<PathBuf>,
    /// A loopback address that offers all volumes by their serial numbers
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
}
