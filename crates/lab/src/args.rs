//! The arguments of `lab`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::cut_times::CutTimes;
use crate::spec::{Profile, VolumeGroup};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use domain::values::{Size, Span, Throughput};

/// Arguments of `lab`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab tour
  disksmith lab run --volumes 8xgp3:16GiB --volumes cold:8GiB -- disksmith devices
  disksmith lab serve --volumes 2xgp3,iops=6000:16GiB --socket-dir /run/volumes")]
pub struct LabArgs {
    /// Action
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// Actions of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Boot a small machine with virtual volumes, and run a command in it
    Run(Box<LabRunArgs>),
    /// Serve virtual volumes to NBD clients of this host, until interrupted
    Serve(LabServeArgs),
    /// Show in five minutes what disksmith does, on virtual volumes: a cold one, an array, a slow member, a spoilt
    /// block
    Tour(LabTourArgs),
}

/// The volumes, of both.
#[derive(Args, Debug)]
pub struct VolumesArgs {
    /// The volumes, in groups of the same kind
    #[arg(
        long = "volumes",
        value_name = "[COUNTx]WHAT:SIZE",
        required = true,
        help = format!(
            "Volumes: [COUNTx]WHAT:SIZE, where WHAT is a profile ({}), key=value pairs joined by \
             commas, or both. May be given more than once",
            Profile::names()
        )
    )]
    pub groups: Vec<VolumeGroup>,
    /// Multiply all caps by this factor, where emulation is too slow for them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Limit of operations a second over all volumes, as of an instance
    #[arg(long, value_name = "N")]
    pub instance_iops: Option<f64>,
    /// Limit of bytes a second over all volumes, as of an instance
    #[arg(long, value_name = "SIZE/s")]
    pub instance_throughput: Option<Throughput>,
    /// The most operations a second over all volumes while the instance's credits last, as of a small instance
    #[arg(long, value_name = "N", requires = "instance_iops")]
    pub instance_most_iops: Option<f64>,
    /// The most bytes a second over all volumes while the instance's credits last
    #[arg(long, value_name = "SIZE/s", requires = "instance_throughput")]
    pub instance_most_throughput: Option<Throughput>,
    /// Time for which the instance's credits pay for the most at the start, and the most that they are
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    pub instance_burst: Span,
    /// At the end, also after an error, write what each volume did and still holds to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// With --truth: replace a file that was not written by a lab
    #[arg(long, requires = "truth")]
    pub force: bool,
    /// Write every request that reaches a volume to this new file, a line each: seconds, serial number, operation,
    /// offset, length, and 'fua'
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// Seed of the volumes' random numbers, which repeats their behaviour
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// Arguments of `lab run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab run --volumes 8xgp3:16GiB -- disksmith bench /dev/vda
  disksmith lab run --volumes 8xiops=400:1GiB --scale 0.5 -- sh -c 'mdadm --version; lsblk'
  disksmith lab run --volumes nvme,volatile=1:1GiB --cut-after 3x5s..30s -- sh -c 'echo boot \
      $DISKSMITH_LAB_BOOT; sleep 60'")]
pub struct LabRunArgs {
    /// The volumes.
    #[command(flatten)]
    pub volumes: VolumesArgs,
    /// The machine's memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub memory: Size,
    /// The machine's processors
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// End the machine when it takes longer than this from its start to the end of the command,
    /// each time that it is started
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Span>,
    /// Cache folder of the kernel and the tools [default: disksmith/lab in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// The binary that is disksmith in the machine [default: this one]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Also copy the machine's whole ledger to this file, which must not exist. Its runs are added
    /// to this host's ledger in any case
    #[arg(long, value_name = "FILE")]
    pub ledger_out: Option<PathBuf>,
    /// Keep the machine's own disk, with its ledger, in this file after the machine has ended. The
    /// file is created if it does not exist, and one of an earlier machine is used again; any
    /// other file is refused
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Cut the power that long after the command began, start the machine again with the same
    /// volumes and the same disk of its own, and run the command again; once for each duration, or
    /// COUNT times. Of two durations, --seed chooses a time between them. After the
    /// last cut the command runs to its end. DISKSMITH_LAB_BOOT is 1, 2, … in the command's
    /// environment. Without --state the machine's own disk is a temporary one
    #[arg(
        long,
        value_name = "[COUNTx]DURATION[..DURATION]",
        value_delimiter = ','
    )]
    pub cut_after: Vec<CutTimes>,
    /// Run this shell script in the machine first, while the volumes are held: nothing fails or
    /// stalls, and cold blocks cost nothing and stay cold, also where it writes. So what it leaves
    /// on a cold volume is there as if restored from a snapshot. Times count from its end; after a
    /// power cut it does not run again
    #[arg(long, value_name = "SCRIPT")]
    pub prepare: Option<OsString>,
    /// Copy a file of this host into the machine: a program becomes a command there, with the libraries that it has
    /// here; any other file lies in the folder in which the command starts. May be given more than once
    #[arg(long, value_name = "FILE")]
    pub copy: Vec<PathBuf>,
    /// Accelerator of the machine
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
    /// Command to run in the machine. Its exit status is this command's
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Accelerator of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccelChoice {
    /// KVM if a kernel really starts on it, else emulation
    Auto,
    /// KVM
    Kvm,
    /// Emulation
    Emulation,
}

/// Arguments of `lab serve`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("where").required(true).multiple(true))]
#[command(after_help = "Examples:
  disksmith lab serve --volumes 2xgp3:16GiB --socket-dir /run/volumes
  disksmith lab serve --volumes cold:8GiB --listen 127.0.0.1:10809")]
pub struct LabServeArgs {
    /// The volumes.
    #[command(flatten)]
    pub volumes: VolumesArgs,
    /// A folder in which the server makes its own, with a unix socket for each volume
    #[arg(long, value_name = "DIR", group = "where")]
    pub socket_dir: Option<PathBuf>,
    /// A loopback address that offers all volumes by their serial numbers
    #[arg(long, value_name = "ADDRESS:PORT", group = "where")]
    pub listen: Option<SocketAddr>,
}

/// Arguments of `lab tour`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith lab tour
  disksmith lab tour --recorded --speed 4")]
pub struct LabTourArgs {
    /// Play a recording of the tour, and start nothing. So it does where QEMU is not installed
    #[arg(long)]
    pub recorded: bool,
    /// Speed of a recording on a terminal. Elsewhere it is written at once
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Cache folder of the kernel and the tools [default: disksmith/lab in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Accelerator of the machine
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (0.01..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("give a factor from 0.01 to 1000, such as 2".to_owned()),
    }
}
