//! Pauses of a closed loop, as of an application that works on what it has read.

/// When a worker pauses: whenever so many requests have come back, and from when none is in flight any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thinking {
    /// Length of a pause, in ticks.
    ticks: u64,
    every: u32,
    /// Requests that came back since the last pause.
    done: u32,
    /// End of the pause; 0 where there is none.
    until: u64,
}

impl Thinking {
    /// Pauses of so many ticks after `every` requests.
    pub(crate) fn new(ticks: u64, every: u32) -> Thinking {
        Thinking {
            ticks,
            every: every.max(1),
            done: 0,
            until: 0,
        }
    }

    /// True if nothing may be issued at `now`.
    pub(crate) fn holds(&mut self, now: u64) -> bool {
        if self.until > 0 && self.until <= now {
            self.until = 0;
        }
        self.until > 0 || self.done >= self.every
    }

    /// A request came back at `now`, after which `in_flight` are out. A sync is none that counts.
    pub(crate) fn came_back(&mut self, counts: bool, now: u64, in_flight: usize) {
        self.done += u32::from(counts);
        if self.done >= self.every && in_flight == 0 {
            self.done = 0;
            self.until = now + self.ticks;
        }
    }

    /// End of the pause that is under way.
    pub(crate) fn ends(&self) -> Option<u64> {
        (self.until > 0).then_some(self.until)
    }
}
