//! Intervals at one depth, summed until they are long enough for a comparison.

/// Minimum share of the wanted depth that must have been in flight.
const IN_FLIGHT: f64 = 0.7;
/// Time after a change of the depth that is not measured, as a multiple of the mean latency, until earlier requests
/// have completed.
const SETTLE_LATENCIES: f64 = 1.5;
/// Minimum length of a window in mean latencies, so that whole rounds of requests are counted.
const MIN_LATENCIES: f64 = 3.0;
/// Weight of a new window against those before it.
const NEW_WINDOW_WEIGHT: f64 = 0.3;

/// Result of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthInterval {
    /// Length, in seconds.
    pub seconds: f64,
    /// Requests in flight, on average.
    pub in_flight: f64,
    /// Requests completed.
    pub requests: f64,
    /// Bytes completed.
    pub bytes: f64,
    /// Mean latency of the completed requests in seconds; zero if there were none.
    pub latency_s: f64,
}

impl DepthInterval {
    fn is_sensible(&self) -> bool {
        let positive = [self.requests, self.bytes, self.latency_s];
        self.seconds > 0.0
            && self.seconds.is_finite()
            && self.in_flight.is_finite()
            && positive.iter().all(|x| *x >= 0.0 && x.is_finite())
    }
}

/// Results at one depth while it was held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Requests to keep in flight.
    pub depth: usize,
    /// Bytes a second; positive.
    pub bytes_per_s: f64,
    /// Requests a second; positive.
    pub requests_per_s: f64,
    /// The mean latency in seconds, by Little's law from the requests in flight.
    pub latency_s: f64,
}

impl Window {
    /// Mean of this and a newer window of the same depth.
    pub(super) fn averaged(&self, newer: &Window) -> Window {
        self.mixed(newer, NEW_WINDOW_WEIGHT)
    }

    /// Weighted mean of both, with this share of the newer one.
    pub(super) fn mixed(&self, newer: &Window, share: f64) -> Window {
        let mix = |old: f64, new: f64| old + share * (new - old);
        Window {
            depth: self.depth,
            bytes_per_s: mix(self.bytes_per_s, newer.bytes_per_s),
            requests_per_s: mix(self.requests_per_s, newer.requests_per_s),
            latency_s: mix(self.latency_s, newer.latency_s),
        }
    }
}

/// The summed intervals of an unfinished window.
#[derive(Clone, Debug)]
pub(super) struct GatheredIntervals {
    /// Seconds that are still to be ignored.
    unsettled_s: f64,
    least_s: f64,
    least_requests: f64,
    seconds: f64,
    requests: f64,
    bytes: f64,
    /// Requests in flight times seconds.
    in_flight: f64,
}

impl GatheredIntervals {
    /// A window that is long enough to detect the gain of a doubling. `latency_s` is the latency before the change.
    pub(super) fn brief(latency_s: f64) -> GatheredIntervals {
        GatheredIntervals::of(latency_s, 0.2, 30.0)
    }

    /// A window that is long enough to detect a difference of one percent.
    pub(super) fn careful(latency_s: f64) -> GatheredIntervals {
        GatheredIntervals::of(latency_s, 1.0, 100.0)
    }

    fn of(latency_s: f64, least_s: f64, least_requests: f64) -> GatheredIntervals {
        GatheredIntervals {
            unsettled_s: SETTLE_LATENCIES * latency_s,
            least_s,
            least_requests,
            seconds: 0.0,
            requests: 0.0,
            bytes: 0.0,
            in_flight: 0.0,
        }
    }

    /// Adds an interval, and returns the window when it is long enough; the next window begins then.
    pub(super) fn add(&mut self, interval: &DepthInterval, depth: usize) -> Option<Window> {
        if !interval.is_sensible() {
            return None;
        }
        if self.unsettled_s > 0.0 {
            self.unsettled_s -= interval.seconds;
            return None;
        }
        if interval.in_flight < IN_FLIGHT * depth as f64 {
            return None;
        }
        self.seconds += interval.seconds;
        self.requests += interval.requests;
        self.bytes += interval.bytes;
        self.in_flight += interval.in_flight * interval.seconds;
        let window = Window {
            depth,
            bytes_per_s: self.bytes / self.seconds,
            requests_per_s: self.requests / self.seconds,
            latency_s: self.in_flight / self.requests,
        };
        let sensible = [window.bytes_per_s, window.requests_per_s, window.latency_s];
        let long_enough = self.seconds >= self.least_s.max(MIN_LATENCIES * window.latency_s)
            && self.requests >= self.least_requests;
        if !long_enough || !sensible.iter().all(|x| *x > 0.0 && x.is_finite()) {
            return None;
        }
        *self = GatheredIntervals::of(0.0, self.least_s, self.least_requests);
        Some(window)
    }
}
