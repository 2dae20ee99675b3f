//! The kernel's counts of a device from one sample to the next.

use linux::Root;
use linux::block::Device;
use linux::diskstats::{Counter, DiskStats};
use record::DeviceCounts;

/// Reads a device's counters.
pub struct DiskCounter {
    counter: Counter,
    before: DiskStats,
}

impl DiskCounter {
    /// Counts from now on; `None` where the kernel does not count.
    pub fn open(device: &Device, root: &Root) -> Option<DiskCounter> {
        let counter = Counter::if_counted(root, device)?;
        let before = counter.read().ok()?;
        Some(DiskCounter { counter, before })
    }

    /// Counts since the last call; `None` where nothing can be concluded, as when the device was removed.
    pub fn since(&mut self) -> Option<DeviceCounts> {
        let now = self.counter.read().ok()?;
        now.since(&std::mem::replace(&mut self.before, now))
    }
}
