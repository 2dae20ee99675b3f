//! The checkpoint of a zeroing, from which it continues after a kill or a power cut.

use std::ops::Range;
use std::path::PathBuf;

use jiff::Timestamp;
use ledger::LongWork;
use linux::offload::Offload;
use record::{Bytes, Histogram, Ranges};
use serde::{Deserialize, Serialize};

use super::pace::Pace;
use super::sample::DoubleWriteTimes;

/// Method of zeroing a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// Zeros are written: the storage behind the disk is allocated.
    Writes,
    /// The blocks are discarded.
    Discard,
    /// The disk is told to write the zeros itself.
    WriteZeroes,
}

impl Method {
    /// Request to the device; `None` where zeros are written.
    pub(crate) fn offload(self) -> Option<Offload> {
        match self {
            Method::Writes => None,
            Method::Discard => Some(Offload::Discard),
            Method::WriteZeroes => Some(Offload::WriteZeroes),
        }
    }

    /// Name of the method in the JSON document.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Writes => "writes",
            Method::Discard => "discard",
            Method::WriteZeroes => "write-zeroes",
        }
    }

    /// Option of the command line that selects the method, with a space before it; empty for writes.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Method::Writes => "",
            Method::Discard => " --discard",
            Method::WriteZeroes => " --write-zeroes",
        }
    }
}

/// State of one disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Disk {
    /// Stamp that the disk's first block carries until the disk is zeroed. It identifies the disk, whatever its name
    /// and serial number are later.
    pub stamp: String,
    /// Path as the user named it.
    pub path: PathBuf,
    /// Kernel name of the disk, such as `nvme1n1`.
    pub name: String,
    /// Model of the disk; `None` where the kernel shows none.
    pub model: Option<String>,
    /// Serial number or volume id of the disk.
    pub serial: Option<String>,
    /// Size of the disk.
    pub size: Bytes,
    /// Method of zeroing the disk.
    pub method: Method,
    /// Ranges that are zero, also after a power cut. The stamp's block is included.
    pub zeroed: Ranges,
    /// Ranges that could not be written.
    pub failed: Ranges,
    /// The kernel's first error of a write to them.
    pub why_failed: Option<String>,
    /// Bytes zeroed over time.
    pub pace: Pace,
    /// Latency of the requests, in nanoseconds.
    pub latency: Histogram,
    /// Times of the first and the second write to a sample of places.
    pub passes: Option<DoubleWriteTimes>,
    /// Number of starts and resumptions.
    pub starts: u32,
    /// True if the stamp could not be written, so that the disk cannot be recognized later.
    #[serde(default)]
    pub unstamped: bool,
}

impl Disk {
    /// A disk of which nothing is zeroed yet, without model and serial number. The method is [`Method::Writes`].
    pub(crate) fn fresh(stamp: String, path: PathBuf, name: String, size: Bytes) -> Disk {
        Disk {
            stamp,
            path,
            name,
            model: None,
            serial: None,
            size,
            method: Method::Writes,
            zeroed: Ranges::new(),
            failed: Ranges::new(),
            why_failed: None,
            pace: Pace::new(),
            latency: Histogram::new(),
            passes: None,
            starts: 1,
            unstamped: false,
        }
    }

    /// Number of bytes that are zeroed or failed.
    pub(crate) fn done_or_failed(&self) -> Bytes {
        self.zeroed.total() + self.failed.total()
    }

    /// Records that a range could not be written, even if it was zeroed before.
    pub(crate) fn fail(&mut self, range: Range<u64>, why: String) {
        self.zeroed = self.zeroed.subtract(&Ranges::from(range.clone()));
        self.failed.insert(range);
        self.why_failed.get_or_insert(why);
    }

    /// Ranges that are neither zeroed nor failed.
    pub(crate) fn left(&self) -> Ranges {
        let settled = self.zeroed.union(&self.failed);
        Ranges::all(self.size).subtract(&settled)
    }
}

/// The disks of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Time of the first start.
    pub began: Timestamp,
    /// The disks, in the order in which they were named.
    pub disks: Vec<Disk>,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "zero";
    const FORM: u32 = 1;
}

/// A disk of which nothing is zeroed yet, in tests.
#[cfg(test)]
pub(crate) fn for_tests(size: Bytes) -> Disk {
    Disk::fresh(
        "20261122-000437-k7q2/1".to_owned(),
        PathBuf::from("/dev/test"),
        "test".to_owned(),
        size,
    )
}
