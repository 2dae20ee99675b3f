//! Rate of a volume while all volumes are read together.

use record::Nanos;

/// Interval at which the device is polled and progress is reported.
pub(super) const POLL_EVERY: Nanos = Nanos(250_000_000);
/// Time after which the common rate counts, and for which it must last.
const SETTLE_TIME: Nanos = Nanos(2_000_000_000);
/// See [`SETTLE_TIME`].
const MIN_COMMON_TIME: Nanos = Nanos(2_000_000_000);

/// Bytes that arrived while all volumes were read together, from a little after that began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CombinedRate {
    since: Option<Nanos>,
    until: Nanos,
    bytes: u64,
}

impl CombinedRate {
    /// Notes that all volumes are read together now.
    pub(super) fn note_together(&mut self, now: Nanos) {
        self.since.get_or_insert(now + SETTLE_TIME);
        self.until = now;
    }

    /// Counts bytes that arrived.
    pub(super) fn note_completed(&mut self, now: Nanos, bytes: u64) {
        // Once one of them has ended it does not go on any more.
        let lasts = self.since.is_some_and(|since| now >= since);
        if lasts && now - self.until <= POLL_EVERY {
            self.bytes += bytes;
        }
    }

    /// Bytes a second; `None` where it did not last.
    pub(super) fn rate(&self) -> Option<f64> {
        let lasted = self.until - self.since?;
        (lasted >= MIN_COMMON_TIME && self.bytes > 0)
            .then(|| self.bytes as f64 / lasted.as_secs_f64())
    }
}
