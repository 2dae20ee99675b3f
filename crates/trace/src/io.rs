//! One I/O of a trace, and the trace's description.

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
    /// The kernel's number of the thread that issued it.
    pub thread: Option<u32>,
    /// File that it belongs to.
    pub file: Option<NameIndex>,
}

/// Mode of a device's write cache, as `queue/write_cache` of sysfs tells it. The block layer sends no flushes to a
/// device without a volatile cache, so that a trace of such a device holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Volatile: flushes reach the device.
    Back,
    /// None, or not volatile: the block layer answers flushes itself.
    Through,
}

/// A traced device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, such as `nvme1n1`; of a format without names the number that it gives.
    pub name: String,
    /// Its size; `None` where the format has none.
    pub size: Option<Bytes>,
    /// Its write cache; `None` where the format does not tell it.
    pub write_cache: Option<WriteCache>,
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
    /// The file could not be opened.
    #[error("{} could not be read: {reason}", path.display())]
    Unopened {
        /// The file.
        path: PathBuf,
        /// The reason; of a file that is missing, or that this user may not read, with a command to type.
        reason: String,
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
        /// Text that the format has there.
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
    /// I/Os that are not nearly in the order of their issue.
    #[error(
        "{}: I/O {number} is {:.3} s earlier than one more than {held} I/Os before it; sort the file by time first",
        path.display(), by.as_secs_f64()
    )]
    Disordered {
        /// The file.
        path: PathBuf,
        /// Number of the I/O, from 1.
        number: u64,
        /// Time by which it is early.
        by: Nanos,
        /// I/Os that are held back to bring them into order.
        held: usize,
    },
    /// More devices than a trace may have.
    #[error("{} names more than {most} devices; split it by device first", path.display())]
    Devices {
        /// The file.
        path: PathBuf,
        /// Devices that a trace may have.
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

/// Reasons to doubt a trace, as far as they are known by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caveats {
    /// Events that the recorder lost.
    pub lost: u64,
    /// Completions that fitted more than one request, or none.
    pub ambiguous: u64,
    /// Records of operations that a trace has no place for, such as commands to a driver.
    pub skipped: u64,
    /// True if the recorder ended before it closed the file.
    pub cut_off: bool,
}

/// Share of lost or ambiguous events up to which a trace is doubtful; above it is invalid.
const DOUBTFUL_LOST_SHARE: f64 = 0.01;

impl Caveats {
    /// Severity of so many lost or ambiguous events beside so many I/Os; `None` of none.
    pub fn severity_of(count: u64, ios: u64) -> Option<Severity> {
        let share = count as f64 / ios.max(1) as f64;
        let severity = match share > DOUBTFUL_LOST_SHARE {
            true => Severity::Invalid,
            false => Severity::Warn,
        };
        (count > 0).then_some(severity)
    }

    /// The worst severity among what makes a trace of so many I/Os doubtful or invalid: lost events, ambiguous ones,
    /// and a missing end.
    pub fn severity(&self, ios: u64) -> Option<Severity> {
        let counts = [self.lost, self.ambiguous].map(|count| Caveats::severity_of(count, ios));
        let cut_off = self.cut_off.then_some(Severity::Warn);
        counts.into_iter().chain([cut_off]).flatten().max()
    }
}

/// A trace as it is read: its I/Os in the order of their issue, in bounded memory.
pub trait TraceReader: Iterator<Item = Result<Io, ReadError>> + Send {
    /// Description of the trace.
    fn header(&self) -> &Header;

    /// Name of a process or a file that an I/O refers to.
    fn name(&self, index: NameIndex) -> Option<&str>;

    /// Reasons to doubt it.
    fn caveats(&self) -> Caveats {
        Caveats::default()
    }

    /// Number of events that the recorder lost, as far as it is known by now.
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
