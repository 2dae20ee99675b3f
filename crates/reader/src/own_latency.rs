//! Latency of own requests beside a foreground, which tells what one takes of the device.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use record::{Bytes, Nanos};

/// Size of a background request beside a foreground, which may wait for the rest of one. On a volume with a cap of
/// 3,000 IOPS and 125 MiB/s it occupies half a millisecond, and 512 KiB four. Smaller ones would take more of the IOPS
/// than of the bytes.
pub const REQUEST_SIZE_BESIDE_FOREGROUND: Bytes = Bytes::kib(64);

/// The least latency of own requests counts for so many seconds.
const COUNTS_S: f64 = 10.0;

/// Least latency of the own requests of an interval, which other threads may note.
#[derive(Debug)]
pub struct LeastLatency(AtomicU64);

impl Default for LeastLatency {
    fn default() -> LeastLatency {
        LeastLatency(AtomicU64::new(u64::MAX))
    }
}

impl LeastLatency {
    /// Takes the latency of a request, if it was `whole`: as long as one beside a foreground. One that failed has
    /// none.
    pub fn note(&self, bytes: Bytes, whole: Bytes, latency: Option<Nanos>) {
        if let Some(latency) = latency.filter(|_| bytes >= whole) {
            self.0.fetch_min(latency.0, Relaxed);
        }
    }

    /// The least since the last call, in seconds; `None` where there was no request.
    pub fn take(&self) -> Option<f64> {
        let least = Nanos(self.0.swap(u64::MAX, Relaxed));
        (least.0 < u64::MAX).then(|| least.as_secs_f64())
    }
}

/// Least recent latency of own requests: that of a request which was alone on the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnLatency {
    /// The least latency and its age, both in seconds.
    least: Option<(f64, f64)>,
}

impl OwnLatency {
    /// Takes the least latency of an interval of so many seconds, and gives the least recent one, in seconds.
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
