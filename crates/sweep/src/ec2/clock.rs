//! Time that passes while EC2 is waited for, which tests simulate.

use std::time::{Duration, Instant};

/// A clock.
pub(crate) trait Clock {
    /// Time since some moment.
    fn now(&self) -> Duration;
    /// Lets time pass.
    fn pause(&mut self, span: Duration);
}

/// The host's.
pub(crate) struct HostClock(Instant);

impl HostClock {
    pub(crate) fn start() -> HostClock {
        HostClock(Instant::now())
    }
}

impl Clock for HostClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn pause(&mut self, span: Duration) {
        std::thread::sleep(span);
    }
}
