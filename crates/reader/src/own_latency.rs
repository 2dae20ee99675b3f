//! Latency of own requests while there is a foreground: an estimate of the device time that one takes.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use record::{Bytes, Nanos};

/// Size of a background request while there is a foreground, whose requests may have to wait for its completion. On a
/// volume with a cap of 3,000 IOPS and 125 MiB/s, it occupies half a millisecond, and 512 KiB four milliseconds.
/// Smaller requests would use up the IOPS cap before the throughput cap.
pub const REQUEST_SIZE_BESIDE_FOREGROUND: Bytes = Bytes::kib(64);

/// Time in seconds for which the minimum latency of own requests is valid.
const COUNTS_S: f64 = 10.0;

/// Minimum latency of own requests in an interval, recorded from any thread.
#[derive(Debug)]
pub struct LeastLatency(AtomicU64);

impl Default for LeastLatency {
    fn default() -> LeastLatency {
        LeastLatency(AtomicU64::new(u64::MAX))
    }
}

impl LeastLatency {
    /// Records the latency of a request if it has at least `whole` bytes; `None` for a request that failed.
    pub fn note(&self, bytes: Bytes, whole: Bytes, latency: Option<Nanos>) {
        if let Some(latency) = latency.filter(|_| bytes >= whole) {
            self.0.fetch_min(latency.0, Relaxed);
        }
    }

    /// Minimum since the last call, in seconds; `None` if there was no request.
    pub fn take(&self) -> Option<f64> {
        let least = Nanos(self.0.swap(u64::MAX, Relaxed));
        (least.0 < u64::MAX).then(|| least.as_secs_f64())
    }
}

/// Minimum recent latency of own requests: that of a request which was probably alone on the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnLatency {
    /// The minimum latency and its age, both in seconds.
    least: Option<(f64, f64)>,
}

impl OwnLatency {
    /// Adds the minimum latency of an interval of `seconds`, and returns the recent minimum, in seconds.
    pub(crate) fn take(&mut self, seconds: f64, least_s: Option<f64>) -> Option<f64> {
        if let Some((_, age_s)) = &mut self.least {
            *age_s += seconds;
        }
        let counts = |own_s: &f64| {
            let is_old = |(least_s, age_s)| *own_s <= least_s || age_s > COUNTS_S;
            self.least.is_none_or(is_old)
        };
        if let Some(own_s) = least_s.filter(counts) {
            self.least = Some((own_s, 0.0));
        }
        self.least.map(|least| least.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_whole_requests_counts_for_ten_seconds() {
        let noted = LeastLatency::default();
        assert_eq!(noted.take(), None);
        noted.note(
            Bytes(4096),
            REQUEST_SIZE_BESIDE_FOREGROUND,
            Some(Nanos(1000)),
        );
        noted.note(
            REQUEST_SIZE_BESIDE_FOREGROUND,
            REQUEST_SIZE_BESIDE_FOREGROUND,
            None,
        );
        noted.note(
            REQUEST_SIZE_BESIDE_FOREGROUND,
            REQUEST_SIZE_BESIDE_FOREGROUND,
            Some(Nanos(3_000_000)),
        );
        noted.note(
            REQUEST_SIZE_BESIDE_FOREGROUND,
            REQUEST_SIZE_BESIDE_FOREGROUND,
            Some(Nanos(2_000_000)),
        );
        assert_eq!((noted.take(), noted.take()), (Some(0.002), None));
        let mut own = OwnLatency::default();
        assert_eq!(own.take(1.0, None), None);
        assert_eq!(own.take(1.0, Some(0.002)), Some(0.002));
        assert_eq!(own.take(9.0, Some(0.003)), Some(0.002));
        assert_eq!(own.take(1.1, Some(0.003)), Some(0.003));
    }
}
