//! The checkpoint of the warming of a volume.

use jiff::Timestamp;
use ledger::LongWork;
use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

use reader::DiskAttachment;

/// End of a start of a warming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmedPart {
    /// The start ended before its end.
    Midway,
    /// The start read all that was requested, which left something out.
    Requested,
    /// The start read the whole volume.
    Whole,
}

/// The warming of one volume, and how far it is. Ranges are bytes of the volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The path by which the volume was named last. After a reboot it may have another.
    pub path: String,
    /// The size that the volume had.
    pub size: Bytes,
    /// Bytes fetched at once.
    pub block: Bytes,
    /// Ranges that were read.
    pub done: Ranges,
    /// Ranges that could not be read.
    pub unreadable: Ranges,
    /// True if the whole volume was to be read, and not only what is used, named or held.
    pub whole: bool,
    /// The attachment, of a volume whose name is not enough to know it by.
    #[serde(default)]
    pub attached: Option<DiskAttachment>,
    /// True if the last start ended as requested: not by a signal, a kill or an error.
    #[serde(default)]
    pub ended: bool,
    /// Time of the first start.
    pub began: Timestamp,
    /// Time worked, over all starts, in seconds.
    pub ran_s: f64,
    /// Number of starts.
    pub starts: u32,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "warm";
    const FORM: u32 = 1;
}
