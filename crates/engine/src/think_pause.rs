//! Think time of a worker: pauses, like those of an application that processes the data it has read.

use record::{Nanos, ThinkTime};

/// Think time of a worker. As in fio (`handle_thinktime` in backend.c), the requests in flight when a pause is due
/// must complete first, and count towards the next pause: with many requests in flight a pause may follow a single
/// one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkPause {
    /// Length of a pause, in ticks.
    ticks: u64,
    /// Number of requests after which a pause is due.
    every: Option<u64>,
    /// Ticks of I/O after which a pause is due.
    io_ticks: Option<u64>,
    /// True if requests count when they are issued, and not when they complete.
    counts_issued: bool,
    /// True if pauses postpone the due times of a rate.
    stops_rate: bool,
    /// Requests counted since the last pause was due.
    counted: u64,
    /// End of the last pause; before the first, the start of the phase.
    since: u64,
    /// True if a pause is due, and waits for the requests in flight.
    draining: bool,
    /// End of the pause; 0 without one.
    until: u64,
}

impl ThinkPause {
    /// Pauses by `rules` of a phase that begins at `start`; `ticks` converts a time to ticks.
    pub(crate) fn new(rules: &ThinkTime, start: u64, ticks: impl Fn(Nanos) -> u64) -> ThinkPause {
        ThinkPause {
            ticks: ticks(rules.time),
            every: (rules.every > 0).then_some(u64::from(rules.every)),
            io_ticks: (rules.io_time.0 > 0).then(|| ticks(rules.io_time)),
            counts_issued: rules.counts_issued,
            stops_rate: rules.stops_rate,
            counted: 0,
            since: start,
            draining: false,
            until: 0,
        }
    }

    /// True if nothing may be issued at `now`.
    pub(crate) fn is_blocked(&mut self, now: u64) -> bool {
        if self.until > 0 && self.until <= now {
            self.until = 0;
        }
        self.draining || self.until > 0
    }

    /// Counts a request that was issued at `now`. If it fills the depth, fio waits for one to complete before it
    /// checks whether a pause is due.
    pub(crate) fn issued(&mut self, now: u64, is_full: bool) {
        self.counted += u64::from(self.counts_issued);
        if !is_full {
            self.drain_if_due(now);
        }
    }

    /// Counts a request that completed at `now`, which leaves `in_flight` requests in flight. Syncs do not count.
    /// Returns the length of a pause that begins and postpones the due times of a rate.
    pub(crate) fn completed(&mut self, counts: bool, now: u64, in_flight: usize) -> Option<u64> {
        self.counted += u64::from(counts && !self.counts_issued);
        if !self.draining {
            self.drain_if_due(now);
        }
        let begins = self.draining && in_flight == 0;
        if begins {
            self.draining = false;
            self.until = now + self.ticks;
            self.since = self.until;
        }
        (begins && self.stops_rate).then_some(self.ticks)
    }

    fn drain_if_due(&mut self, now: u64) {
        let by_count = self.every.is_some_and(|every| self.counted >= every);
        let by_time = (self.io_ticks).is_some_and(|ticks| now >= self.since + ticks);
        if by_count || by_time {
            self.draining = true;
            self.counted = 0;
        }
    }

    /// Time from which the latency of a request that was due at `due` counts. A request that became due in the last
    /// pause waited for the worker, and counts from the end of the pause; one that was due before waited for the disk.
    /// If pauses postpone the due times of a rate, `due` already includes the pause, also for a request that was late
    /// when the pause began.
    pub(crate) fn counts_from(&self, due: u64) -> u64 {
        let due_in_pause = due >= self.since.saturating_sub(self.ticks);
        match due_in_pause && !self.stops_rate {
            true => due.max(self.since),
            false => due,
        }
    }

    /// End of the current pause.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        (self.until > 0).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_due_in_a_pause_counts_from_its_end_and_what_was_due_before_from_then() {
        let rules = ThinkTime {
            time: Nanos(100),
            every: 1,
            ..ThinkTime::default()
        };
        let mut pause = ThinkPause::new(&rules, 1000, |span| span.0);
        assert_eq!(pause.counts_from(1010), 1010, "before the first pause");
        assert_eq!(pause.completed(true, 2000, 0), None);
        assert_eq!(pause.resumes_at(), Some(2100));
        for (due, from) in [
            (1999, 1999),
            (2000, 2100),
            (2099, 2100),
            (2100, 2100),
            (2500, 2500),
        ] {
            assert_eq!(pause.counts_from(due), from, "{due}");
        }
    }

    #[test]
    fn a_request_that_was_late_before_a_postponing_pause_stays_as_late() {
        let rules = ThinkTime {
            time: Nanos(100),
            every: 1,
            stops_rate: true,
            ..ThinkTime::default()
        };
        let mut pause = ThinkPause::new(&rules, 1000, |span| span.0);
        let due_before = 1970;
        let postponed = pause.completed(true, 2000, 0).unwrap();
        assert_eq!(postponed, 100);
        assert_eq!(pause.resumes_at(), Some(2100));
        assert_eq!(pause.counts_from(due_before + postponed), 2070);
    }
}
