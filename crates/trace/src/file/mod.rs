//! The trace file of this program (docs/design/trace-format.md): blocks, each compressed, with a checksum, and readable
//! without the others.

mod block;
mod columns;
mod frame;
mod reader;
mod writer;

pub(crate) use reader::FileReader;
pub use writer::TraceWriter;

use serde::{Deserialize, Serialize};

use jiff::Timestamp;
use record::{Bytes, Nanos};

use crate::io::{Device, WriteCache};

/// Magic number of the file.
const MAGIC: &[u8; 16] = b"disksmith trace\n";
/// Version that is written, and the highest that can be read. Version 1 may lack the column of threads.
const VERSION: u32 = 2;

/// True if a file begins with the magic number.
pub(crate) fn matches(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// Unit of a file's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tick(pub Nanos);

impl Tick {
    /// Tick of a recording: a tenth of a microsecond, which is less than the delay of an interrupt, and compresses
    /// well.
    pub const RECORDED: Tick = Tick(Nanos(100));
    /// Tick of a conversion from another file, without loss.
    pub const EXACT: Tick = Tick(Nanos(1));

    fn of(self, time: Nanos) -> u64 {
        time.0 / self.0.0
    }

    fn time(self, ticks: u64) -> Nanos {
        Nanos(ticks.saturating_mul(self.0.0))
    }
}

/// The first block.
#[derive(Debug, Serialize, Deserialize)]
struct HeadBlock {
    version: u32,
    started: Option<Timestamp>,
    tick_ns: Tick,
    has_completions: bool,
    has_flushes: bool,
    devices: Vec<DeviceEntry>,
}

/// The last block of a file that was closed.
#[derive(Debug, Serialize, Deserialize)]
struct EndBlock {
    ios: u64,
    lost: u64,
    ambiguous: u64,
}

/// A device in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceEntry {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    size_bytes: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    write_cache: Option<CacheEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CacheEntry {
    Back,
    Through,
}

impl From<&Device> for DeviceEntry {
    fn from(device: &Device) -> DeviceEntry {
        DeviceEntry {
            name: device.name.clone(),
            size_bytes: device.size,
            write_cache: device.write_cache.map(|cache| match cache {
                WriteCache::Back => CacheEntry::Back,
                WriteCache::Through => CacheEntry::Through,
            }),
        }
    }
}

impl From<DeviceEntry> for Device {
    fn from(entry: DeviceEntry) -> Device {
        Device {
            name: entry.name,
            size: entry.size_bytes,
            write_cache: entry.write_cache.map(|cache| match cache {
                CacheEntry::Back => WriteCache::Back,
                CacheEntry::Through => WriteCache::Through,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
