//! Counts of completions, for the queue depth, the progress line and the answer.

use record::{Bytes, Nanos};
use study::depth;

/// Minimum length of an interval from which the queue depth is determined.
const INTERVAL: Nanos = Nanos(100_000_000);
/// Approximate time in seconds over which the displayed rate is averaged.
const RECENT_S: f64 = 10.0;

/// Counts requests and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    in_flight: u32,
    /// Start of the interval, and time up to which `area` counts.
    since: Nanos,
    counted: Nanos,
    /// Requests in flight times nanoseconds.
    area: f64,
    requests: u64,
    bytes: u64,
    latency_s: f64,
    /// Recent rate in bytes per second, and the seconds over which it was averaged.
    recent: Option<(f64, f64)>,
}

impl Meter {
    /// Number of requests in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Records the issue of a request.
    pub fn issued(&mut self, now: Nanos) {
        self.count(now);
        self.in_flight += 1;
    }

    /// Records the completion of a request of `bytes`.
    pub fn note_completed(&mut self, now: Nanos, bytes: Bytes, latency: Nanos) {
        self.count(now);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.requests += 1;
        self.bytes += bytes.0;
        self.latency_s += latency.as_secs_f64();
    }

    fn count(&mut self, now: Nanos) {
        self.area += f64::from(self.in_flight) * (now - self.counted).0 as f64;
        self.counted = self.counted.max(now);
    }

    /// The interval, if it is long enough; then the next one begins.
    pub fn interval(&mut self, now: Nanos) -> Option<depth::DepthInterval> {
        let passed = now - self.since;
        if passed < INTERVAL {
            return None;
        }
        self.count(now);
        let seconds = passed.as_secs_f64();
        let interval = depth::DepthInterval {
            seconds,
            in_flight: self.area / passed.0 as f64,
            requests: self.requests as f64,
            bytes: self.bytes as f64,
            latency_s: self.latency_s / self.requests.max(1) as f64,
        };
        let rate = interval.bytes / seconds;
        let (old, counted_s) = self.recent.unwrap_or((0.0, 0.0));
        // At first all intervals have equal weight, so that a slow start is soon outweighed.
        let weight = (seconds / (counted_s + seconds))
            .max(seconds / RECENT_S)
            .min(1.0);
        self.recent = Some((old + (rate - old) * weight, counted_s + seconds));
        *self = Meter {
            in_flight: self.in_flight,
            since: now,
            counted: now,
            recent: self.recent,
            ..Meter::default()
        };
        Some(interval)
    }

    /// Discards the measurements so far.
    pub fn forget(&mut self) {
        self.recent = None;
    }

    /// Recent rate, in bytes per second.
    pub fn recent_rate(&self) -> Option<f64> {
        self.recent.map(|(rate, _)| rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_interval_has_what_came_back_in_it_and_what_was_in_flight() {
        let mut meter = Meter::default();
        meter.issued(Nanos(0));
        meter.issued(Nanos(50 * MS));
        assert!(meter.interval(Nanos(99 * MS)).is_none());
        meter.note_completed(Nanos(100 * MS), Bytes(1000), Nanos(100 * MS));
        let interval = meter.interval(Nanos(200 * MS)).unwrap();
        assert!((interval.in_flight - 1.25).abs() < 1e-9, "{interval:?}");
        assert_eq!((interval.requests, interval.bytes), (1.0, 1000.0));
        assert!((interval.latency_s - 0.1).abs() < 1e-9);
        assert_eq!(meter.recent_rate(), Some(5000.0));
        // The next one knows what is still in flight.
        assert_eq!(meter.in_flight(), 1);
        let interval = meter.interval(Nanos(300 * MS)).unwrap();
        assert!((interval.in_flight - 1.0).abs() < 1e-9);
        assert_eq!(interval.requests, 0.0);
        let average = meter.recent_rate().unwrap();
        assert!((average - 1000.0 / 0.3).abs() < 1e-6, "{average}");
    }
}
