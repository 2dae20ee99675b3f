//! The rate that a disk's requests keep to, and their size beside a foreground.

use std::ops::Range;

use engine::list::{Op, Request};
use reader::RateLimiter;
use record::{Bytes, Nanos};
use study::pace::Allowed;

use super::foreground::Throttle;
use super::state::POLL;

/// The most time to make up for after a delay, without a foreground: the limit is reached also on a host that
/// hesitates.
const MAX_CATCH_UP: Nanos = Nanos(100_000_000);

/// Keeps to so many bytes a second.
#[derive(Debug)]
pub(crate) struct Limiter<'a> {
    per_second: Option<Bytes>,
    throttle: Option<&'a Throttle>,
    limiter: RateLimiter,
}

impl<'a> Limiter<'a> {
    /// Limits the rate to `per_second` and what the throttle allows; without both it never delays anything.
    pub(crate) fn new(per_second: Option<Bytes>, throttle: Option<&'a Throttle>) -> Limiter<'a> {
        Limiter {
            per_second,
            throttle,
            limiter: RateLimiter::default(),
        }
    }

    /// Time until which to wait; `None` when the next request may be issued.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Nanos> {
        let closed = self.throttle.and_then(|throttle| throttle.rate(now).err());
        let due = self.limiter.due(self.rate(now));
        let until = closed.unwrap_or_default().max(due);
        // By then the rate may be another one.
        (until > now).then_some(until.min(now + Nanos::from(POLL)))
    }

    /// Bytes a second of the limit, or of what the foreground leaves if that is less.
    fn rate(&self, now: Nanos) -> Option<f64> {
        let left = self
            .throttle
            .and_then(|throttle| throttle.rate(now).ok().flatten());
        let limit = self.per_second.map(|limit| limit.0 as f64);
        left.into_iter().chain(limit).reduce(f64::min)
    }

    /// Size of the pieces that the device zeroes by itself, at most `largest`: beside a foreground no more than it
    /// may zero in a tenth of a second, since a piece is not interrupted.
    pub(crate) fn piece(&self, largest: Bytes) -> Bytes {
        const OF_A_SECOND: f64 = 0.1;
        let allowed = self.throttle.map(Throttle::allowed);
        match allowed {
            Some(Allowed::Rate(rate)) => Bytes((OF_A_SECOND * rate) as u64)
                .round_down(Bytes::MIB)
                .clamp(Bytes::MIB, largest),
            Some(Allowed::All) | None => largest,
            Some(Allowed::Nothing) => Bytes::MIB.min(largest),
        }
    }

    /// True beside a foreground, or while there may be one.
    pub(crate) fn is_beside(&self) -> bool {
        let allowed = self.throttle.map(Throttle::allowed);
        allowed.is_some_and(|allowed| allowed != Allowed::All)
    }

    /// Size of a request, at most `largest`: a foreground request may have to wait for the rest of one.
    pub(crate) fn request_size(&self, largest: Bytes) -> Bytes {
        match self.is_beside() {
            true => largest.min(reader::REQUEST_SIZE_BESIDE_FOREGROUND),
            false => largest,
        }
    }

    /// Notes bytes that have completed, and after how long if that tells what a write takes.
    pub(crate) fn done(&self, bytes: Bytes, latency: Option<Nanos>) {
        if let Some(throttle) = self.throttle {
            throttle.done(bytes, latency);
        }
    }

    /// Notes bytes that were issued.
    pub(crate) fn issued(&mut self, now: Nanos, bytes: Bytes) {
        if let Some(throttle) = self.throttle {
            throttle.issued(bytes);
        }
        let rate = self.rate(now);
        match self.is_beside() {
            true => self.limiter.issued(now, bytes, rate),
            false => (self.limiter).issued_making_up(now, bytes, rate, MAX_CATCH_UP),
        }
    }

    /// The request for a range, which is issued now. A range is at most as long as the largest
    /// piece, which is far below 4 GiB.
    pub(crate) fn request(&mut self, now: Nanos, range: Range<u64>) -> Request {
        self.issued(now, Bytes(range.end - range.start));
        Request::of(Op::Write, &range, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(10);
    const MS: Nanos = Nanos(1_000_000);

    /// A rate of one small request each millisecond.
    fn one_each_ms() -> Throttle {
        let throttle = Throttle::new();
        throttle.allow(Allowed::Rate(
            1000.0 * reader::REQUEST_SIZE_BESIDE_FOREGROUND.0 as f64,
        ));
        throttle
    }

    #[test]
    fn beside_a_foreground_requests_are_small_and_after_a_pause_not_many_at_once() {
        let throttle = one_each_ms();
        let mut limiter = Limiter::new(None, Some(&throttle));
        let size = limiter.request_size(Bytes::MIB);
        assert_eq!(size, reader::REQUEST_SIZE_BESIDE_FOREGROUND);
        for turn in [NOW, NOW + NOW] {
            let mut at_once = 0;
            while limiter.wait(turn).is_none() {
                limiter.issued(turn, size);
                at_once += 1;
            }
            assert_eq!(at_once, 2);
            assert_eq!(limiter.wait(turn), Some(turn + MS));
        }
        throttle.allow(Allowed::Nothing);
        assert!(limiter.wait(NOW + NOW + NOW).is_some());
        throttle.allow(Allowed::All);
        assert_eq!(limiter.wait(NOW + NOW), None);
        assert_eq!(limiter.request_size(Bytes::MIB), Bytes::MIB);
    }

    #[test]
    fn a_limit_without_a_foreground_is_caught_up_with_after_a_delay() {
        let mut limiter = Limiter::new(Some(Bytes::mib(100)), None);
        let mut issued = 0;
        for now in [NOW, NOW + MS + MS, NOW + Nanos(80 * MS.0)] {
            while limiter.wait(now).is_none() {
                limiter.issued(now, Bytes::MIB);
                issued += 1;
            }
        }
        // At first those of 100 ms and one more; then those of 80 ms.
        assert_eq!(issued, 11 + 8);
    }

    #[test]
    fn a_large_piece_without_a_foreground_does_not_delay_the_next_beside_one() {
        let throttle = Throttle::new();
        throttle.allow(Allowed::All);
        let mut limiter = Limiter::new(None, Some(&throttle));
        limiter.issued(NOW, Bytes::mib(64));
        throttle.allow(Allowed::Rate(Bytes::MIB.0 as f64));
        assert_eq!(limiter.wait(NOW), None);
    }
}
