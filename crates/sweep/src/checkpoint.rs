//! The checkpoint of a sweep.

use std::path::{Path, PathBuf};

use ledger::LongWork;
use serde::{Deserialize, Serialize};

use super::built_layout::BuiltLayout;
use super::record::SweepRecord;

/// Folder of the mount points of layouts. Files under `/run` are gone after a reboot, as the mounts are.
const MOUNTS: &str = "/run/disksmith";

/// A sweep, and the layout that is currently built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The sweep.
    pub record: SweepRecord,
    /// The layout that is currently built; `None` between two layouts.
    pub underway: Option<BuiltLayout>,
    /// The boot of the kernel in which it ran last.
    pub boot: String,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "sweep";
    const FORM: u32 = 1;
}

impl Checkpoint {
    /// Mount point of its layouts.
    pub(crate) fn mount(&self) -> PathBuf {
        Path::new(MOUNTS).join(format!("sweep-{}", self.record.id))
    }
}
