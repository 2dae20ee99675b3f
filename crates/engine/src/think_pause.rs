//! Think time of a closed loop: pauses, as of an application that processes what it has read.

/// Think time of a worker. A pause begins after so many requests, once none is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkPause {
    /// Length of a pause, in ticks.
    ticks: u64,
    every: u32,
    /// Requests completed since the last pause.
    done: u32,
    /// End of the pause; 0 where there is none.
    until: u64,
}

impl ThinkPause {
    /// A pause of so many ticks after `every` requests.
    pub(crate) fn new(ticks: u64, every: u32) -> ThinkPause {
        ThinkPause {
            ticks,
            every: every.max(1),
            done: 0,
            until: 0,
        }
    }

    /// True if nothing may be issued at `now`.
    pub(crate) fn is_blocked(&mut self, now: u64) -> bool {
        if self.until > 0 && self.until <= now {
            self.until = 0;
        }
        self.until > 0 || self.done >= self.every
    }

    /// Processes a request that completed at `now`, which leaves `in_flight` requests in flight. Syncs do not
    /// count.
    pub(crate) fn completed(&mut self, counts: bool, now: u64, in_flight: usize) {
        self.done += u32::from(counts);
        if self.done >= self.every && in_flight == 0 {
            self.done = 0;
            self.until = now + self.ticks;
        }
    }

    /// End of the current pause.
    pub(crate) fn resumes_at(&self) -> Option<u64> {
        (self.until > 0).then_some(self.until)
    }
}
