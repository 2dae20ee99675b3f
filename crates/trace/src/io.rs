//! Types of a trace: its I/Os, its description, and its readers.

use std::path::PathBuf;

use jiff::Timestamp;
use record::{Bytes, Nanos, Severity};

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

/// A request, as the block layer saw it. Times count from the start of the trace, on one clock for all its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Device of the request.
    pub device: DeviceIndex,
    /// Operation.
    pub op: Op,
    /// True for a write that had to be durable before it completed (FUA).
    pub fua: bool,
    /// First byte on the device; 0 for a flush.
    pub offset: Bytes,
    /// Length; 0 for a flush.
    pub length: Bytes,
    /// Time at which it was queued in the block layer, before the I/O scheduler; `None` if only the issue was recorded.
    pub queued: Option<Nanos>,
    /// Time of issue to the device.
    pub issued: Nanos,
    /// Time of completion; `None` if it was not recorded.
    pub completed: Option<Nanos>,
    /// True if the device answered with an error.
    pub failed: bool,
    /// Process that issued it.
    pub process: Option<NameIndex>,
    /// Id of the thread that issued it.
    pub thread: Option<u32>,
    /// File that it belongs to.
    pub file: Option<NameIndex>,
}

/// Mode of a device's write cache, as in `queue/write_cache` of sysfs. The block layer sends no flushes to a device
/// without a volatile cache, so that a trace of such a device has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Write-back, volatile: flushes reach the device.
    Back,
    /// Write-through, or not volatile: the block layer completes flushes itself.
    Through,
}

/// A traced device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `nvme1n1`; the device number if the format has no names.
    pub name: String,
    /// Its size; `None` if the format does not have it.
    pub size: Option<Bytes>,
    /// Its write cache; `None` if the format does not have it.
    pub write_cache: Option<WriteCache>,
}

/// Description of a trace, known before its first I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format of the file, such as `disksmith`, `blktrace`, `fio iolog v3`.
    pub format: &'static str,
    /// Time of its start; `None` if the format has only relative times.
    pub started: Option<Timestamp>,
    /// Its devices. In some formats, devices are added to the list while the trace is read.
    pub devices: Vec<Device>,
    /// True if the format has completions, so that there are latencies.
    pub has_completions: bool,
    /// True if the format has flushes.
    pub has_flushes: bool,
}

/// Error of a trace file.
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
    /// The file could not be opened.
    #[error("{} could not be read: {reason}", path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// The reason. If the file is missing or may not be read, it includes a command to type.
        reason: String,
    },
    /// Text that does not match the format.
    #[error("{}:{line}:{column}: expected {expected}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: usize,
        /// What the format has at this position.
        expected: String,
    },
    /// Bytes that do not match the format.
    #[error("{}: damaged at byte {offset}: {detail}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Offset in the decompressed file.
        offset: u64,
        /// The damage.
        detail: String,
    },
    /// I/Os too far from the order of their issue.
    #[error(
        "{}: I/O {number} is {:.3} s earlier than one more than {held} I/Os before it; sort the file by time first",
        path.display(), by.as_secs_f64()
    )]
    Disordered {
        /// The file.
        path: PathBuf,
        /// Number of the I/O, from 1.
        number: u64,
        /// Time by which it is earlier.
        by: Nanos,
        /// Number of I/Os that are held back for sorting.
        held: usize,
    },
    /// More devices than a trace may have.
    #[error("{} names more than {most} devices; split it by device first", path.display())]
    Devices {
        /// The file.
        path: PathBuf,
        /// Maximum number of devices.
        most: usize,
    },
    /// The file is empty.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file has no known format.
    #[error(
        "{} is no trace that is known: blktrace, blkparse, fio iolog v2 or v3, blkreplay, MSR Cambridge, \
         SYSTOR '17, Alibaba, Tencent, hfplayer, or what `disksmith trace record` writes",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
}

/// Reasons to doubt a trace that are known so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caveats {
    /// Number of events that the recorder lost.
    pub lost: u64,
    /// Number of completions that matched several requests, or none.
    pub ambiguous: u64,
    /// Number of skipped records of operations that a trace does not have, such as commands to a driver.
    pub skipped: u64,
    /// True if the recorder ended before it closed the file.
    pub cut_off: bool,
}

/// Share of lost or ambiguous events up to which a trace is doubtful; above it, it is invalid.
const DOUBTFUL_LOST_SHARE: f64 = 0.01;

impl Caveats {
    /// Severity of `count` lost or ambiguous events in a trace of `ios` I/Os; `None` if there are none.
    pub fn severity_of(count: u64, ios: u64) -> Option<Severity> {
        let share = count as f64 / ios.max(1) as f64;
        let severity = match share > DOUBTFUL_LOST_SHARE {
            true => Severity::Invalid,
            false => Severity::Warn,
        };
        (count > 0).then_some(severity)
    }

    /// The highest severity of lost events, ambiguous events and a missing end, in a trace of `ios` I/Os; `None` if
    /// there is no reason to doubt it.
    pub fn severity(&self, ios: u64) -> Option<Severity> {
        let counts = [self.lost, self.ambiguous].map(|count| Caveats::severity_of(count, ios));
        let cut_off = self.cut_off.then_some(Severity::Warn);
        counts.into_iter().chain([cut_off]).flatten().max()
    }
}

/// Reader of a trace: an iterator over its I/Os in the order of their issue, in bounded memory.
pub trait TraceReader: Iterator<Item = Result<Io, ReadError>> + Send {
    /// Description of the trace.
    fn header(&self) -> &Header;

    /// Name of a process or a file that an I/O refers to.
    fn name(&self, index: NameIndex) -> Option<&str>;

    /// Reasons to doubt the trace that are known so far.
    fn caveats(&self) -> Caveats {
        Caveats::default()
    }

    /// Number of events that the recorder lost, as far as is known so far.
    fn lost(&self) -> u64 {
        self.caveats().lost
    }
}

/// Names of devices, processes and files that I/Os refer to.
pub trait Described {
    /// Devices of the trace.
    fn devices(&self) -> &[Device];

    /// Name of a process or a file.
    fn name(&self, index: NameIndex) -> Option<&str>;
}

impl Described for &(dyn TraceReader + '_) {
    fn devices(&self) -> &[Device] {
        &self.header().devices
    }

    fn name(&self, index: NameIndex) -> Option<&str> {
        TraceReader::name(*self, index)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A read of 4 KiB.
    pub(crate) fn read_at(issued: u64, offset: u64) -> Io {
        Io {
            device: DeviceIndex(0),
            op: Op::Read,
            fua: false,
            offset: Bytes(offset),
            length: Bytes(4096),
            queued: None,
            issued: Nanos(issued),
            completed: None,
            failed: false,
            process: None,
            thread: None,
            file: None,
        }
    }
}
