//! Effect of a check of RAID 10 on the foreground, which waits for the check whichever members it uses.
//!
//! As in the kernel (drivers/md/raid10.c, raise_barrier): a request of the check begins when all foreground requests in
//! flight have completed, and no foreground request begins until it has completed. Waiting foreground requests are
//! issued before the next request of the check, which then delays the foreground again.

use super::{SECOND, STEP};

/// Delay by one request of the check.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Barrier {
    /// Time that foreground requests wait, in seconds: until the requests in flight and the check's own have completed.
    pub holds: f64,
    /// Share of the members' capacity that is lost meanwhile, from 0 to 1.
    pub lost: f64,
    /// Share of the members' capacity that the foreground demands, from 0 to 1.
    pub demand: f64,
    /// Speed at which members are read directly, as a share of full speed.
    pub direct: f64,
    /// Latency that direct reads at full speed would add, in seconds.
    pub cost: f64,
    /// Work of the members to write their superblocks, in seconds at full capacity.
    pub superblock: f64,
}

/// State of the check's current request, and the work of the foreground that waits for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossing {
    until: Option<u64>,
    /// Work that waits for the members, in seconds at full capacity.
    behind: f64,
}

impl Crossing {
    /// True if the check's request has completed; begins one, if none is in flight.
    pub(super) fn is_over(&mut self, barrier: Barrier, now: u64) -> bool {
        let over = now + (barrier.holds * SECOND as f64) as u64;
        let is_over = *self.until.get_or_insert(over) <= now;
        if is_over {
            self.until = None;
        }
        is_over
    }

    /// Adds the work of writing the superblocks.
    pub(super) fn superblock(&mut self, barrier: Option<Barrier>) {
        self.behind += barrier.map_or(0.0, |barrier| barrier.superblock);
    }

    /// Advances the time by `seconds`. Returns the time that a request which arrives now waits, in seconds, without
    /// its own duration.
    pub(super) fn waits(&mut self, barrier: Option<Barrier>, now: u64, seconds: f64) -> f64 {
        let Some(barrier) = barrier else {
            return 0.0;
        };
        let until = self.until.filter(|until| *until >= now);
        let can = if until.is_some() {
            1.0 - barrier.lost
        } else {
            1.0
        };
        self.behind = (self.behind + (barrier.demand - can) * seconds).max(0.0);
        let held = until.map_or(0, |until| until - now + STEP / 2);
        self.behind + held as f64 / SECOND as f64
    }
}
