//! The times at which checkpoints are written.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum pause after a checkpoint is built, as a multiple of the time for building it: one with many extents is
/// large.
const SHARE: u32 = 100;
/// Minimum time between two checkpoints of jobs that take turns. The ledger may be on their target, where each
/// checkpoint is a commit of some ten requests. Thirty requests in three seconds do not count as a foreground; two
/// commits leave some of these for the file system.
const MIN_INTERVAL_IN_TURNS: Duration = Duration::from_millis(2500);

/// The time between two checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointInterval {
    first: Duration,
    shortest: Duration,
    longest: Duration,
    turns: Option<Arc<Turns>>,
}

impl CheckpointInterval {
    /// A first checkpoint immediately, then one after each interval.
    pub fn every(each: Duration) -> CheckpointInterval {
        CheckpointInterval {
            first: Duration::ZERO,
            shortest: each,
            longest: each,
            turns: None,
        }
    }

    /// Checkpoints after `first`, and then at intervals that limit the loss by a kill to half of the work since the
    /// start, and at most `longest`.
    pub fn growing(first: Duration, longest: Duration) -> CheckpointInterval {
        CheckpointInterval {
            first,
            shortest: first,
            longest,
            turns: None,
        }
    }

    /// The same interval, in turn with all jobs that share `turns`; longer if their turns take longer.
    pub fn in_turn(self, turns: &Arc<Turns>) -> CheckpointInterval {
        CheckpointInterval {
            turns: Some(Arc::clone(turns)),
            ..self
        }
    }

    /// The time between two checkpoints of a job that has run for `ran`.
    fn between(&self, ran: Duration) -> Duration {
        let own = (ran / 2).clamp(self.shortest, self.longest);
        self.turns
            .as_ref()
            .map_or(own, |turns| own.max(turns.all()))
    }
}

/// A rotation that keeps the checkpoints of several jobs from coinciding.
#[derive(Debug, Default)]
pub struct Turns {
    /// Number of jobs.
    of: AtomicU64,
    last: Mutex<Option<Duration>>,
}

impl Turns {
    /// The time for one turn of each job.
    fn all(&self) -> Duration {
        let of = u32::try_from(self.of.load(Relaxed)).unwrap_or(u32::MAX);
        MIN_INTERVAL_IN_TURNS.saturating_mul(of)
    }

    /// Takes the turn; false if it is not free.
    fn take(&self, now: Duration) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = last.is_none_or(|last| now.saturating_sub(last) >= MIN_INTERVAL_IN_TURNS);
        if is_free {
            *last = Some(now);
        }
        is_free
    }
}

/// The times of one job's checkpoints.
#[derive(Debug)]
pub(crate) struct Timer {
    interval: CheckpointInterval,
    last: Option<Duration>,
    /// Time at which building of the last checkpoint began.
    began: Instant,
    /// Time until the next checkpoint may be built, because of the duration of the last one.
    rests: Duration,
}

impl Timer {
    pub(crate) fn new(interval: CheckpointInterval) -> Timer {
        if let Some(turns) = &interval.turns {
            turns.of.fetch_add(1, Relaxed);
        }
        Timer {
            interval,
            last: None,
            began: Instant::now(),
            rests: Duration::ZERO,
        }
    }

    /// True if a checkpoint is due in a job that has run for `ran`; the job then takes its turn.
    pub(crate) fn is_due(&mut self, ran: Duration) -> bool {
        let is_time = match self.last {
            Some(last) => ran.saturating_sub(last) >= self.interval.between(ran),
            None => ran >= self.interval.first,
        };
        let turns = self.interval.turns.as_ref();
        let is_due = is_time && ran >= self.rests && turns.is_none_or(|turns| turns.take(ran));
        if is_due {
            self.last = Some(ran);
            self.began = Instant::now();
        }
        is_due
    }

    /// Notes that the checkpoint that was due is built.
    pub(crate) fn built(&mut self) {
        self.took(self.began.elapsed());
    }

    fn took(&mut self, cost: Duration) {
        self.rests = self.last.unwrap_or_default() + SHARE * cost;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(turns) = &self.interval.turns {
            turns.of.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_reading() -> CheckpointInterval {
        CheckpointInterval::growing(Duration::from_secs(2), Duration::from_secs(10))
    }

    /// The times in milliseconds at which checkpoints of `of` jobs are due within `seconds`.
    fn due(of: usize, seconds: u64, interval: impl Fn() -> CheckpointInterval) -> Vec<Vec<u64>> {
        let mut timers: Vec<Timer> = (0..of).map(|_| Timer::new(interval())).collect();
        let mut due = vec![Vec::new(); of];
        for ms in (250..1000 * seconds).step_by(250) {
            for (timer, due) in timers.iter_mut().zip(&mut due) {
                if timer.is_due(Duration::from_millis(ms)) {
                    due.push(ms);
                }
            }
        }
        due
    }

    #[test]
    fn one_job_is_due_soon_and_then_each_ten_seconds() {
        let turns = Arc::default();
        let due = due(1, 45, || of_reading().in_turn(&turns));
        assert_eq!(due[0], [2000, 4500, 9000, 18_000, 28_000, 38_000]);
    }

    #[test]
    fn jobs_take_turns_and_none_is_left_out() {
        for of in [2, 4, 8, 24] {
            let turns = Arc::default();
            let due = due(of, 300, || of_reading().in_turn(&turns));
            let mut all = due.concat();
            all.sort_unstable();
            assert!(all.windows(2).all(|two| two[1] - two[0] >= 2500), "{of}");
            for one in &due {
                assert!(one[0] <= 2000 + 2500 * of as u64, "{one:?}");
                let longest = one.windows(2).map(|two| two[1] - two[0]).max();
                let allowed = 10_000.max(2500 * of as u64) + 2500;
                assert!(longest.is_some_and(|longest| longest <= allowed), "{one:?}");
            }
        }
    }

    #[test]
    fn a_checkpoint_that_takes_long_to_build_is_built_rarely() {
        let mut timer = Timer::new(CheckpointInterval::every(Duration::ZERO));
        let second = Duration::from_secs(1);
        assert!(timer.is_due(second) && timer.is_due(second));
        timer.took(second);
        assert!(!timer.is_due(100 * second));
        assert!(timer.is_due(101 * second));
    }
}
