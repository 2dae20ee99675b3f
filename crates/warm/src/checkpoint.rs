//! The checkpoint of the warming of a volume.

use jiff::Timestamp;
use ledger::LongWork;
use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

use reader::DiskAttachment;

/// Extent to which a start of the warming has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmedPart {
    /// The start ended before it had read all that was requested.
    Midway,
    /// The start read all that was requested, which was not the whole volume.
    Requested,
    /// The start read the whole volume.
    Whole,
}

/// The warming of one volume, and its progress. Ranges are bytes of the volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The path by which the volume was last named. It may change at a reboot.
    pub path: String,
    /// Size of the volume at the last start.
    pub size: Bytes,
    /// Bytes fetched at once.
    pub block: Bytes,
    /// Ranges that were read.
    pub done: Ranges,
    /// Ranges that could not be read.
    pub unreadable: Ranges,
    /// True if the whole volume was to be read, and not only the space that is in use, named by `--first`, or held by
    /// the snapshot.
    pub whole: bool,
    /// The attachment of a volume that its name alone does not identify.
    #[serde(default)]
    pub attached: Option<DiskAttachment>,
    /// True if the last start ended as requested: not by a signal, a kill or an error.
    #[serde(default)]
    pub ended: bool,
    /// Time of the first start.
    pub began: Timestamp,
    /// Duration of all starts together, in seconds.
    pub ran_s: f64,
    /// Number of starts.
    pub starts: u32,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "warm";
    const FORM: u32 = 1;
}
