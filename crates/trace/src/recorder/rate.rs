//! Request rate of the recorded devices, from the kernel's counters, which also count requests whose events are lost.

use std::thread::sleep;

use linux::Root;
use linux::diskstats::{Counter, DiskStats};
use linux::tracefs::now;
use record::Nanos;

use super::target::Target;

/// Time over which the rate is measured before a recording.
const WINDOW_BEFORE_RECORDING: Nanos = Nanos(250_000_000);
/// Time over which the rate is measured during a recording.
const WINDOW_WHILE_RECORDING: Nanos = Nanos::from_secs(1);

/// Counters of the devices, and the highest rate so far.
pub(super) struct RequestRate {
    devices: Vec<(Counter, DiskStats)>,
    since: Nanos,
    highest: f64,
}

impl RequestRate {
    /// Starts to measure.
    pub(super) fn start(root: &Root, targets: &[Target]) -> RequestRate {
        let counted = |target: &Target| {
            let counter = Counter::if_counted(root, &target.device)?;
            let stats = counter.read().ok()?;
            Some((counter, stats))
        };
        RequestRate {
            devices: targets.iter().filter_map(counted).collect(),
            since: now(),
            highest: 0.0,
        }
    }

    /// The rate since the start.
    pub(super) fn measure(&mut self) -> f64 {
        let passed = now() - self.since;
        sleep((WINDOW_BEFORE_RECORDING - passed).into());
        self.count();
        self.highest
    }

    /// Measures the rate since the last poll, if the interval is over.
    pub(super) fn poll(&mut self) {
        if now() - self.since >= WINDOW_WHILE_RECORDING {
            self.count();
        }
    }

    fn count(&mut self) {
        let mut requests = 0;
        for (counter, before) in &mut self.devices {
            // A device that was removed is left out.
            if let Ok(stats) = counter.read() {
                let moved = stats.moved_since(before);
                requests += moved.as_ref().map_or(0, requests_of);
                *before = stats;
            }
        }
        let passed = now() - self.since;
        self.since += passed;
        self.highest = self.highest.max(requests as f64 / passed.as_secs_f64());
    }

    /// The highest rate so far, in requests per second.
    pub(super) fn highest(&self) -> f64 {
        self.highest
    }
}

/// Number of requests by the counters, including merged ones, which were queued in the block layer too.
fn requests_of(stats: &DiskStats) -> u64 {
    let merged = stats.reads_merged + stats.writes_merged + stats.discards_merged;
    stats.reads + stats.writes + stats.discards + stats.flushes + merged
}
