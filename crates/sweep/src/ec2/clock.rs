//! The clock of waits for EC2, which tests simulate.

use std::time::{Duration, Instant};

/// Clock of a sweep, which tests simulate.
pub(crate) trait SweepClock {
    /// Time since an arbitrary start.
    fn now(&self) -> Duration;
    /// Waits.
    fn pause(&mut self, span: Duration);
}

/// The host's monotonic clock.
pub(crate) struct HostClock(Instant);

impl HostClock {
    pub(crate) fn start() -> HostClock {
        HostClock(Instant::now())
    }
}

impl SweepClock for HostClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn pause(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
}
