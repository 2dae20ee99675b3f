//! Waits of a pipeline, and its clock.

use std::time::Duration;

use jiff::Timestamp;

use crate::level::Seconds;

/// The longest wait for a source, so that a timer or a stop is seen.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The longest wait before a source that is down, or a store, is tried again.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Moment in seconds.
pub fn now() -> Seconds {
    Timestamp::now().as_second()
}
