//! Waits of a pipeline, and its clock.

use std::time::Duration;

use jiff::Timestamp;

use crate::level::Seconds;

/// Maximum wait for a source, so that a timer or a stop is noticed.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Maximum wait before a source or a store that is down is tried again.
pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The current time.
pub fn now() -> Seconds {
    Timestamp::now().as_second()
}
