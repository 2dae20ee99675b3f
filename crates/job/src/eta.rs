//! The recent rate of a job, and whether it will be done in time.

use std::collections::VecDeque;

/// What lies ahead is told only after so many seconds of work.
const TELLS_AFTER_S: f64 = 20.0;
/// The rate is that of so many seconds: an array that was idle at night is not by day.
const LATELY_S: f64 = 600.0;
/// It is noted so often how far it was.
const NOTES_S: f64 = 10.0;
/// That it will be too late is said again after so many seconds, if it would have been in time
/// meanwhile.
const AGAIN_S: f64 = 3600.0;

/// Follows work that began at second 0.
#[derive(Debug)]
pub struct EtaEstimator {
    /// Moments in seconds, and how many bytes were done then.
    notes: VecDeque<(f64, u64)>,
    said_s: Option<f64>,
    was_in_time: bool,
}

impl EtaEstimator {
    /// Of so many bytes that were done before.
    pub fn new(done: u64) -> EtaEstimator {
        EtaEstimator {
            notes: VecDeque::from([(0.0, done)]),
            said_s: None,
            was_in_time: true,
        }
    }

    /// Bytes a second of late, where so many are done now; `None` while nothing moves.
    pub fn rate(&mut self, now_s: f64, done: u64) -> Option<f64> {
        while self
            .notes
            .get(1)
            .is_some_and(|(then, _)| now_s - then >= LATELY_S)
        {
            self.notes.pop_front();
        }
        let (then_s, before) = self.notes.front().copied()?;
        if self
            .notes
            .back()
            .is_some_and(|(last, _)| now_s - last >= NOTES_S)
        {
            self.notes.push_back((now_s, done));
        }
        let rate = done.saturating_sub(before) as f64 / (now_s - then_s);
        (rate > 0.0 && rate.is_finite()).then_some(rate)
    }

    /// Whether it is to be said now that work which needs so many seconds more, and has so many, will
    /// be too late. Who has said it calls [`EtaEstimator::said`].
    pub fn is_to_be_said(&mut self, now_s: f64, needs_s: f64, has_s: f64) -> bool {
        self.was_in_time |= needs_s <= has_s;
        let is_new = self.said_s.is_none_or(|said| now_s - said >= AGAIN_S);
        now_s >= TELLS_AFTER_S && self.was_in_time && is_new && is_late(needs_s, has_s)
    }

    /// It was said.
    pub fn said(&mut self, now_s: f64) {
        self.said_s = Some(now_s);
        self.was_in_time = false;
    }
}

/// Whether what needs so many seconds more is too late where it has so many: a little may be made up for.
pub fn is_late(needs: f64, has: f64) -> bool {
    needs > 1.1 * has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_ten_minutes() {
        let mut eta = EtaEstimator::new(1000);
        assert_eq!(eta.rate(0.0, 1000), None);
        // An hour of an idle night at 100 bytes a second, and then ten a second beside others.
        let mut done = 1000;
        let mut rate = None;
        for second in 1..=3600 {
            done += 100;
            rate = eta.rate(f64::from(second), done);
        }
        assert_eq!(rate, Some(100.0));
        for second in 3601..=4260 {
            done += 10;
            rate = eta.rate(f64::from(second), done);
        }
        assert_eq!(rate, Some(10.0), "the night is over");
        assert!(eta.notes.len() < 70);
        let mut stands = None;
        for second in 4261..=5000 {
            stands = eta.rate(f64::from(second), done);
        }
        assert_eq!(stands, None, "nothing moves");
    }

    /// The seconds of a day in which it is said that 100 bytes a second are needed and cannot be had,
    /// where a second of the day has so many.
    fn told(rate: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut eta = EtaEstimator::new(0);
        let mut done = 0;
        let mut told = Vec::new();
        for second in 1..86_400_u32 {
            done += rate(second);
            let Some(rate) = eta.rate(f64::from(second), done) else {
                continue;
            };
            let has_s = f64::from(86_400 - second);
            // As much as 100 bytes a second would do in that time.
            let needs_s = has_s * 100.0 / rate;
            if eta.is_to_be_said(f64::from(second), needs_s, has_s) {
                eta.said(f64::from(second));
                told.push(second);
            }
        }
        told
    }

    #[test]
    fn that_both_cannot_be_had_is_said_when_it_is_seen_and_once() {
        assert!(told(|_| 100).is_empty());
        assert!(told(|_| 95).is_empty(), "a little late may be made up for");
        assert_eq!(told(|_| 50), [20]);
        // After hours of an idle night the mean since the start would hide it until the evening.
        let by_day = told(|second| if second < 28_800 { 1000 } else { 50 });
        assert!(
            matches!(by_day[..], [second] if (28_800..29_400).contains(&second)),
            "{by_day:?}"
        );
        // In time again at noon, and late in the evening.
        let twice = told(|second| {
            if (40_000..60_000).contains(&second) {
                200
            } else {
                50
            }
        });
        assert!(
            matches!(twice[..], [20, second] if second > 60_000),
            "{twice:?}"
        );
    }
}
