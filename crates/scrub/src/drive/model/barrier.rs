//! Effect of a check of RAID 10 on the foreground, which waits for it whichever members it uses.
//!
//! As in the kernel (drivers/md/raid10.c, raise_barrier): before a request of the check begins, all foreground
//! requests that were begun complete, and none begins until it has completed itself. Waiting foreground requests go
//! before the next request of the check, which then delays the foreground again.

use super::{SECOND, STEP};

/// Delay by one request of the check.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Barrier {
    /// Time that foreground requests wait, in seconds: until those that were begun have completed, and it has.
    pub holds: f64,
    /// The share of what the members can do that is lost meanwhile.
    pub lost: f64,
    /// The share of it that the foreground asks for.
    pub demand: f64,
    /// Share of full speed at which members are read directly.
    pub direct: f64,
    /// Latency that reads at full speed would add, in seconds.
    pub cost: f64,
    /// Seconds of what the members can do that it takes to write their superblocks.
    pub superblock: f64,
}

/// Progress of the check with a request, and the work that waits behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossing {
    until: Option<u64>,
    /// Seconds of work that the members have yet to do.
    behind: f64,
}

impl Crossing {
    /// True if the next request has come back; begins with it, if none is under way.
    pub(super) fn is_over(&mut self, barrier: Barrier, now: u64) -> bool {
        let over = now + (barrier.holds * SECOND as f64) as u64;
        let is_over = *self.until.get_or_insert(over) <= now;
        if is_over {
            self.until = None;
        }
        is_over
    }

    /// Writes the superblocks.
    pub(super) fn superblock(&mut self, barrier: Option<Barrier>) {
        self.behind += barrier.map_or(0.0, |barrier| barrier.superblock);
    }

    /// Lets so many seconds pass. Returns the wait of a request that comes now, in seconds, beside its own duration.
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
