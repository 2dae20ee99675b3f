//! Limit of the rate of a disk's requests, and of their size beside a foreground.

use std::ops::Range;

use engine::list::{Op, Request};
use reader::RateLimiter;
use record::{Bytes, Nanos};
use study::pace::Allowed;

use super::foreground::Throttle;
use super::state::POLL;

/// Maximum time that requests may make up for after a delay, without a foreground, so that the limit is reached also on
/// a host that stalls now and then.
const MAX_CATCH_UP: Nanos = Nanos(100_000_000);

/// Limiter of the rate and the size of requests to a disk.
#[derive(Debug)]
pub(crate) struct Limiter<'a> {
    per_second: Option<Bytes>,
    throttle: Option<&'a Throttle>,
    limiter: RateLimiter,
}

impl<'a> Limiter<'a> {
    /// A limiter to `per_second` bytes a second and to the rate that the throttle allows; without both, nothing is
    /// delayed.
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
        // The rate may change meanwhile.
        (until > now).then_some(until.min(now + Nanos::from(POLL)))
    }

    /// The lower of the limit and the rate that the foreground allows, in bytes a second; `None` without either.
    fn rate(&self, now: Nanos) -> Option<f64> {
        let left = self
            .throttle
            .and_then(|throttle| throttle.rate(now).ok().flatten());
        let limit = self.per_second.map(|limit| limit.0 as f64);
        left.into_iter().chain(limit).reduce(f64::min)
    }

    /// Size of a piece that the device zeroes itself, at most `largest`. Beside a foreground it is at most a tenth of a
    /// second's work at the allowed rate, but at least 1 MiB, since a piece is not interrupted.
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

    /// True while the rate is limited because of a foreground, or because one may exist.
    pub(crate) fn is_beside(&self) -> bool {
        let allowed = self.throttle.map(Throttle::allowed);
        allowed.is_some_and(|allowed| allowed != Allowed::All)
    }

    /// Size of a request, at most `largest`. It is smaller beside a foreground, whose requests may have to wait for the
    /// rest of one.
    pub(crate) fn request_size(&self, largest: Bytes) -> Bytes {
        match self.is_beside() {
            true => largest.min(reader::REQUEST_SIZE_BESIDE_FOREGROUND),
            false => largest,
        }
    }

    /// Notes bytes that have completed. `latency` is that of the write, where there is a single one.
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

    /// The write of a range, noted as issued at `now`. A range is at most as long as the largest piece, far below 4
    /// GiB.
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

    /// A throttle that allows one small request each millisecond.
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
        // First the requests of 100 ms and one more; then those of 80 ms.
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
