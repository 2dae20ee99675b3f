//! Rate of a volume while all volumes are read together.

use record::Nanos;

/// Interval at which the device is polled and progress is reported.
pub(super) const POLL_EVERY: Nanos = Nanos(250_000_000);
/// Time from the start of the common reading until its rate is measured.
const SETTLE_TIME: Nanos = Nanos(2_000_000_000);
/// Minimum time for which the common rate must be measured.
const MIN_COMMON_TIME: Nanos = Nanos(2_000_000_000);

/// Counter of the bytes that arrived while all volumes were read together, after [`SETTLE_TIME`].
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
        // The common reading is over once one of the volumes has ended.
        let lasts = self.since.is_some_and(|since| now >= since);
        if lasts && now - self.until <= POLL_EVERY {
            self.bytes += bytes;
        }
    }

    /// Rate in bytes a second; `None` where the common reading was too short.
    pub(super) fn rate(&self) -> Option<f64> {
        let lasted = self.until - self.since?;
        (lasted >= MIN_COMMON_TIME && self.bytes > 0)
            .then(|| self.bytes as f64 / lasted.as_secs_f64())
    }
}
