//! Limit of the rate that all devices share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use record::{Bytes, Nanos};

/// The most time to make up for after a pause.
const MAX_CATCH_UP: Nanos = Nanos(50_000_000);

/// A rate that all devices keep to together. Each takes its place in one line behind what all have asked
/// for so far: they read by turns, and what one of them cannot use is the others'.
#[derive(Debug)]
pub(crate) struct SharedRateLimit {
    bytes_per_s: Option<Bytes>,
    /// Origin of its times.
    epoch: Instant,
    /// Time at which the requests so far are paid for by the rate, in nanoseconds since the origin.
    not_before: AtomicU64,
}

impl SharedRateLimit {
    /// A limit of so many bytes a second; `None` for no limit.
    pub(crate) fn new(bytes_per_s: Option<Bytes>) -> SharedRateLimit {
        SharedRateLimit {
            bytes_per_s: bytes_per_s.filter(|rate| rate.0 > 0),
            epoch: Instant::now(),
            not_before: AtomicU64::new(0),
        }
    }

    /// The time of now: what a clock that starts now is behind by.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A request of so many bytes goes; the next one of the same device may go at the time that this
    /// gives.
    pub(crate) fn note_issued(&self, now: Nanos, bytes: Bytes) -> Nanos {
        let Some(rate) = self.bytes_per_s else {
            return Nanos(0);
        };
        let takes = Nanos((bytes.0 as f64 / rate.0 as f64 * 1e9) as u64);
        let after = |before: u64| Nanos(before).max(now - MAX_CATCH_UP) + takes;
        let later = |before: u64| Some(after(before).0);
        let before = self.not_before.fetch_update(Relaxed, Relaxed, later);
        // The function always gives a value, so that both are the same.
        after(before.unwrap_or_else(|same| same))
    }
}
