//! Token buckets.

use record::Nanos;

/// Time for which a cap keeps unused rate, in seconds. Long enough that a timer's lateness costs nothing, too
/// short to show in a second's count.
pub(super) const MAX_UNUSED_S: f64 = 0.005;

/// Tokens that flow in at a steady rate, up to a capacity.
///
/// A request that costs more than the capacity starts when the bucket is full and leaves a debt, so that the
/// rate holds in the long run for any size.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// Tokens a second.
    rate: f64,
    capacity: f64,
    level: f64,
    /// The time at which `level` was right.
    at: Nanos,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: f64, capacity: f64) -> Bucket {
        Bucket {
            rate,
            capacity,
            level: capacity,
            at: Nanos(0),
        }
    }

    /// A cap with a negligible burst.
    pub(super) fn cap(rate: f64) -> Bucket {
        Bucket::new(rate, rate * MAX_UNUSED_S)
    }

    /// Level at a time that is not before the last `take`.
    pub(super) fn level_at(&self, time: Nanos) -> f64 {
        let gained = (time - self.at).as_secs_f64() * self.rate;
        (self.level + gained).min(self.capacity)
    }

    /// The earliest time from `now` on at which `cost` tokens may be taken.
    pub(super) fn earliest(&self, now: Nanos, cost: f64) -> Nanos {
        let now = now.max(self.at);
        let missing = cost.min(self.capacity) - self.level_at(now);
        if missing <= 0.0 {
            return now;
        }
        Nanos(
            now.0
                .saturating_add((missing / self.rate * 1e9).ceil() as u64),
        )
    }

    /// Takes `cost` tokens at a time that [`Bucket::earliest`] returned, or later.
    pub(super) fn take(&mut self, time: Nanos, cost: f64) {
        self.level = self.level_at(time) - cost;
        self.at = self.at.max(time);
    }
}

/// A cap on a rate, with credits for more than the sustained rate where it bursts.
#[derive(Clone, Debug)]
pub(super) struct Cap {
    /// Bucket at the sustained rate, or at the burst's.
    fastest: Bucket,
    /// Flow in at the sustained rate; `None` without a burst.
    credits: Option<Bucket>,
}

impl Cap {
    /// A cap at a sustained rate, with a burst's rate and its credits if it has one.
    pub(super) fn new(rate: f64, burst: Option<(f64, f64)>) -> Cap {
        Cap {
            fastest: Bucket::cap(burst.map_or(rate, |(fastest, _)| fastest)),
            credits: burst.map(|(_, credits)| Bucket::new(rate, credits)),
        }
    }

    /// The first moment from `now` on at which this may be taken. What is slow by a factor spends more tokens on the
    /// same work; its credits know nothing of that.
    pub(super) fn earliest(&self, now: Nanos, cost: f64, factor: f64) -> Nanos {
        let fastest = self.fastest.earliest(now, factor * cost);
        let credits = self.credits.as_ref();
        credits.map_or(fastest, |credits| credits.earliest(now, cost).max(fastest))
    }

    /// Takes it, at a moment that [`Cap::earliest`] gave or a later one.
    pub(super) fn take(&mut self, time: Nanos, cost: f64, factor: f64) {
        self.fastest.take(time, factor * cost);
        if let Some(credits) = &mut self.credits {
            credits.take(time, cost);
        }
    }

    /// Credits that are left; `None` without a burst.
    pub(super) fn credits_at(&self, time: Nanos) -> Option<f64> {
        let credits = self.credits.as_ref()?;
        Some(credits.level_at(time).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_above_the_capacity_leaves_a_debt_and_keeps_the_rate() {
        let mut bucket = Bucket::new(100.0, 1.0);
        let mut now = Nanos(0);
        for _ in 0..100 {
            now = bucket.earliest(now, 7.0);
            bucket.take(now, 7.0);
        }
        // 99 times 70 ms behind the first, which found the bucket full.
        assert!(now.0.abs_diff(6_930_000_000) < 1_000, "{now}");
    }

    #[test]
    fn it_is_never_fuller_than_its_capacity() {
        let mut bucket = Bucket::new(10.0, 5.0);
        bucket.take(Nanos(0), 5.0);
        assert!((bucket.level_at(Nanos::from_secs(3600)) - 5.0).abs() < 1e-12);
        assert_eq!(bucket.earliest(Nanos(0), 1.0), Nanos(100_000_000));
    }
}
