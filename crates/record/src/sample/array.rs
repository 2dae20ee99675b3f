//! State of an array at the end of an interval.

use serde::{Deserialize, Serialize};

use super::{BytesPerSecond, DeviceId};
use crate::{Bytes, Nanos};

/// Sync action of md (linux, Documentation/admin-guide/md.rst, `sync_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SyncAction {
    /// No action.
    Idle,
    /// Copies or parity are resynchronized, as after a crash.
    Resync,
    /// A replaced member is rebuilt.
    Recover,
    /// All data is read and compared.
    Check,
    /// All data is read and compared, and mismatches are corrected.
    Repair,
    /// The layout changes.
    Reshape,
    /// No action may begin.
    Frozen,
}

impl SyncAction {
    /// True if it reads or writes the members.
    pub fn is_work(self) -> bool {
        !matches!(self, SyncAction::Idle | SyncAction::Frozen)
    }

    /// The kernel's name of it.
    pub fn name(self) -> &'static str {
        match self {
            SyncAction::Idle => "idle",
            SyncAction::Resync => "resync",
            SyncAction::Recover => "recover",
            SyncAction::Check => "check",
            SyncAction::Repair => "repair",
            SyncAction::Reshape => "reshape",
            SyncAction::Frozen => "frozen",
        }
    }

    /// The action with this name in the kernel; `None` for a name that only newer kernels have.
    pub fn from_name(word: &str) -> Option<SyncAction> {
        [
            SyncAction::Idle,
            SyncAction::Resync,
            SyncAction::Recover,
            SyncAction::Check,
            SyncAction::Repair,
            SyncAction::Reshape,
            SyncAction::Frozen,
        ]
        .into_iter()
        .find(|action| action.name() == word.trim())
    }
}

/// Progress of a sync action, in bytes of each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes done.
    pub done: Bytes,
    /// Total number of bytes.
    pub of: Bytes,
}

impl Progress {
    /// The completed share, 0 to 1.
    pub fn fraction(self) -> f64 {
        match self.of.0 {
            0 => 1.0,
            of => self.done.0 as f64 / of as f64,
        }
    }

    /// Remaining time at a speed; `None` while the speed is 0.
    pub fn left(self, speed: BytesPerSecond) -> Option<Nanos> {
        let left = (self.of - self.done).0 as f64;
        (speed.0 > 0.0).then(|| Nanos((left / speed.0 * 1e9) as u64))
    }
}

/// A member of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The device; `None` if the kernel no longer lists it.
    pub device: Option<DeviceId>,
    /// The kernel's name.
    pub name: String,
    /// Slot of the member in the array; `None` for a spare or a failed member.
    pub slot: Option<u32>,
    /// State flags, as in sysfs: `in_sync`, `spare`, `faulty`, `write_mostly`.
    pub state: Vec<String>,
    /// Read errors that were corrected from a copy since the array was assembled.
    pub errors: Option<u64>,
}

impl Member {
    /// True if md marked it as faulty.
    pub fn is_faulty(&self) -> bool {
        self.state.iter().any(|word| word == "faulty")
    }
}

/// State of an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArraySample {
    /// md's sync action; `None` at levels without copies or parity.
    pub action: Option<SyncAction>,
    /// Progress of the sync action; `None` if none is running.
    pub position: Option<Progress>,
    /// Speed of the sync action, on each member.
    pub speed: Option<BytesPerSecond>,
    /// Number of members that it should have.
    pub wanted: Option<u32>,
    /// Number of missing members.
    pub degraded: Option<u32>,
    /// Number of sectors in which the last check found mismatches, in whole units of the check (`mismatch_cnt`).
    pub mismatched: Option<u64>,
    /// Members of the array, in order of their slots; spares and failed ones come last.
    pub members: Vec<Member>,
}

impl ArraySample {
    /// True if md is reading or writing the members for a sync action. An action that waits for another array has no
    /// position.
    pub fn is_at_work(&self) -> bool {
        self.action.is_some_and(SyncAction::is_work) && self.position.is_some()
    }
}
