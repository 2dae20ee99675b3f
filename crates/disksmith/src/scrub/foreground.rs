//! What the users of a device feel, on a real host: by probes, and by what the kernel counts.

use linux::Root;
use linux::block::Device;
use linux::diskstats::{Counter, DiskStats};

use super::felt::Seen;
use super::probe::Prober;

/// Watches one device.
pub(crate) struct Foreground {
    counter: Option<Counter>,
    before: Option<DiskStats>,
    /// What the kernel has counted beyond our own requests, as far as it was not told yet; below zero
    /// when some came back that it had not counted.
    beyond: i64,
    prober: Option<Prober>,
}

impl Foreground {
    /// Of this device, which is not probed yet.
    pub(crate) fn of(device: &Device, root: &Root) -> Foreground {
        let counter = device
            .is_counted(root)
            .then(|| Counter::open(root, device).ok())
            .flatten();
        Foreground {
            before: counter.as_ref().and_then(|counter| counter.read().ok()),
            counter,
            beyond: 0,
            prober: Prober::start(root.locate(&device.node()), device.size).ok(),
        }
    }

    /// What was seen since the last time; with `probing`, probes go on.
    pub(crate) fn seen(&mut self, probing: bool) -> Seen {
        self.look(probing, None)
    }

    /// The same of a device from which so many requests of our own, beside probes, came back. How long
    /// others' take is told by probes alone then: the kernel counts ours with them.
    pub(crate) fn seen_beside(&mut self, probing: bool, own: u64) -> Seen {
        self.look(probing, Some(own))
    }

    fn look(&mut self, probing: bool, own: Option<u64>) -> Seen {
        let (probes, waiting) = self.prober.as_ref().map_or((Vec::new(), 0.0), |prober| {
            prober.want(probing);
            prober.take()
        });
        let counted = self.counted();
        let others = counted.map(|(requests, _)| {
            let own = i64::try_from(own.unwrap_or(0) + probes.len() as u64).unwrap_or(i64::MAX);
            let requests = i64::try_from(requests).unwrap_or(i64::MAX);
            self.beyond = self.beyond.saturating_add(requests.saturating_sub(own));
            let others = u64::try_from(self.beyond).unwrap_or(0);
            self.beyond = self.beyond.min(0);
            others
        });
        Seen {
            probes,
            waiting,
            others,
            counted: counted.filter(|_| own.is_none()),
        }
    }

    /// The requests that the kernel has counted since the last time, and the seconds that they took.
    fn counted(&mut self) -> Option<(u64, f64)> {
        let now = self.counter.as_ref()?.read().ok()?;
        let before = self.before.replace(now)?;
        let counts = now.since(&before)?;
        let ms = |before: u64, now: u64| u64::from((now as u32).wrapping_sub(before as u32));
        let took = ms(before.read_ms, now.read_ms) + ms(before.write_ms, now.write_ms);
        // Two requests that became one on their way are two all the same.
        let merged = now.reads_merged.saturating_sub(before.reads_merged);
        Some((counts.reads + merged + counts.writes, took as f64 / 1e3))
    }
}
