//! The pace of the requests to one volume, from the kernel's I/O counts of its disk.

use linux::Root;
use reader::{DiskCounter, Volume};
use record::Nanos;

use super::super::limit::SharedRateLimit;
use super::super::pace::{IoPolicy, KernelBytes, Pace};

/// Settings from which the pace of each volume is made.
#[derive(Clone, Copy)]
pub(super) struct Pacing<'a> {
    /// Limit of the rate of all volumes together.
    pub(super) limit: &'a SharedRateLimit,
    /// Policy towards the foreground.
    pub(super) policy: IoPolicy,
    /// Root of the kernel's files.
    pub(super) root: &'a Root,
}

impl<'a> Pacing<'a> {
    /// The pace of one volume, from the I/O counts of its disk.
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
    /// Pace of one volume. Without a counter a foreground is always assumed.
    pub(super) fn new(pace: Pace<'a>, counter: Option<DiskCounter>) -> VolumePace<'a> {
        VolumePace { pace, counter }
    }

    /// Updates the rate, if an interval has passed. (`commits` is false, since a check does not write to the ledger.)
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
