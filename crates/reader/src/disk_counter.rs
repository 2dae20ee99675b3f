//! The kernel's I/O counts of a device between two samples.

use linux::Root;
use linux::block::Device;
use linux::diskstats::{Counter, DiskStats};
use record::DeviceCounts;

/// Reads a device's counters, and returns differences.
pub struct DiskCounter {
    counter: Counter,
    before: DiskStats,
}

impl DiskCounter {
    /// Starts to count; `None` if the kernel has no counters for the device.
    pub fn open(device: &Device, root: &Root) -> Option<DiskCounter> {
        let counter = Counter::if_counted(root, device)?;
        let before = counter.read().ok()?;
        Some(DiskCounter { counter, before })
    }

    /// Counts since the last call; `None` if they are not known, for example because the device was removed.
    pub fn since(&mut self) -> Option<DeviceCounts> {
        let now = self.counter.read().ok()?;
        now.since(&std::mem::replace(&mut self.before, now))
    }
}
