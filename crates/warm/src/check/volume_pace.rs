//! The pace of the requests to one volume, by the kernel's counts of its disk.

use engine::list::{Next, Request};
use linux::Root;
use reader::{DiskCounter, PROBE_BYTES, Volume};
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

/// Mark of a request that is a probe of foreground latency.
pub(super) const PROBE: u64 = u64::MAX;
/// Wait when nothing can be requested; a completion ends it earlier.
const NAP: Nanos = Nanos(10_000_000);
/// A prime number: a step that reaches all places.
const SPREAD: usize = 7919;

/// The pace of one volume.
pub(super) struct VolumePace<'a> {
    pub(super) pace: Pace<'a>,
    counter: Option<DiskCounter>,
    /// Probes that were due.
    probes: usize,
}

impl<'a> VolumePace<'a> {
    /// Without a counter there may always be a foreground.
    pub(super) fn new(pace: Pace<'a>, counter: Option<DiskCounter>) -> VolumePace<'a> {
        VolumePace {
            pace,
            counter,
            probes: 0,
        }
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

    /// A probe of foreground latency, if one is due: a page at the offset that `warm` gives for a number, which is
    /// another one each time; `None` where that is not warm.
    pub(super) fn probe(
        &mut self,
        now: Nanos,
        warm: impl FnOnce(usize) -> Option<u64>,
    ) -> Option<Request> {
        if !self.pace.probes(now) {
            return None;
        }
        self.probes += 1;
        let probe = warm(self.probes.wrapping_mul(SPREAD));
        if probe.is_none() {
            self.pace.cannot_probe();
        }
        Some(Request::read(probe?, PROBE_BYTES, PROBE))
    }

    /// True if a probe was due so far.
    pub(super) fn has_probed(&self) -> bool {
        self.probes > 0
    }

    /// The wait until the pace lets a request go; `None` if it does now.
    pub(super) fn wait(&self, now: Nanos) -> Option<Next> {
        let until = self.pace.wait(now)?;
        Some(Next::Wait(until.min(now + NAP)))
    }

    /// The wait for a completion.
    pub(super) fn wait_for_completion(now: Nanos) -> Next {
        Next::Wait(now + NAP)
    }
}
