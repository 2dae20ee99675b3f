//! Times of polls.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum delay after which a signal is noticed.
const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// Ticks at a constant interval, which does not depend on the duration of polls.
pub(super) struct Ticks {
    period: Duration,
    next: Instant,
}

impl Ticks {
    /// Ticks with this period. The first is one period from now.
    pub(super) fn every(period: Duration) -> Ticks {
        Ticks {
            period,
            next: Instant::now() + period,
        }
    }

    /// Waits for the next tick; false if it was interrupted. Missed ticks, as while the process was stopped, are
    /// skipped.
    pub(super) fn wait(&mut self, interrupt: &AtomicBool) -> bool {
        while !interrupt.load(Relaxed) {
            let now = Instant::now();
            if now >= self.next {
                let late = (now - self.next).as_nanos() / self.period.as_nanos().max(1);
                let missed = u32::try_from(late).unwrap_or(u32::MAX);
                self.next += self.period * missed.saturating_add(1);
                return true;
            }
            thread::sleep((self.next - now).min(SIGNAL_POLL));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_that_were_missed_are_left_out() {
        let period = Duration::from_millis(20);
        let mut ticks = Ticks::every(period);
        thread::sleep(5 * period);
        let go = AtomicBool::new(false);
        let began = Instant::now();
        assert!(ticks.wait(&go));
        assert!(ticks.next > began - period);
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let mut ticks = Ticks::every(Duration::from_secs(3600));
        assert!(!ticks.wait(&AtomicBool::new(true)));
    }
}
