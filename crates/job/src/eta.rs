//! The recent rate of a job, and whether it will meet its deadline.

use std::collections::VecDeque;

/// Seconds of work before the first warning of a missed deadline.
const WARNS_AFTER_S: f64 = 20.0;
/// Length of the window of the rate in seconds: an array that was idle at night is busy by day.
const WINDOW_S: f64 = 600.0;
/// Seconds between two samples.
const SAMPLE_S: f64 = 10.0;
/// Seconds until the warning is repeated, if the work was on time in between.
const WARNING_REPEAT_S: f64 = 3600.0;

/// Rate and deadline of work that began at second 0.
#[derive(Debug)]
pub struct EtaEstimator {
    /// Samples: a time in seconds, and the number of bytes done by then.
    samples: VecDeque<(f64, u64)>,
    warned_s: Option<f64>,
    was_in_time: bool,
}

impl EtaEstimator {
    /// An estimator for work of which `done` bytes were done before.
    pub fn new(done: u64) -> EtaEstimator {
        EtaEstimator {
            samples: VecDeque::from([(0.0, done)]),
            warned_s: None,
            was_in_time: true,
        }
    }

    /// Recent rate in bytes a second, with `done` bytes done by now; `None` without progress.
    pub fn rate(&mut self, now_s: f64, done: u64) -> Option<f64> {
        while self
            .samples
            .get(1)
            .is_some_and(|(then, _)| now_s - then >= WINDOW_S)
        {
            self.samples.pop_front();
        }
        let (then_s, before) = self.samples.front().copied()?;
        if self
            .samples
            .back()
            .is_some_and(|(last, _)| now_s - last >= SAMPLE_S)
        {
            self.samples.push_back((now_s, done));
        }
        let rate = done.saturating_sub(before) as f64 / (now_s - then_s);
        (rate > 0.0 && rate.is_finite()).then_some(rate)
    }

    /// True if the user is to be warned now, since the work needs another `needs_s` seconds and has `has_s`. After the
    /// warning the caller calls [`EtaEstimator::warned`].
    pub fn must_warn(&mut self, now_s: f64, needs_s: f64, has_s: f64) -> bool {
        self.was_in_time |= needs_s <= has_s;
        let is_new = self
            .warned_s
            .is_none_or(|warned| now_s - warned >= WARNING_REPEAT_S);
        now_s >= WARNS_AFTER_S && self.was_in_time && is_new && is_late(needs_s, has_s)
    }

    /// Notes that the user was warned.
    pub fn warned(&mut self, now_s: f64) {
        self.warned_s = Some(now_s);
        self.was_in_time = false;
    }
}

/// True if work that needs another `needs` seconds and has `has` is late; a small delay is tolerated, since it may be
/// made up for.
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
        // An hour of an idle night at 100 bytes a second, followed by ten a second beside a foreground.
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
        assert!(eta.samples.len() < 70);
        let mut stands = None;
        for second in 4261..=5000 {
            stands = eta.rate(f64::from(second), done);
        }
        assert_eq!(stands, None, "nothing moves");
    }

    /// The seconds of a day with a warning, for work that needs 100 bytes a second; `rate` is the number of bytes done
    /// in each second of the day.
    fn behind(rate: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut eta = EtaEstimator::new(0);
        let mut done = 0;
        let mut behind = Vec::new();
        for second in 1..86_400_u32 {
            done += rate(second);
            let Some(rate) = eta.rate(f64::from(second), done) else {
                continue;
            };
            let has_s = f64::from(86_400 - second);
            // As many bytes as 100 bytes a second would give in that time.
            let needs_s = has_s * 100.0 / rate;
            if eta.must_warn(f64::from(second), needs_s, has_s) {
                eta.warned(f64::from(second));
                behind.push(second);
            }
        }
        behind
    }

    #[test]
    fn that_both_cannot_be_had_is_said_when_it_is_seen_and_once() {
        assert!(behind(|_| 100).is_empty());
        assert!(
            behind(|_| 95).is_empty(),
            "a little late may be made up for"
        );
        assert_eq!(behind(|_| 50), [20]);
        // After hours of an idle night, the mean since the start would hide the delay until the evening.
        let by_day = behind(|second| if second < 28_800 { 1000 } else { 50 });
        assert!(
            matches!(by_day[..], [second] if (28_800..29_400).contains(&second)),
            "{by_day:?}"
        );
        // On time again at noon, and late in the evening.
        let twice = behind(|second| {
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
