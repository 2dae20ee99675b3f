//! Limit of the rate that all devices share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use record::{Bytes, Nanos};

/// Maximum time that requests may make up for after a pause.
const MAX_CATCH_UP: Nanos = Nanos(50_000_000);

/// A limit of the rate of all devices together. All requests are queued in one line, in the order of their issue: the
/// devices share the rate equally, and the share that a device cannot use is available to the others.
#[derive(Debug)]
pub(crate) struct SharedRateLimit {
    bytes_per_s: Option<Bytes>,
    /// Origin of the limit's clock.
    epoch: Instant,
    /// Time at which the rate allows the next request, in nanoseconds since the origin.
    not_before: AtomicU64,
}

impl SharedRateLimit {
    /// A limit in bytes a second; `None` for no limit.
    pub(crate) fn new(bytes_per_s: Option<Bytes>) -> SharedRateLimit {
        SharedRateLimit {
            bytes_per_s: bytes_per_s.filter(|rate| rate.0 > 0),
            epoch: Instant::now(),
            not_before: AtomicU64::new(0),
        }
    }

    /// Current time of the limit's clock: the offset of a clock that starts now.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Notes that a request of so many bytes is issued. Returns the time at which the same device may issue its next
    /// one.
    pub(crate) fn note_issued(&self, now: Nanos, bytes: Bytes) -> Nanos {
        let Some(rate) = self.bytes_per_s else {
            return Nanos(0);
        };
        let takes = Nanos((bytes.0 as f64 / rate.0 as f64 * 1e9) as u64);
        let after = |before: u64| Nanos(before).max(now - MAX_CATCH_UP) + takes;
        let later = |before: u64| Some(after(before).0);
        let before = self.not_before.fetch_update(Relaxed, Relaxed, later);
        // `later` always returns a value, so that `fetch_update` always succeeds.
        after(before.unwrap_or_else(|same| same))
    }
}
