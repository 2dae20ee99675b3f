//! Common rate of the members of one array, which are read at the same time.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reader::RateLimiter;
use record::{Bytes, Nanos};
use study::pace::Allowed;

/// State that all members share.
#[derive(Debug)]
pub(crate) struct SharedReadState {
    turn: Mutex<Turn>,
    /// Origin of times: the creation of this state.
    epoch: Instant,
    /// Bytes of requests that completed since the last poll.
    moved: AtomicU64,
    /// Sum of the latencies of requests that were issued at a rate, in nanoseconds.
    took: AtomicU64,
    /// Bytes of these requests.
    taken: AtomicU64,
    /// Bytes of requests that were issued and are not in `moved` yet.
    in_flight: AtomicU64,
    /// Bytes that were read or given up, over all starts.
    passed: AtomicU64,
    /// True while the ledger is being written to the watched device.
    pub commits: AtomicBool,
    /// True once nothing more is to be requested.
    pub over: AtomicBool,
}

#[derive(Debug)]
struct Turn {
    may: Allowed,
    limiter: RateLimiter,
}

impl SharedReadState {
    /// State of members of which `passed` bytes are already read. No request is allowed yet.
    pub(crate) fn new(passed: u64) -> SharedReadState {
        SharedReadState {
            turn: Mutex::new(Turn {
                may: Allowed::Nothing,
                limiter: RateLimiter::default(),
            }),
            epoch: Instant::now(),
            moved: AtomicU64::new(0),
            took: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            passed: AtomicU64::new(passed),
            commits: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Current time, as time since this state was made.
    pub(crate) fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rate that is allowed from now on.
    pub(crate) fn set(&self, may: Allowed) {
        self.turn().may = may;
    }

    /// Rate that is allowed now.
    pub(crate) fn allowance(&self) -> Allowed {
        self.turn().may
    }

    /// Ok if a request may be issued; the error is the minimum time to wait, or `None` where it is not known.
    pub(crate) fn has_room(&self, now: Nanos) -> Result<(), Option<Nanos>> {
        let turn = self.turn();
        match turn.may {
            Allowed::All => Ok(()),
            Allowed::Nothing => Err(None),
            Allowed::Rate(rate) => match turn.limiter.due(Some(rate)) - now {
                Nanos(0) => Ok(()),
                wait => Err(Some(wait)),
            },
        }
    }

    /// Notes that a request for `bytes` is issued.
    pub(crate) fn note_issued(&self, now: Nanos, bytes: u64) {
        let mut turn = self.turn();
        let rate = match turn.may {
            Allowed::Rate(rate) => Some(rate),
            Allowed::All | Allowed::Nothing => None,
        };
        turn.limiter.issued(now, Bytes(bytes), rate);
        self.in_flight.fetch_add(bytes, Relaxed);
    }

    /// Notes that a request for `bytes` has completed, with the latency `took`.
    pub(crate) fn note_completed(&self, bytes: u64, took: Nanos) {
        if matches!(self.allowance(), Allowed::Rate(_)) {
            self.took.fetch_add(took.0, Relaxed);
            self.taken.fetch_add(bytes, Relaxed);
        }
        self.moved.fetch_add(bytes, Release);
        self.in_flight.fetch_sub(bytes, Release);
    }

    /// Counts bytes that were skipped as done.
    pub(crate) fn note_skipped(&self, bytes: u64) {
        self.passed.fetch_add(bytes, Relaxed);
    }

    /// Number of bytes that were read or given up, over all starts.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Relaxed)
    }

    /// Bytes of requests that completed since the last call, and bytes in flight. A request that completes meanwhile
    /// is in both rather than in neither.
    pub(crate) fn since(&self) -> (u64, u64) {
        let in_flight = self.in_flight.load(Acquire);
        (self.moved.swap(0, Acquire), in_flight)
    }

    /// Rate of one member since the last call, in bytes a second, while it had a request in flight beside a foreground;
    /// `None` where no request completed.
    pub(crate) fn member_rate(&self) -> Option<f64> {
        let took = Nanos(self.took.swap(0, Relaxed)).as_secs_f64();
        let taken = self.taken.swap(0, Relaxed) as f64;
        (taken > 0.0 && took > 0.0).then(|| taken / took)
    }

    /// True if any request is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_who_ask_get_one_rate_together() {
        let share = SharedReadState::new(7);
        let now = Nanos::from_secs(10);
        assert_eq!(share.has_room(now), Err(None), "nothing was allowed yet");
        share.set(Allowed::Rate(1e6));
        // One request is made up for, and one more may always begin.
        for _ in 0..2 {
            assert_eq!(share.has_room(now), Ok(()));
            share.note_issued(now, 10_000);
        }
        assert_eq!(share.has_room(now), Err(Some(Nanos(10_000_000))));
        share.set(Allowed::All);
        for _ in 0..100 {
            assert_eq!(share.has_room(now), Ok(()));
            share.note_issued(now, 10_000);
        }
        for _ in 0..102 {
            assert!(share.is_busy());
            share.note_completed(10_000, Nanos(1_000_000));
        }
        assert!(!share.is_busy());
        assert_eq!(share.member_rate(), None, "beside a foreground only");
        share.set(Allowed::Rate(1e6));
        share.note_issued(now, 10_000);
        share.note_completed(10_000, Nanos(5_000_000));
        assert_eq!(
            (share.member_rate(), share.member_rate()),
            (Some(2e6), None)
        );
        assert_eq!(share.since(), (103 * 10_000, 0));
        assert_eq!((share.since(), share.passed()), ((0, 0), 7));
    }
}
