//! The rate controller of one device, with the detector that distinguishes foreground I/O from own I/O.

use record::Bytes;
use study::pace::{
    Allowed, Controller, ControllerStage, ForegroundDetector, IoCounts, Sample, Targets,
};

use super::own_latency::OwnLatency;
use super::{ForegroundReport, PROBE_BYTES};

/// Maximum time, in seconds, that a background request occupies the volume: a block that is fetched from a snapshot
/// takes longer, but without occupying it.
const MAX_REQUEST_S: f64 = 0.005;
/// Time in seconds over which the rate without a foreground is averaged.
const RECENT_S: f64 = 2.0;
/// Age in seconds at which a probe's latency is outdated.
const STALE_S: f64 = 1.0;

/// Measurements of an interval.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredInterval<'a> {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// The kernel's counts and the background's share of them; `None` if there are no counters.
    pub counts: Option<IoCounts>,
    /// True if the ledger has written to the device.
    pub commits: bool,
    /// Latencies of the completed probes, in seconds.
    pub latencies_s: &'a [f64],
    /// Time for which an outstanding probe has waited, in seconds.
    pub waiting_s: f64,
    /// Bytes of completed background requests, without probes.
    pub background: f64,
    /// True if background requests are outstanding.
    pub is_busy: bool,
    /// Size of a background request while there is a foreground.
    pub request: Bytes,
    /// Minimum latency, in seconds, of the background's successful requests of at least that size.
    pub own_latency_s: Option<f64>,
}

/// Decides the background's rate on a device.
#[derive(Clone, Debug)]
pub struct Pacer {
    controller: Controller,
    detector: ForegroundDetector,
    /// Bytes per second while there is no foreground.
    device_rate: Option<f64>,
    /// Seconds over which `device_rate` was measured.
    alone_s: f64,
    own_latency: OwnLatency,
    /// Latency of the last probe, in seconds.
    probe_s: f64,
    /// Seconds since the last probe completed.
    probe_age_s: f64,
}

impl Pacer {
    /// A pacer with these targets; without a target, it keeps the latency that the foreground has by itself, with some
    /// tolerance.
    pub fn new(targets: Targets) -> Pacer {
        let mut controller = Controller::new(targets);
        controller.request_takes(MAX_REQUEST_S);
        Pacer {
            controller,
            detector: ForegroundDetector::default(),
            device_rate: None,
            alone_s: 0.0,
            own_latency: OwnLatency::default(),
            probe_s: 0.0,
            probe_age_s: 0.0,
        }
    }

    /// Controller that decides the rate.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Amount of I/O that is allowed.
    pub fn allowed(&self) -> Allowed {
        self.controller.allowed()
    }

    /// Adds an interval, and returns the amount of I/O that is allowed from now on.
    pub fn take(&mut self, interval: &MeasuredInterval<'_>) -> Allowed {
        if interval.commits {
            self.detector.commits();
        }
        let before = self.allowed();
        if before == Allowed::All && interval.background > 0.0 && interval.seconds > 0.0 {
            let rate = interval.background / interval.seconds;
            self.alone_s += interval.seconds;
            // At first all intervals have equal weight, so that a slow start is soon outweighed.
            let weight = (interval.seconds / self.alone_s)
                .max(interval.seconds / RECENT_S)
                .min(1.0);
            let device_rate = self.device_rate.get_or_insert(rate);
            *device_rate += weight * (rate - *device_rate);
            self.controller.set_device_rate(*device_rate);
            let takes_s = interval.request.0 as f64 / *device_rate;
            self.controller.request_takes(takes_s.min(MAX_REQUEST_S));
        }
        self.probe_age_s += interval.seconds;
        if let Some(latency_s) = interval.latencies_s.last() {
            (self.probe_s, self.probe_age_s) = (*latency_s, 0.0);
        }
        if self.device_rate.is_none() {
            self.estimate(interval);
        }
        let mut foreground =
            self.detector
                .take(interval.seconds, interval.counts, before == Allowed::All);
        // Little's law: the kernel does not report for how long the foreground's requests were outstanding. Without
        // probes, the latency of own requests is used instead.
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

    /// If there was a foreground from the start, estimates the device's rate and the device time of a background
    /// request. A request gets at least as many bytes per second as a page, and takes at most the recent minimum
    /// latency of own requests, when it was alone on the device. Until the first request has completed, a page's
    /// latency is used instead.
    fn estimate(&mut self, interval: &MeasuredInterval<'_>) {
        if let (ControllerStage::Learning(_), Some(mean_s)) =
            (self.controller.phase(), self.controller.mean_s())
        {
            self.controller
                .set_min_device_rate(f64::from(PROBE_BYTES) / mean_s);
            self.controller.request_takes(mean_s.min(MAX_REQUEST_S));
        }
        let least_s = self
            .own_latency
            .take(interval.seconds, interval.own_latency_s);
        if let Some(least_s) = least_s {
            self.controller.request_takes(least_s.min(MAX_REQUEST_S));
            self.controller
                .set_estimated_device_rate(interval.request.0 as f64 / least_s);
        }
    }

    /// Report of the foreground; `None` if there was none.
    pub fn foreground(&self) -> Option<ForegroundReport> {
        ForegroundReport::of(&self.controller.outcome())
    }

    /// Latency and target of the foreground as text; `None` while there is no foreground.
    pub fn live(&self) -> Option<String> {
        super::foreground::live(&self.controller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::REQUEST_SIZE_BESIDE_FOREGROUND;

    /// An interval with a foreground from the start, whose requests take `latency_s` seconds.
    fn beside(latency_s: &f64) -> MeasuredInterval<'_> {
        MeasuredInterval {
            seconds: 0.04,
            counts: None,
            commits: false,
            latencies_s: std::slice::from_ref(latency_s),
            waiting_s: 0.0,
            background: 0.0,
            is_busy: false,
            request: REQUEST_SIZE_BESIDE_FOREGROUND,
            own_latency_s: None,
        }
    }

    /// The initial rate, in bytes per second.
    fn begins_with(latency_s: f64) -> f64 {
        let mut pacer = Pacer::new(Targets::default());
        for _ in 0..1000 {
            if let Allowed::Rate(rate) = pacer.take(&beside(&latency_s)) {
                return rate;
            }
        }
        panic!("it is never allowed anything");
    }

    #[test]
    fn the_search_begins_with_a_fiftieth_of_what_one_page_after_the_other_gives() {
        for (latency_s, per_s) in [(0.000_1, 819_200.0), (0.001, 81_920.0), (0.1, 65_536.0)] {
            let rate = begins_with(latency_s);
            assert!((rate / per_s - 1.0).abs() < 1e-6, "{rate}");
        }
    }

    #[test]
    fn with_a_foreground_from_the_start_own_requests_tell_what_one_takes() {
        let mut pacer = Pacer::new(Targets::default());
        let mut pauses = 0;
        while pauses < 2 {
            let before = pacer.allowed();
            let works = before != Allowed::Nothing;
            let allowed = pacer.take(&MeasuredInterval {
                background: if works {
                    REQUEST_SIZE_BESIDE_FOREGROUND.0 as f64
                } else {
                    0.0
                },
                own_latency_s: works.then_some(0.000_6),
                ..beside(&0.001)
            });
            pauses += u32::from(works && allowed == Allowed::Nothing);
        }
        let (targets, _) = pacer.controller().targets().unwrap();
        assert!(targets.p99_s.unwrap() <= 0.001_6 + 1e-9, "{targets:?}");
        assert!(pacer.foreground().unwrap().device_share.is_some());
    }

    #[test]
    fn a_slow_start_is_soon_outweighed() {
        let mut pacer = Pacer::new(Targets::default());
        let mut alone = 0;
        while alone < 10 {
            let is_alone = pacer.allowed() == Allowed::All;
            let bytes = match (is_alone, alone) {
                (false, _) => 0.0,
                (true, 0) => 1e3,
                (true, _) => 4e6,
            };
            pacer.take(&MeasuredInterval {
                counts: Some(IoCounts {
                    read: bytes,
                    own: bytes,
                    ..IoCounts::default()
                }),
                latencies_s: &[],
                background: bytes,
                ..beside(&0.0)
            });
            alone += u32::from(is_alone);
        }
        assert!(
            pacer.device_rate.unwrap() > 0.85 * 1e8,
            "{:?}",
            pacer.device_rate
        );
    }
}
