//! One I/O of a trace, and the trace's description.

use std::path::PathBuf;

use jiff::Timestamp;
use record::{Bytes, Nanos};

/// Operation of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A flush of the device's write cache; it moves no data.
    Flush,
    /// A discard (TRIM, UNMAP).
    Discard,
}

/// Number of a device in [`Header::devices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceIndex(pub u16);

/// Number of a process's or a file's name in [`TraceReader::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameIndex(pub u32);

/// One request, as the block layer saw it. Times count from the start of the trace, on one clock for all its
/// devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Device that was asked.
    pub device: DeviceIndex,
    /// Operation.
    pub op: Op,
    /// True of a write that had to be durable before it was answered (FUA).
    pub fua: bool,
    /// First byte on the device; 0 for a flush.
    pub offset: Bytes,
    /// Length; 0 for a flush.
    pub length: Bytes,
    /// Time at which it came to the block layer, before its scheduler; `None` where only the issue was recorded.
    pub queued: Option<Nanos>,
    /// Time of issue to the device.
    pub issued: Nanos,
    /// Time of completion; `None` where it was not recorded.
    pub completed: Option<Nanos>,
    /// True if the device answered with an error.
    pub failed: bool,
    /// Process that issued it.
    pub process: Option<NameIndex>,
    /// File that it belongs to.
    pub file: Option<NameIndex>,
}

/// A traced device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `nvme1n1`; of a format without names the number that it gives.
    pub name: String,
    /// Its size; `None` where the format has none.
    pub size: Option<Bytes>,
}

/// Description of a trace, known before its first I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format that it was read from, such as `disksmith`, `blktrace`, `fio iolog v3`.
    pub format: &'static str,
    /// Time of its start; `None` where the format has only relative times.
    pub started: Option<Timestamp>,
    /// Its devices. Formats that name devices as they go add to the list while they are read.
    pub devices: Vec<Device>,
    /// True if the format holds completions, so that there are latencies.
    pub has_completions: bool,
    /// True if the format holds flushes.
    pub has_flushes: bool,
}

/// Error of a trace's file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("{} could not be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Text that the format does not have.
    #[error("{}:{line}:{column}: expected {expected}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: usize,
        /// Thing that the format has there.
        expected: String,
    },
    /// Bytes that the format does not have.
    #[error("{}: damaged at byte {offset}: {detail}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Place in the file after decompression.
        offset: u64,
        /// The damage.
        detail: String,
    },
    /// No format that is known.
    #[error(
        "{} is no trace that is known: blktrace, blkparse, fio iolog v2 or v3, blkreplay, MSR Cambridge, \
         SYSTOR '17, Alibaba, Tencent, or what `disksmith trace record` writes",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
}

/// A trace as it is read: its I/Os in the order of their issue, in bounded memory.
pub trait TraceReader: Iterator<Item = Result<Io, ReadError>> + Send {
    /// Its description.
    fn header(&self) -> &Header;

    /// Name of a process or a file that an I/O refers to.
    fn name(&self, index: NameIndex) -> Option<&str>;

    /// Number of events that the recorder lost, as far as it is known by now.
    fn lost(&self) -> u64 {
        0
    }
}
