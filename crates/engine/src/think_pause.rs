//! Think time of a closed loop: pauses, as of an application that processes what it has read.

use record::{Nanos, ThinkTime};

/// Think time of a worker. As in fio (`handle_thinktime` in backend.c) what is in flight when a pause is due is
/// waited for first, and counts for the next pause: with many requests in flight a pause may follow a single one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkPause {
    /// Length of a pause, in ticks.
    ticks: u64,
    /// Requests after which a pause is due.
    every: Option<u64>,
    /// Ticks of I/O after which a pause is due.
    io_ticks: Option<u64>,
    /// True if requests count when they are issued, and not when they have completed.
    counts_issued: bool,
    /// Requests counted since the last pause was due.
    counted: u64,
    /// End of the last pause; before the first, the start of the phase.
    since: u64,
    /// True if a pause is due, and waits for what is in flight.
    draining: bool,
    /// End of the pause; 0 where there is none.
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

    /// Processes a request that was issued at `now`. Where that fills the depth, fio waits for one to complete
    /// before it asks whether a pause is due.
    pub(crate) fn issued(&mut self, now: u64, is_full: bool) {
        self.counted += u64::from(self.counts_issued);
        if !is_full {
            self.drain_if_due(now);
        }
    }

    /// Processes a request that completed at `now`, which leaves `in_flight` requests in flight. Syncs do not
    /// count.
    pub(crate) fn completed(&mut self, counts: bool, now: u64, in_flight: usize) {
        self.counted += u64::from(counts && !self.counts_issued);
        if !self.draining {
            self.drain_if_due(now);
        }
        if self.draining && in_flight == 0 {
            self.draining = false;
            self.until = now + self.ticks;
            self.since = self.until;
        }
    }

    fn drain_if_due(&mut self, now: u64) {
        let by_count = self.every.is_some_and(|every| self.counted >= every);
        let by_time = (self.io_ticks).is_some_and(|ticks| now >= self.since + ticks);
        if by_count || by_time {
            self.draining = true;
            self.counted = 0;
        }
    }

    /// Time before which nothing was to be issued, whatever was due.
    pub(crate) fn resumed_at(&self) -> u64 {
        self.since
    }

    /// End of the current pause.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        (self.until > 0).then_some(self.until)
    }
}
