//! The arguments of `array`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use domain::filesystem::Fs;
use domain::plan_binding::Planned;
use domain::raid::{Layout, Level, level_parser};
use domain::values::Size;

/// Arguments of `array`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith array create --level 10 --members /dev/sdf,/dev/sdg --destroy /dev/sdf \\
      --destroy /dev/sdg=ext4 --fs xfs --mount /data
  disksmith array list
  disksmith array stop data")]
pub struct ArrayArgs {
    /// Action
    #[command(subcommand)]
    pub verb: ArrayVerb,
}

/// Actions on arrays.
#[derive(Debug, Subcommand)]
pub enum ArrayVerb {
    /// Build an array, and a file system on it that is aligned to it
    Create(Box<CreateArgs>),
    /// List the arrays and their members
    List(ListArgs),
    /// Take down an array that is not in use
    Stop(StopArgs),
}

/// Arguments of `array create`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith array create --level 0 --members /dev/sdf,/dev/sdg --destroy /dev/sdf \\
      --destroy /dev/sdg
  disksmith array create --level 10 --chunk 256k --members /dev/sdf,/dev/sdg,/dev/sdh,/dev/sdi \\
      --destroy /dev/sdf --destroy /dev/sdg --destroy /dev/sdh --destroy /dev/sdi=ext4 \\
      --name data --fs xfs --mount /data --persist")]
pub struct CreateArgs {
    /// The RAID level
    #[arg(long, value_parser = level_parser())]
    pub level: Level,
    /// The disks, separated by commas. Each must also be named by a --destroy
    #[arg(long, value_name = "DEVICE,…", required = true, num_args = 1.., value_delimiter = ',')]
    pub members: Vec<PathBuf>,
    /// Allow this member to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. Set by 'fleet'
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<Planned>,
    /// Chunk size, which is stored on one member before the next one follows: a power of two
    /// [default: 256k at levels that have chunks]
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<Size>,
    /// Layout of the two copies of RAID 10: n2 near, f2 far, which reads sequentially like
    /// RAID 0 and costs longer seeks for writes on rotating disks [default: n2]
    #[arg(long, value_enum)]
    pub layout: Option<Layout>,
    /// The array's name, as in /dev/md/NAME [default: the first free of md0, md1, …]
    #[arg(long)]
    pub name: Option<String>,
    /// Make a file system, aligned to chunk and stripe
    #[arg(long, value_enum)]
    pub fs: Option<Fs>,
    /// Mount the file system here. The folder is made when it is missing
    #[arg(long, value_name = "FOLDER", requires = "fs")]
    pub mount: Option<PathBuf>,
    /// Skip the initial sync of copies or parity: only right if all members hold zeros
    #[arg(long)]
    pub assume_clean: bool,
    /// Write the lines for mdadm.conf and fstab, so that array and file system return after a boot
    #[arg(long)]
    pub persist: bool,
    /// Check everything and show the commands, but run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document; the commands are shown on standard error
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `array list`.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith array list --json")]
pub struct ListArgs {
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `array stop`.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith array stop data")]
pub struct StopArgs {
    /// The array's name or node: data, md127, /dev/md127 or /dev/md/data
    #[arg(value_name = "ARRAY")]
    pub array: String,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}
