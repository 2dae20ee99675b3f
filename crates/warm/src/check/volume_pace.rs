//! The pace of the requests to one volume, by the kernel's counts of its disk.

use linux::Root;
use reader::{DiskCounter, Volume};
use record::Nanos;

use super::super::limit::SharedRateLimit;
use super::super::pace::{IoPolicy, KernelBytes, Pace};

/// The pace of all volumes.
#[derive(Clone, Copy)]
pub(super) struct Pacing<'a> {
    /// The rate of all together.
    pub(super) limit: &'a SharedRateLimit,
    /// Policy towards the foreground.
    pub(super) policy: IoPolicy,
    /// The kernel's files.
    pub(super) root: &'a Root,
}

impl<'a> Pacing<'a> {
    /// The pace of one volume, by the counts of its disk.
    pub(super) fn of(&self, volume: &Volume) -> VolumePace<'a> {
        let counter = DiskCounter::open(&volume.disk, self.root);
        VolumePace::new(Pace::new(self.limit, self.policy), counter)
    }
}

/// The pace of one volume.
pub(super) struct VolumePace<'a> {
    pub(super) pace: Pace<'a>,
    counter: Option<DiskCounter>,
}

impl<'a> VolumePace<'a> {
    /// Pace of one volume. Without a counter there may always be a foreground.
    pub(super) fn new(pace: Pace<'a>, counter: Option<DiskCounter>) -> VolumePace<'a> {
        VolumePace { pace, counter }
    }

    /// Sets the rate anew, if it is time to. A check writes nothing to the ledger.
    pub(super) fn adjust(&mut self, now: Nanos) {
        let counter = &mut self.counter;
        self.pace.adjust(now, || {
            let counts = counter.as_mut()?.since()?;
            Some(KernelBytes {
                read_bytes: counts.read_bytes,
                written_bytes: counts.write_bytes,
                commits: false,
            })
        });
    }
}
