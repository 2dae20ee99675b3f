//! Limits the rate of background requests.

use record::{Bytes, Nanos};

/// Maximum time that is made up for after a delay, and at most that of one request: a burst of requests would delay a
/// foreground by all of them.
const MAX_CATCH_UP: Nanos = Nanos(50_000_000);

/// Spaces requests at a rate that may change from one request to the next. The caller supplies the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateLimiter {
    /// Time from which the last request counts, and its bytes. The next request is due when these bytes have taken
    /// their time at the rate of that moment: a request that a low rate has delayed does not keep waiting at a higher
    /// rate.
    last: (Nanos, Bytes),
}

impl RateLimiter {
    /// Time at which the next request may be issued at this rate; a rate of `None` is no limit.
    pub fn due(&self, bytes_per_s: Option<f64>) -> Nanos {
        let (since, bytes) = self.last;
        since + takes(bytes, bytes_per_s)
    }

    /// Records the issue of a request of `bytes` while there is a foreground.
    pub fn issued(&mut self, now: Nanos, bytes: Bytes, bytes_per_s: Option<f64>) {
        let made_up = MAX_CATCH_UP.min(takes(bytes, bytes_per_s));
        self.issued_making_up(now, bytes, bytes_per_s, made_up);
    }

    /// Records the issue of a request of `bytes`; after a delay, at most `made_up` is made up for. Requests issued
    /// without a limit do not delay later ones.
    pub fn issued_making_up(
        &mut self,
        now: Nanos,
        bytes: Bytes,
        bytes_per_s: Option<f64>,
        made_up: Nanos,
    ) {
        self.last = match bytes_per_s {
            Some(_) => (self.due(bytes_per_s).max(now - made_up), bytes),
            None => (self.last.0.max(now), Bytes(0)),
        };
    }
}

/// Time that `bytes` take at a rate; 0 without a limit.
fn takes(bytes: Bytes, bytes_per_s: Option<f64>) -> Nanos {
    bytes_per_s.map_or(Nanos(0), |rate| Nanos((bytes.0 as f64 * 1e9 / rate) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos(1_000_000);
    const LATER: Nanos = Nanos::from_secs(10);

    #[test]
    fn requests_are_apart_by_their_time_and_after_a_pause_one_is_made_up_for() {
        let one_each_ms = Some(1e6);
        let mut limiter = RateLimiter::default();
        for now in [LATER, LATER + LATER] {
            let mut at_once = 0;
            while limiter.due(one_each_ms) <= now {
                limiter.issued(now, Bytes(1000), one_each_ms);
                at_once += 1;
            }
            assert_eq!(at_once, 2);
            assert_eq!(limiter.due(one_each_ms), now + MS);
        }
    }

    #[test]
    fn what_a_low_rate_put_off_does_not_wait_on_at_a_higher_one() {
        let mut limiter = RateLimiter::default();
        limiter.issued(LATER, Bytes(1000), Some(1.0));
        assert!(limiter.due(Some(1.0)) > LATER + LATER);
        assert!(limiter.due(Some(1e6)) <= LATER + MS);
        assert!(limiter.due(None) <= LATER);
    }

    #[test]
    fn what_was_issued_without_a_limit_is_not_waited_for_under_one() {
        let mut limiter = RateLimiter::default();
        limiter.issued(LATER, Bytes::mib(64), None);
        assert_eq!(limiter.due(Some(1.0)), LATER);
    }
}
