//! md's work on the whole of an array, a check above all, and its tunables (linux, Documentation/admin-guide/md.rst and
//! drivers/md/md.c).
//!
//! - A check goes from `sync_min` to `sync_max`. At a finite `sync_max` its thread drains and waits,
//!   and continues as soon as that is raised; it cannot be lowered meanwhile (EBUSY), and must be a
//!   multiple of the chunk (EINVAL).
//! - Each such stop costs writes of the superblock on all members: one when half of the way to
//!   `sync_max` is done, one at half of the rest, and so on down to what md checks at once (64 KiB;
//!   4 KiB at levels with parity).
//! - A thread that is faster than `sync_speed_max` sleeps for half a second; one that is faster than
//!   `sync_speed_min` lets go 128 KiB at a time while others use the members; since Linux 6.16 it is
//!   `sync_io_depth` times as much, 32 unless it is set.
//! - A check that has reached the end puts `sync_min` back to 0 and `sync_max` to `max`; one that
//!   was ended leaves both, with `sync_min` where it is sure to have been.
//! - `mismatch_cnt` begins at 0 with each check, and stays after it.

use std::fs;
use std::path::PathBuf;

use record::Bytes;
use record::sample::SyncAction;

use super::superblock;
use crate::block::Device;
use crate::root::{Error, Result, Root, attribute, names_in, number, read_text};

/// Positions are in sectors of this many bytes.
const SECTOR: u64 = 512;

/// A limit of md's speed, in KiB a second on each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedLimit {
    /// KiB a second.
    pub kib: u64,
    /// True if it was set for this array, and is not the system's.
    pub local: bool,
}

impl SpeedLimit {
    /// Reads the kernel's text: `1000 (system)`, `5000 (local)`. `None` for anything else.
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

    /// Text to write for it to be so again.
    pub fn to_write(self) -> String {
        if self.local {
            self.kib.to_string()
        } else {
            "system".to_owned()
        }
    }
}

/// A place in an array that md goes through, in sectors of 512 bytes. At RAID 10 it counts over the
/// array, at the other levels over each member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sectors(pub u64);

impl Sectors {
    /// Sectors of this number of bytes, without the part of a sector.
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
    /// Reads the kernel's text: `max`, or a number of sectors.
    pub fn parse(text: &str) -> Option<SyncMax> {
        match text.trim() {
            "max" => Some(SyncMax::End),
            sectors => Some(SyncMax::At(Sectors(sectors.parse().ok()?))),
        }
    }

    /// Text to write for it to be so.
    pub fn to_write(self) -> String {
        match self {
            SyncMax::End => "max".to_owned(),
            SyncMax::At(sectors) => sectors.0.to_string(),
        }
    }
}

/// Tunable of md's work on one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunable {
    /// Position at which a check stops and waits.
    Max,
    /// Position at which it begins.
    Min,
    /// The speed up to which it takes no notice of others.
    SpeedMin,
    /// The speed beyond which it rests.
    SpeedMax,
    /// Requests that md lets go at once while others use the members, in units of one check step (since Linux
    /// 6.16, `sync_io_within_limit` in drivers/md/md.c); before, that was one of them.
    IoDepth,
    /// Number of stripes that a level with parity works on at once, 4 KiB of each member a stripe.
    StripeCache,
    /// Start of the bytes of the array to which writes wait, in sectors. Writes wait only where it is below
    /// [`Tunable::SuspendHi`]; reads never do (`is_suspended` in drivers/md/md.c).
    SuspendLo,
    /// End of these bytes. When a write to this file returns, the writes that were under way are done.
    SuspendHi,
}

impl Tunable {
    /// Tunables that steer a check, in the order in which they are best restored: what could hold back a recovery
    /// first.
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

    /// The tunable of a file.
    pub fn of_file(file: &str) -> Option<Tunable> {
        Tunable::ALL
            .into_iter()
            .find(|tunable| tunable.file() == file)
    }

    /// Text to write for the tunable to be again as `shown` by the kernel; `None` for a text that is none of
    /// its.
    pub fn to_write(self, shown: &str) -> Option<String> {
        let shown = shown.trim();
        match self {
            Tunable::Max => SyncMax::parse(shown).map(SyncMax::to_write),
            // A depth is shown as a speed is, with whose it is.
            Tunable::SpeedMin | Tunable::SpeedMax | Tunable::IoDepth => {
                SpeedLimit::parse(shown).map(SpeedLimit::to_write)
            }
            Tunable::Min | Tunable::StripeCache | Tunable::SuspendLo | Tunable::SuspendHi => {
                shown.parse::<u64>().ok().map(|number| number.to_string())
            }
        }
    }
}

/// State of an array's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncState {
    /// Current action of md.
    pub action: SyncAction,
    /// `clean`, `active`, `read-auto`, …
    pub state: String,
    /// Number of members that are missing.
    pub degraded: u32,
    /// Position up to which it is surely done, and position of the end; `None` when nothing is being done.
    pub completed: Option<(Sectors, Sectors)>,
    /// True if it waits for md's work on another array, which shares a disk with this one (`sync_completed`
    /// says `delayed`); also for a moment at each beginning.
    pub delayed: bool,
    /// Sectors that differed, since this check began.
    pub mismatches: u64,
    /// Position at which it stops and waits.
    pub until: SyncMax,
}

/// The work of md on one array.
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

    /// The array's id, as mdadm writes it. Kernels show it since 5.17; before, it is read from the
    /// superblock of a member, where this process may. `None` where neither tells it.
    pub fn uuid(&self) -> Option<String> {
        match attribute(&self.folder.join("uuid")) {
            Some(shown) => as_mdadm_writes(&shown),
            None => self.uuid_of_members(),
        }
    }

    /// The id in the first superblock that can be read.
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

    /// Layout of its data over its members, in the kernel's words: the meaning of a position depends on it. A
    /// part that is not shown is empty.
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

    /// True if the array is there, as far as the kernel shows it.
    pub fn is_there(&self) -> bool {
        attribute(&self.folder.join("array_state"))
            .is_some_and(|state| state != "clear" && state != "inactive")
    }

    /// Value of a tunable, as the kernel shows it; `None` where it has none.
    pub fn tunable(&self, tunable: Tunable) -> Option<String> {
        attribute(&self.folder.join(tunable.file()))
    }

    /// Turns a tunable.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn turn(&self, tunable: Tunable, text: &str) -> Result<()> {
        self.write(tunable.file(), text)
    }

    /// Begins a check or repair, or ends whatever is under way with [`SyncAction::Idle`].
    ///
    /// # Errors
    /// The kernel's error: EBUSY while another action is running.
    pub fn write_sync_action(&self, action: SyncAction) -> Result<()> {
        self.write("sync_action", action.name())
    }

    /// State of its work, read anew.
    ///
    /// # Errors
    /// When something cannot be read or understood.
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

    /// Last action, or the present one (`last_sync_action`); `None` where that is not shown.
    pub fn last_action(&self) -> Option<SyncAction> {
        SyncAction::from_name(&attribute(&self.folder.join("last_sync_action"))?)
    }

    /// Position of the thread at this moment, from /proc/mdstat, which is not rounded as `sync_completed` is:
    /// `None` when nothing is under way.
    pub fn live(&self) -> Option<Sectors> {
        let text = fs::read_to_string(&self.mdstat).ok()?;
        live(&text, &self.name)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.folder.join(file);
        // One write(2), as sysfs wants it, and no file is made where there is none.
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
