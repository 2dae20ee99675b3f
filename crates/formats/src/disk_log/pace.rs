//! Determines the lengths of a log's intervals, and the gaps between them.

use std::collections::VecDeque;

use jiff::Timestamp;
use record::Nanos;
use record::sample::{Gap, SampleTime};

/// Interval if the log does not give it: the most common one.
const DEFAULT_INTERVAL: Nanos = Nanos::from_secs(1);
/// Number of the last intervals between printed times that are kept.
const KEPT_INTERVALS: usize = 15;
/// Minimum excess over the usual interval that counts as a gap, in seconds: times are printed in whole seconds, and
/// iostat may be late.
const MIN_GAP_S: f64 = 1.6;

/// Known timing of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The printed time.
    pub(crate) wall: Option<Timestamp>,
    /// Length in seconds, if the figures give it.
    pub(crate) seconds: Option<f64>,
    /// True if the report is the first of a run of iostat.
    pub(crate) first: bool,
}

/// End and length of a sample, and the gap before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: SampleTime,
    pub(crate) length: Nanos,
    pub(crate) gap: Option<Gap>,
}

/// Tracks the time of a log.
#[derive(Debug)]
pub(crate) struct Pace {
    given: Option<Nanos>,
    distances: VecDeque<f64>,
    last: Option<Timestamp>,
    elapsed: Nanos,
    /// Time without samples since the last one, if any.
    unseen: Option<Nanos>,
    any: bool,
    guessed: bool,
}

impl Pace {
    /// `given` is the interval that the user gave.
    pub(crate) fn new(given: Option<Nanos>) -> Pace {
        Pace {
            given,
            distances: VecDeque::new(),
            last: None,
            elapsed: Nanos(0),
            unseen: None,
            any: false,
            guessed: false,
        }
    }

    /// True if an interval was assumed that the log does not give.
    pub(crate) fn guessed(&self) -> bool {
        self.guessed
    }

    /// True if neither the user nor the log has given an interval so far.
    pub(crate) fn must_guess(&self, timing: &Timing) -> bool {
        self.given.is_none() && timing.seconds.is_none() && self.distances.is_empty()
    }

    /// True if the length of a report can be determined without the next report.
    pub(crate) fn is_known(&self, timing: &Timing) -> bool {
        self.given.is_some()
            || timing.seconds.is_some()
            || !self.distances.is_empty()
            || (self.last.is_some() && timing.wall.is_some() && !timing.first)
    }

    /// Learns the interval from two reports that follow each other.
    pub(crate) fn learn(&mut self, one: &Timing, next: &Timing) {
        if let (Some(one), Some(next)) = (one.wall, next.wall) {
            self.distance(seconds_between(one, next));
        } else if let Some(seconds) = next.seconds {
            self.distance(seconds);
        }
    }

    /// Corrects the last time, which was read wrongly.
    pub(crate) fn correct(&mut self, last: Timestamp) {
        if self.last.is_some() {
            self.last = Some(last);
        }
    }

    /// The time of a report of the means since boot, which is not an interval of the log.
    pub(crate) fn since_boot(&mut self, timing: &Timing) -> Span {
        if self.any {
            let unseen = match (self.last, timing.wall) {
                (Some(last), Some(wall)) => nanos(seconds_between(last, wall).max(0.0)),
                _ => Nanos(0),
            };
            self.elapsed += unseen;
            self.unseen = Some(self.unseen.unwrap_or_default() + unseen);
        }
        self.any = true;
        self.last = timing.wall.or(self.last);
        Span {
            at: self.moment(timing),
            length: nanos(timing.seconds.unwrap_or_default()),
            gap: None,
        }
    }

    /// The time of a report of an interval.
    pub(crate) fn interval(&mut self, timing: &Timing) -> Span {
        let distance = match (self.last, timing.wall) {
            (Some(last), Some(wall)) => Some(seconds_between(last, wall)),
            _ => None,
        };
        // If no times are printed, the length that one interval's figures give is used for intervals with little I/O.
        let interval = distance.filter(|_| !timing.first);
        if let Some(interval) = interval.or(timing.seconds.filter(|_| timing.wall.is_none())) {
            self.distance(interval);
        }
        let mut length = timing
            .seconds
            .map(nanos)
            .or(self.given)
            .unwrap_or_else(|| self.usual());
        let mut between = None;
        if let Some(distance) = distance {
            let over = distance - length.as_secs_f64();
            let slack = MIN_GAP_S.max(length.as_secs_f64() * 0.1);
            if over > slack {
                between = Some(Gap::Unseen(nanos(over)));
            } else if over < -slack && distance >= 0.0 && self.given.is_none() && !timing.first {
                // The earlier intervals were longer, since lines are missing.
                length = nanos(distance);
                self.distances.clear();
                self.distance(distance);
            } else if over < -slack {
                between = Some(if timing.first {
                    Gap::Unseen(Nanos(0))
                } else {
                    Gap::SetBack(nanos(-over))
                });
            }
        } else if timing.first && self.any {
            between = Some(Gap::Unseen(Nanos(0)));
        }
        self.any = true;
        self.last = timing.wall.or(self.last);
        self.advance(timing, length, between, distance)
    }

    fn advance(
        &mut self,
        timing: &Timing,
        length: Nanos,
        between: Option<Gap>,
        distance: Option<f64>,
    ) -> Span {
        self.elapsed += match (between, distance) {
            (Some(Gap::Unseen(unseen)), _) => unseen + length,
            // The clock follows the printed times, since errors of a fraction of a second would otherwise add up.
            (None, Some(distance)) if distance > 0.0 => nanos(distance),
            _ => length,
        };
        let gap = match (self.unseen.take(), between) {
            (None, gap) => gap,
            (Some(before), Some(Gap::Unseen(now))) => Some(Gap::Unseen(before + now)),
            (Some(before), None) => Some(Gap::Unseen(before)),
            (Some(_), gap) => gap,
        };
        Span {
            at: self.moment(timing),
            length,
            gap,
        }
    }

    fn moment(&self, timing: &Timing) -> SampleTime {
        SampleTime {
            wall: timing.wall,
            elapsed: self.elapsed,
        }
    }

    fn distance(&mut self, seconds: f64) {
        if seconds > 0.0 {
            if self.distances.len() == KEPT_INTERVALS {
                self.distances.pop_front();
            }
            self.distances.push_back(seconds);
        }
    }

    /// Median of the last intervals, so that a single longer one has no effect.
    fn usual(&mut self) -> Nanos {
        let mut sorted: Vec<f64> = self.distances.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        match sorted.get(sorted.len().saturating_sub(1) / 2) {
            Some(seconds) => nanos(*seconds),
            None => {
                self.guessed = true;
                DEFAULT_INTERVAL
            }
        }
    }
}

fn seconds_between(one: Timestamp, next: Timestamp) -> f64 {
    next.duration_since(one).as_secs_f64()
}

/// Seconds as nanoseconds, clamped to the range of the type.
fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(second: i64) -> Timing {
        Timing {
            wall: Some(Timestamp::from_second(1_000_000 + second).unwrap()),
            seconds: None,
            first: false,
        }
    }

    fn spans(pace: &mut Pace, seconds: &[i64]) -> Vec<(u64, u64, Option<Gap>)> {
        seconds
            .iter()
            .map(|second| {
                let span = pace.interval(&timing(*second));
                (
                    span.at.elapsed.0 / 1_000_000_000,
                    span.length.0 / 1_000_000_000,
                    span.gap,
                )
            })
            .collect()
    }

    #[test]
    fn a_longer_distance_is_a_gap_and_a_backward_one_a_clock_that_was_set() {
        let mut pace = Pace::new(None);
        pace.since_boot(&timing(0));
        let gap = |gap: fn(Nanos) -> Gap, seconds| Some(gap(Nanos::from_secs(seconds)));
        assert_eq!(
            spans(&mut pace, &[10, 20, 31, 40, 100, 110, 50, 60]),
            [
                (10, 10, None),
                (20, 10, None),
                (31, 10, None),
                (40, 10, None),
                (100, 10, gap(Gap::Unseen, 50)),
                (110, 10, None),
                (120, 10, gap(Gap::SetBack, 70)),
                (130, 10, None),
            ]
        );
        assert!(!pace.guessed());
    }

    #[test]
    fn a_restart_leaves_a_gap_and_its_boot_report_no_time() {
        let mut pace = Pace::new(None);
        pace.since_boot(&timing(0));
        spans(&mut pace, &[5, 10]);
        let boot = Timing {
            first: true,
            ..timing(70)
        };
        assert_eq!(pace.since_boot(&boot).at.elapsed, Nanos::from_secs(70));
        assert_eq!(
            spans(&mut pace, &[75]),
            [(75, 5, Some(Gap::Unseen(Nanos::from_secs(60))))]
        );
    }

    #[test]
    fn the_first_distance_may_be_too_long() {
        let mut pace = Pace::new(None);
        pace.since_boot(&timing(0));
        let lengths: Vec<u64> = spans(&mut pace, &[600, 610, 620])
            .iter()
            .map(|span| span.1)
            .collect();
        assert_eq!(lengths, [600, 10, 10]);
    }

    #[test]
    fn times_that_lie_too_far_apart_are_no_panic() {
        let mut pace = Pace::new(None);
        let far = Timestamp::MAX.as_second() - 1_000_000;
        let spans = spans(&mut pace, &[0, 10, far, 20, far - 10, far]);
        assert_eq!(spans.len(), 6);
        let mut pace = Pace::new(Some(Nanos(u64::MAX)));
        pace.interval(&timing(0));
        assert_eq!(pace.interval(&timing(1)).length, Nanos(u64::MAX));
    }

    #[test]
    fn figures_that_tell_the_length_of_some_intervals_tell_that_of_all() {
        let timing = |seconds: Option<f64>| Timing {
            wall: None,
            seconds,
            first: false,
        };
        let mut pace = Pace::new(None);
        let (idle, busy) = (timing(None), timing(Some(2.0)));
        pace.learn(&idle, &busy);
        for timing in [idle, busy, idle, busy, idle] {
            assert_eq!(pace.interval(&timing).length, Nanos::from_secs(2));
        }
        assert!(!pace.guessed());
    }

    #[test]
    fn without_times_an_interval_is_given_or_taken_to_be_a_second() {
        let nothing = Timing {
            wall: None,
            seconds: None,
            first: false,
        };
        let mut pace = Pace::new(Some(Nanos::from_secs(5)));
        assert_eq!(pace.interval(&nothing).at.elapsed, Nanos::from_secs(5));
        let mut pace = Pace::new(None);
        assert_eq!(pace.interval(&nothing).length, DEFAULT_INTERVAL);
        assert!(pace.guessed());
    }
}
