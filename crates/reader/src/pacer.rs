//! The controller of one device, with the detector that tells the foreground from own I/O.

use record::Bytes;
use study::pace::{Allowed, Controller, ForegroundDetector, IoCounts, Sample, Targets};

use super::ForegroundReport;

/// A foreground request waits no longer than this for one of the background's: where a block is fetched from a
/// snapshot, it takes long without occupying the volume.
const LONGEST_REQUEST_S: f64 = 0.005;
/// The rate without a foreground is averaged over so many seconds.
const RECENT_S: f64 = 2.0;
/// After so many seconds a probe tells nothing of the latency any more.
const STALE_S: f64 = 1.0;

/// Measurements of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Its length, in seconds.
    pub seconds: f64,
    /// The kernel's counts and the background's own part of them; `None` where nothing counts.
    pub counts: Option<IoCounts>,
    /// True if the ledger was written to the device.
    pub commits: bool,
    /// Latencies of the probes that came back, in seconds.
    pub latencies_s: &'a [f64],
    /// Time that a probe has waited which has not come back, in seconds.
    pub waiting_s: f64,
    /// Bytes that the background completed, without probes.
    pub background: f64,
    /// True if background requests are outstanding.
    pub is_busy: bool,
    /// Size of a background request.
    pub request: Bytes,
}

/// Size of a background request beside a foreground, which may wait for the rest of one. On a volume with a cap of
/// 3,000 IOPS and 125 MiB/s it occupies half a millisecond, and 512 KiB four. Smaller ones would take more of the IOPS
/// than of the bytes.
pub const BESIDE: Bytes = Bytes::kib(64);

/// Decides how much of the background a device gets.
#[derive(Clone, Debug)]
pub struct Pacer {
    controller: Controller,
    detector: ForegroundDetector,
    /// Bytes a second while there is no foreground.
    gives: Option<f64>,
    /// Latency of the last probe, in seconds.
    probe_s: f64,
    /// Seconds since it came back.
    probe_age_s: f64,
}

impl Pacer {
    /// Keeps these targets, or where none is given what the foreground has by itself, with some room.
    pub fn new(targets: Targets) -> Pacer {
        let mut controller = Controller::new(targets);
        controller.request_takes(LONGEST_REQUEST_S);
        Pacer {
            controller,
            detector: ForegroundDetector::default(),
            gives: None,
            probe_s: 0.0,
            probe_age_s: 0.0,
        }
    }

    /// The controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Amount of I/O that is allowed.
    pub fn allowed(&self) -> Allowed {
        self.controller.allowed()
    }

    /// Takes an interval, and gives what is allowed from now on.
    pub fn take(&mut self, interval: &Interval<'_>) -> Allowed {
        if interval.commits {
            self.detector.commits();
        }
        let before = self.allowed();
        if before == Allowed::All && interval.background > 0.0 && interval.seconds > 0.0 {
            let rate = interval.background / interval.seconds;
            let gives = self.gives.get_or_insert(rate);
            *gives += (interval.seconds / RECENT_S).min(1.0) * (rate - *gives);
            self.controller.gives(*gives);
            let takes_s = interval.request.0 as f64 / *gives;
            self.controller
                .request_takes(takes_s.min(LONGEST_REQUEST_S));
        }
        self.probe_age_s += interval.seconds;
        if let Some(latency_s) = interval.latencies_s.last() {
            (self.probe_s, self.probe_age_s) = (*latency_s, 0.0);
        }
        let mut foreground =
            self.detector
                .take(interval.seconds, interval.counts, before == Allowed::All);
        // Little's law: the kernel does not tell for how long the foreground's requests were outstanding. Without
        // probes the latency of own requests stands for theirs.
        if self.probe_age_s < STALE_S {
            foreground.waited_s = foreground.requests.unwrap_or(0.0) * self.probe_s;
        }
        self.controller.take(&Sample {
            seconds: interval.seconds,
            foreground,
            latencies_s: interval.latencies_s,
            waiting_s: interval.waiting_s,
            timed: None,
            background: interval.background,
            is_busy: interval.is_busy,
        })
    }

    /// Result of the foreground; `None` where there was none.
    pub fn foreground(&self) -> Option<ForegroundReport> {
        ForegroundReport::of(&self.controller.outcome())
    }

    /// Latency and target of the foreground, as words; `None` while there is none.
    pub fn live(&self) -> Option<String> {
        super::foreground::live(&self.controller)
    }
}
