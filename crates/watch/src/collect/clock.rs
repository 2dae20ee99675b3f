//! Times of samples: the time of day, a clock that stops while the machine is suspended, and one that does not
//! (clock_gettime(2)).

use jiff::Timestamp;
use record::Nanos;
use record::sample::{Gap, SampleTime};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Minimum step of the time of day that counts as a jump: the clocks are read one after the other, and the time of day
/// is slewed.
const MIN_CLOCK_JUMP: Nanos = Nanos::from_secs(1);

/// Reading of all clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    /// The time of day.
    pub(super) wall: Timestamp,
    /// Time since the boot without sleep: CLOCK_MONOTONIC.
    pub(super) monotonic: Nanos,
    /// Time since the boot with sleep: CLOCK_BOOTTIME.
    pub(super) boot: Nanos,
}

impl ClockReading {
    /// Reads the clocks.
    pub(super) fn now() -> ClockReading {
        ClockReading {
            wall: Timestamp::now(),
            monotonic: nanos(clock_gettime(ClockId::Monotonic)),
            boot: nanos(clock_gettime(ClockId::Boottime)),
        }
    }
}

fn nanos(time: Timespec) -> Nanos {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
}

/// Time between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadingInterval {
    /// End of the interval.
    pub(super) at: SampleTime,
    /// Length without sleep; zero for the first reading.
    pub(super) length: Nanos,
    /// Gap within the interval: the machine slept, or the time of day was set.
    pub(super) gap: Option<Gap>,
}

/// The readings so far.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    last: Option<ClockReading>,
    elapsed: Nanos,
}

impl Timeline {
    /// Interval from the last reading to this one; `None` where less than `least` has passed.
    pub(super) fn advance(&mut self, now: ClockReading, least: Nanos) -> Option<ReadingInterval> {
        let Some(last) = self.last else {
            self.last = Some(now);
            return Some(self.interval(now, Nanos(0), None));
        };
        let length = now.monotonic - last.monotonic;
        if length < least {
            return None;
        }
        let passed = (now.boot - last.boot).max(length);
        let wall = now.wall.as_nanosecond() - last.wall.as_nanosecond();
        let jump = wall - i128::from(passed.0);
        let far = Nanos(u64::try_from(jump.unsigned_abs()).unwrap_or(u64::MAX));
        let gap = if passed - length > MIN_CLOCK_JUMP {
            Some(Gap::Suspended(passed - length))
        } else if far <= MIN_CLOCK_JUMP {
            None
        } else if jump > 0 {
            Some(Gap::SetForward(far))
        } else {
            Some(Gap::SetBack(far))
        };
        self.elapsed += passed;
        self.last = Some(now);
        Some(self.interval(now, length, gap))
    }

    fn interval(&self, now: ClockReading, length: Nanos, gap: Option<Gap>) -> ReadingInterval {
        ReadingInterval {
            at: SampleTime {
                wall: Some(now.wall),
                elapsed: self.elapsed,
            },
            length,
            gap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading with these milliseconds of each clock.
    fn reading(wall: i64, monotonic: u64, boot: u64) -> ClockReading {
        ClockReading {
            wall: Timestamp::from_millisecond(1_700_000_000_000 + wall).unwrap(),
            monotonic: Nanos(monotonic * 1_000_000),
            boot: Nanos(boot * 1_000_000),
        }
    }

    /// Interval to the second of two readings.
    fn after(wall: i64, monotonic: u64, boot: u64) -> ReadingInterval {
        let mut timeline = Timeline::default();
        let first = timeline.advance(reading(0, 500, 600), Nanos(1)).unwrap();
        assert_eq!((first.length, first.gap), (Nanos(0), None));
        let next = reading(wall, 500 + monotonic, 600 + boot);
        timeline.advance(next, Nanos(1)).unwrap()
    }

    #[test]
    fn time_passes_by_all_clocks_alike() {
        let interval = after(1001, 1000, 1000);
        assert_eq!(interval.length, Nanos::from_secs(1));
        assert_eq!(interval.at.elapsed, Nanos::from_secs(1));
        assert_eq!(interval.gap, None);
    }

    #[test]
    fn sleep_is_a_gap_and_no_part_of_the_interval() {
        let interval = after(61_000, 1000, 61_000);
        assert_eq!(interval.length, Nanos::from_secs(1));
        assert_eq!(interval.at.elapsed, Nanos::from_secs(61));
        assert_eq!(interval.gap, Some(Gap::Suspended(Nanos::from_secs(60))));
    }

    #[test]
    fn a_time_of_day_that_is_set_changes_no_length() {
        let back = after(-3_599_000, 1000, 1000);
        assert_eq!(back.length, Nanos::from_secs(1));
        assert_eq!(back.gap, Some(Gap::SetBack(Nanos::from_secs(3600))));
        let forward = after(3_601_000, 1000, 1000);
        assert_eq!(forward.gap, Some(Gap::SetForward(Nanos::from_secs(3600))));
        assert_eq!(forward.at.elapsed, Nanos::from_secs(1));
    }

    #[test]
    fn too_short_a_time_is_no_interval() {
        let mut timeline = Timeline::default();
        let least = Nanos(5_000_000);
        timeline.advance(reading(0, 0, 0), least).unwrap();
        assert_eq!(timeline.advance(reading(4, 4, 4), least), None);
        let interval = timeline.advance(reading(9, 9, 9), least).unwrap();
        assert_eq!(interval.length, Nanos(9_000_000));
    }

    #[test]
    fn the_clocks_of_now_go_forward() {
        let (first, second) = (ClockReading::now(), ClockReading::now());
        assert!(second.monotonic >= first.monotonic && second.boot >= first.boot);
    }
}
