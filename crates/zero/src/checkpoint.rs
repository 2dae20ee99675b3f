//! The checkpoint of a zeroing, from which it goes on after a kill or a power cut.

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
    /// Zeros are sent: what backs the disk is allocated.
    Writes,
    /// The disk gives up what it holds.
    Discard,
    /// The disk is told to write the zeros.
    WriteZeroes,
}

impl Method {
    /// Request to the device; `None` where zeros are sent.
    pub(crate) fn offload(self) -> Option<Offload> {
        match self {
            Method::Writes => None,
            Method::Discard => Some(Offload::Discard),
            Method::WriteZeroes => Some(Offload::WriteZeroes),
        }
    }

    /// Its name, as the JSON document has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Writes => "writes",
            Method::Discard => "discard",
            Method::WriteZeroes => "write-zeroes",
        }
    }

    /// The user's option for it, with a space before it.
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
    /// Stamp in its first block until it is done, by which it is known again, whatever its name and serial
    /// number are then.
    pub stamp: String,
    /// Path as the user named it.
    pub path: PathBuf,
    /// The kernel's name for it.
    pub name: String,
    /// Model of the disk; `None` where the kernel shows none.
    pub model: Option<String>,
    /// Its serial number or volume id.
    pub serial: Option<String>,
    /// Size of the disk.
    pub size: Bytes,
    /// Method of zeroing it.
    pub method: Method,
    /// Bytes that are zero, also after a power cut. The stamp's block is counted in.
    pub zeroed: Ranges,
    /// Bytes that could not be written.
    pub failed: Ranges,
    /// The kernel's first error of those.
    pub why_failed: Option<String>,
    /// Bytes zeroed over time.
    pub pace: Pace,
    /// Latency of the requests, in nanoseconds.
    pub latency: Histogram,
    /// The first and the second write of a sample of places.
    pub passes: Option<DoubleWriteTimes>,
    /// Number of starts and resumptions.
    pub starts: u32,
    /// True if the stamp could not be written, so that it cannot be known again.
    #[serde(default)]
    pub unstamped: bool,
}

impl Disk {
    /// A disk of which nothing is zeroed yet, and no model or serial number known. Zeros are sent.
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

    /// Bytes that were written or failed.
    pub(crate) fn done_or_failed(&self) -> Bytes {
        self.zeroed.total() + self.failed.total()
    }

    /// A part could not be written, whatever it was before.
    pub(crate) fn fail(&mut self, range: Range<u64>, why: String) {
        self.zeroed = self.zeroed.subtract(&Ranges::from(range.clone()));
        self.failed.insert(range);
        self.why_failed.get_or_insert(why);
    }

    /// Bytes left to do.
    pub(crate) fn left(&self) -> Ranges {
        let settled = self.zeroed.union(&self.failed);
        Ranges::all(self.size).subtract(&settled)
    }
}

/// The disks of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// First start.
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
