//! md's sync actions on an array, mainly a check, and its tunables (linux, Documentation/admin-guide/md.rst and
//! drivers/md/md.c).
//!
//! - A check goes from `sync_min` to `sync_max`. At a finite `sync_max` its thread drains and waits, and continues as
//!   soon as that is raised; it cannot be lowered meanwhile (EBUSY), and must be a multiple of the chunk (EINVAL).
//! - Each such stop costs writes of the superblock on all members: one when half of the distance to `sync_max` is
//!   done, one at half of the rest, and so on down to the unit of a check (64 KiB; 4 KiB at levels with parity).
//! - A thread that is faster than `sync_speed_max` sleeps for half a second. One that is faster than `sync_speed_min`
//!   issues 128 KiB at a time while others use the members; since Linux 6.16 it is `sync_io_depth` times as much, 32
//!   by default.
//! - A check that reaches the end resets `sync_min` to 0 and `sync_max` to `max`. A check that is stopped leaves both,
//!   with `sync_min` at a position up to which it is certainly done.
//! - `mismatch_cnt` starts at 0 with each check, and keeps its value afterwards.

use std::fs;
use std::path::PathBuf;

use record::Bytes;
use record::sample::SyncAction;

use super::superblock;
use crate::block::Device;
use crate::root::{Error, Result, Root, attribute, names_in, number, read_text};

/// Positions are in sectors of this many bytes.
const SECTOR: u64 = 512;

/// A limit of md's speed, on each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedLimit {
    /// Limit in KiB a second.
    pub kib: u64,
    /// True if it is set for this array; false for the system-wide limit.
    pub local: bool,
}

impl SpeedLimit {
    /// Parses the kernel's text: `1000 (system)`, `5000 (local)`. `None` for anything else.
    pub fn parse(text: &str) -> Option<SpeedLimit> {
        let (kib, whose) = text.trim().split_once(' ')?;
        let local = match whose {
            "(local)" => true,
            "(system)" => false,
            _ => return None,
        };
        Some(SpeedLimit {
            kib: kib.parse().ok()?,
            local,
        })
    }

    /// Text to write to restore this limit.
    pub fn to_write(self) -> String {
        if self.local {
            self.kib.to_string()
        } else {
            "system".to_owned()
        }
    }
}

/// A position in an array's sync action, in sectors of 512 bytes. At RAID 10 it is a position in the array, at the
/// other levels one in each member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sectors(pub u64);

impl Sectors {
    /// The number of whole sectors in this number of bytes.
    pub const fn of(bytes: Bytes) -> Sectors {
        Sectors(bytes.0 / SECTOR)
    }

    /// Size of these sectors, in bytes.
    pub fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(SECTOR))
    }
}

/// Position at which a check stops and waits: `sync_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMax {
    /// The end of the array.
    End,
    /// A position.
    At(Sectors),
}

impl SyncMax {
    /// Parses the kernel's text: `max`, or a number of sectors.
    pub fn parse(text: &str) -> Option<SyncMax> {
        match text.trim() {
            "max" => Some(SyncMax::End),
            sectors => Some(SyncMax::At(Sectors(sectors.parse().ok()?))),
        }
    }

    /// Text to write to set it.
    pub fn to_write(self) -> String {
        match self {
            SyncMax::End => "max".to_owned(),
            SyncMax::At(sectors) => sectors.0.to_string(),
        }
    }
}

/// A tunable of md's sync actions on an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunable {
    /// Position at which a check stops and waits.
    Max,
    /// Position at which it begins.
    Min,
    /// Speed below which it does not throttle for others.
    SpeedMin,
    /// Maximum speed.
    SpeedMax,
    /// Number of requests that md issues at once while others use the members, in units of one check step (since Linux
    /// 6.16, `sync_io_within_limit` in drivers/md/md.c); before, it was one.
    IoDepth,
    /// Number of stripes that a level with parity works on at once; a stripe is 4 KiB of each member.
    StripeCache,
    /// Start of the range of the array in which writes are suspended, in sectors. Writes only wait if it is below
    /// [`Tunable::SuspendHi`]; reads never wait (`is_suspended` in drivers/md/md.c).
    SuspendLo,
    /// End of that range. When a write to this file returns, the writes that were in progress are done.
    SuspendHi,
}

impl Tunable {
    /// Tunables of a check, in the order in which they are restored: those that could delay a recovery first.
    pub const ALL: [Tunable; 6] = [
        Tunable::SpeedMax,
        Tunable::SpeedMin,
        Tunable::IoDepth,
        Tunable::Min,
        Tunable::Max,
        Tunable::StripeCache,
    ];

    /// The file's name in the array's folder `md`.
    pub fn file(self) -> &'static str {
        match self {
            Tunable::Max => "sync_max",
            Tunable::Min => "sync_min",
            Tunable::SpeedMin => "sync_speed_min",
            Tunable::SpeedMax => "sync_speed_max",
            Tunable::IoDepth => "sync_io_depth",
            Tunable::StripeCache => "stripe_cache_size",
            Tunable::SuspendLo => "suspend_lo",
            Tunable::SuspendHi => "suspend_hi",
        }
    }

    /// The tunable of a file name.
    pub fn of_file(file: &str) -> Option<Tunable> {
        Tunable::ALL
            .into_iter()
            .find(|tunable| tunable.file() == file)
    }

    /// Text to write to restore the value `shown` by the kernel; `None` if it does not parse.
    pub fn to_write(self, shown: &str) -> Option<String> {
        let shown = shown.trim();
        match self {
            Tunable::Max => SyncMax::parse(shown).map(SyncMax::to_write),
            // A depth is shown like a speed, with `(system)` or `(local)`.
            Tunable::SpeedMin | Tunable::SpeedMax | Tunable::IoDepth => {
                SpeedLimit::parse(shown).map(SpeedLimit::to_write)
            }
            Tunable::Min | Tunable::StripeCache | Tunable::SuspendLo | Tunable::SuspendHi => {
                shown.parse::<u64>().ok().map(|number| number.to_string())
            }
        }
    }
}

/// State of an array's sync action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncState {
    /// Current action of md.
    pub action: SyncAction,
    /// `clean`, `active`, `read-auto`, …
    pub state: String,
    /// Number of members that are missing.
    pub degraded: u32,
    /// Position up to which it is certainly done, and position of the end; `None` if no action is in progress.
    pub completed: Option<(Sectors, Sectors)>,
    /// True if it waits for md's work on another array that shares a disk with this one (`sync_completed` is
    /// `delayed`); briefly true at each start too.
    pub delayed: bool,
    /// Number of sectors that differed since this check began.
    pub mismatches: u64,
    /// Position at which it stops and waits.
    pub until: SyncMax,
}

/// The sync actions of md on one array.
#[derive(Clone, Debug)]
pub struct Sync {
    folder: PathBuf,
    mdstat: PathBuf,
    dev: PathBuf,
    name: String,
}

impl Sync {
    /// The sync work of an array.
    pub fn of(root: &Root, array: &Device) -> Sync {
        Sync {
            folder: root
                .sys
                .join("class/block")
                .join(array.sysfs_name())
                .join("md"),
            mdstat: root.proc.join("mdstat"),
            dev: root.dev.clone(),
            name: array.name.clone(),
        }
    }

    /// The array's folder.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The array's id in mdadm's form. Kernels show it since 5.17; before, it is read from the superblock of a member,
    /// which needs permission. `None` if neither is possible.
    pub fn uuid(&self) -> Option<String> {
        match attribute(&self.folder.join("uuid")) {
            Some(shown) => as_mdadm_writes(&shown),
            None => self.uuid_of_members(),
        }
    }

    /// The id in the first readable superblock.
    fn uuid_of_members(&self) -> Option<String> {
        let form = attribute(&self.folder.join("metadata_version"))?;
        let entries = names_in(&self.folder).ok()?;
        let names = entries
            .iter()
            .filter_map(|entry| entry.to_str()?.strip_prefix("dev-"));
        let id = names
            .filter_map(|name| fs::File::open(self.dev.join(name.replace('!', "/"))).ok())
            .find_map(|member| superblock::uuid(&member, &form).ok().flatten())?;
        let digits: Vec<String> = id.iter().map(|byte| format!("{byte:02x}")).collect();
        as_mdadm_writes(&digits.concat())
    }

    /// Layout of the array's data over its members, in the kernel's words, on which the meaning of a position depends.
    /// A missing part is empty.
    pub fn shape(&self) -> String {
        let word = |file| attribute(&self.folder.join(file)).unwrap_or_default();
        format!(
            "{} over {}, chunk {}, layout {}",
            word("level"),
            word("raid_disks"),
            word("chunk_size"),
            word("layout")
        )
    }

    /// True if the array exists in sysfs.
    pub fn is_there(&self) -> bool {
        attribute(&self.folder.join("array_state"))
            .is_some_and(|state| state != "clear" && state != "inactive")
    }

    /// Value of a tunable, as the kernel shows it; `None` if this array has no such tunable.
    pub fn tunable(&self, tunable: Tunable) -> Option<String> {
        attribute(&self.folder.join(tunable.file()))
    }

    /// Sets a tunable.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn turn(&self, tunable: Tunable, text: &str) -> Result<()> {
        self.write(tunable.file(), text)
    }

    /// Starts a check or repair, or stops the present action with [`SyncAction::Idle`].
    ///
    /// # Errors
    /// The kernel's error: EBUSY while another action is running.
    pub fn write_sync_action(&self, action: SyncAction) -> Result<()> {
        self.write("sync_action", action.name())
    }

    /// State of the present action, read anew.
    ///
    /// # Errors
    /// When a file cannot be read or parsed.
    pub fn state(&self) -> Result<SyncState> {
        let path = self.folder.join("sync_action");
        let text = read_text(&path)?;
        let action = SyncAction::from_name(&text).ok_or_else(|| Error::Parse {
            path,
            line: 1,
            what: format!("the action '{text}' is not known"),
        })?;
        let path = self.folder.join("sync_max");
        let text = read_text(&path)?;
        let until = SyncMax::parse(&text).ok_or_else(|| Error::Parse {
            path,
            line: 1,
            what: format!("'{text}' is neither 'max' nor a number"),
        })?;
        let completed = attribute(&self.folder.join("sync_completed"));
        Ok(SyncState {
            action,
            state: read_text(&self.folder.join("array_state"))?,
            degraded: number(&self.folder.join("degraded")).unwrap_or(0),
            delayed: completed.as_deref() == Some("delayed"),
            completed: completed
                .and_then(|text| super::position(&text))
                .map(|(done, of)| (Sectors::of(done), Sectors::of(of))),
            mismatches: number(&self.folder.join("mismatch_cnt")).unwrap_or(0),
            until,
        })
    }

    /// The present or last action (`last_sync_action`); `None` if it is not shown.
    pub fn last_action(&self) -> Option<SyncAction> {
        SyncAction::from_name(&attribute(&self.folder.join("last_sync_action"))?)
    }

    /// Present position of the action, from /proc/mdstat, which is not rounded like `sync_completed`. `None` if no
    /// action is in progress.
    pub fn live(&self) -> Option<Sectors> {
        let text = fs::read_to_string(&self.mdstat).ok()?;
        live(&text, &self.name)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.folder.join(file);
        // A single write(2), as sysfs requires, and no file is created if there is none.
        let write = || {
            use std::io::Write as _;
            let mut file = fs::OpenOptions::new().write(true).open(&path)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })
    }
}

/// `42a903bc-285c-4385-a4ec-0a93132a224d` as `42a903bc:285c4385:a4ec0a93:132a224d`.
fn as_mdadm_writes(uuid: &str) -> Option<String> {
    let digits: String = uuid
        .chars()
        .filter(|c| *c != '-' && *c != ':')
        .collect::<String>()
        .to_lowercase();
    let fits = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    (fits && !is_zero).then(|| {
        let parts: Vec<&str> = [0, 8, 16, 24]
            .iter()
            .filter_map(|&at| digits.get(at..at + 8))
            .collect();
        parts.join(":")
    })
}

/// The position of an array in /proc/mdstat: `check = 12.3% (12345/522240)`, in KiB, below the line
/// that begins with its name.
fn live(mdstat: &str, name: &str) -> Option<Sectors> {
    let is_own = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(" :"))
    };
    let below = mdstat
        .lines()
        .skip_while(|line| !is_own(line))
        .skip(1)
        .take_while(|line| line.starts_with(' '));
    let mut shown = below.filter_map(|line| {
        let (_, rest) = line.split_once("% (")?;
        let (done, _) = rest.split_once('/')?;
        done.parse::<u64>().ok()
    });
    let kib = shown.next()?;
    Some(Sectors(kib.saturating_mul(2)))
}

#[cfg(test)]
mod tests;
