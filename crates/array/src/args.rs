//! The arguments of `array`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::bitmap::Bitmap;
use crate::parsers::{fs_parser, layout_parser, level_parser};
use domain::filesystem::Fs;
use domain::plan_binding::PlannedDisk;
use domain::raid::{Level, Raid10Layout};
use domain::values::Size;

/// Arguments of `array`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith array create --level 10 --members /dev/sdf,/dev/sdg --destroy /dev/sdf \\
      --destroy /dev/sdg=ext4 --fs xfs --mount /data
  disksmith array list
  disksmith array replace data --member /dev/sdf --with /dev/sdh --destroy /dev/sdh
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
    /// Exchange a member for another disk while the array is in use
    Replace(ReplaceArgs),
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
    pub planned: Vec<PlannedDisk>,
    /// Chunk size, which is stored on one member before the next one follows: a power of two
    /// [default: 256k at levels that have chunks]
    #[arg(long, value_name = "SIZE")]
    pub chunk: Option<Size>,
    /// Hot spares, separated by commas: md rebuilds a member that fails onto one of them by itself.
    /// Each must also be named by a --destroy
    #[arg(long, value_name = "DEVICE,…", num_args = 1.., value_delimiter = ',')]
    pub spares: Vec<PathBuf>,
    /// Layout of the two copies of RAID 10: n2 near, f2 far, o2 offset. f2 and o2 read sequentially
    /// like RAID 0; f2 costs longer seeks for writes on rotating disks [default: n2]
    #[arg(long, value_parser = layout_parser())]
    pub layout: Option<Raid10Layout>,
    /// Write-intent bitmap, by which only what was being written is resynchronized after a crash
    /// [default: internal from 100 GiB on, none below]
    #[arg(long, value_enum)]
    pub bitmap: Option<Bitmap>,
    /// The array's name, as in /dev/md/NAME [default: the first free of md0, md1, …]
    #[arg(long)]
    pub name: Option<String>,
    /// Make a file system, aligned to chunk and stripe
    #[arg(long, value_parser = fs_parser())]
    pub fs: Option<Fs>,
    /// Mount the file system here. The folder is made when it is missing
    #[arg(long, value_name = "FOLDER", requires = "fs")]
    pub mount: Option<PathBuf>,
    /// Skip the initial sync of copies or parity: only right if all members hold zeros
    #[arg(long)]
    pub assume_clean: bool,
    /// Write the lines for mdadm.conf and fstab, so that array and file system return after a boot, and a
    /// rule for udev, so that its read-ahead does
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

/// Arguments of `array replace`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith array replace data --member /dev/sdf --with /dev/sdh --destroy /dev/sdh --dry-run
  disksmith array replace data --member /dev/sdf --with /dev/sdh --destroy /dev/sdh=ext4 \\
      --erase --destroy /dev/sdf=linux_raid_member")]
pub struct ReplaceArgs {
    /// The array's name or node: data, md127, /dev/md127 or /dev/md/data
    #[arg(value_name = "ARRAY")]
    pub array: String,
    /// The member that goes. It serves until the other disk has a copy of it
    #[arg(long, value_name = "DEVICE")]
    pub member: PathBuf,
    /// The disk that comes: one that must be named by a --destroy too, or a hot spare of the array
    #[arg(long, value_name = "DEVICE")]
    pub with: PathBuf,
    /// Allow this disk to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. Set by 'fleet'
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
    /// Erase the superblock of the member that goes, which must be named too:
    /// --destroy PATH=linux_raid_member
    #[arg(long)]
    pub erase: bool,
    /// Check everything and show the commands, but run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document; the commands are shown on standard error
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `array stop`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith array stop data
  disksmith array stop data --erase --destroy /dev/sdf=linux_raid_member \\
      --destroy /dev/sdg=linux_raid_member")]
pub struct StopArgs {
    /// The array's name or node: data, md127, /dev/md127 or /dev/md/data
    #[arg(value_name = "ARRAY")]
    pub array: String,
    /// Erase the superblocks of its members, so that it does not come back. Each must be named by a
    /// --destroy
    #[arg(long)]
    pub erase: bool,
    /// Allow the superblock of this member to be erased: PATH=linux_raid_member
    #[arg(long, value_name = "PATH=SIGNATURE", requires = "erase")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. Set by 'fleet'
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
    /// Check everything and show the commands, but run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}
