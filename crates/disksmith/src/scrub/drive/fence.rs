//! The place up to which md may check, and how far it is raised.

use linux::md::sync::{Knob, Sectors};
use record::{Bytes, Nanos};

use super::super::pace::May;

/// A speed limit that is none, in KiB a second.
const FULL: u64 = 10_000_000;
/// The least that md takes.
const LEAST: u64 = 1;
/// What md checks at once at RAID 1 and 10 (`RESYNC_BLOCK_SIZE`, drivers/md/raid1-10.c): a smaller
/// step would be no smaller.
const BLOCK: Sectors = Sectors(128);
/// In company a step is what may be done in so many seconds.
const STEP_S: f64 = 0.5;
/// But at least so much of each member: each step costs writes of the superblock, one for each time that
/// it can be halved.
const LEAST_STEP: Sectors = Sectors(2048);
/// No step in company is larger.
const LARGEST_STEP: Bytes = Bytes::mib(64);
/// Alone, the fence is so many seconds ahead. md drains at half of the way from where it drained last, so that
/// it is raised each quarter of the way: then md drains once in all of that time.
const AHEAD_S: f64 = 2.75;
/// And at least so far.
const LEAST_AHEAD: Bytes = Bytes::mib(16);
/// What is left of the way when it is raised.
const RAISED_AT: f64 = 0.75;
/// After so long md is let run against the fence, where what is done is known exactly.
const STAND: Nanos = Nanos(20_000_000_000);
/// More than this, in seconds of the rate, is not made up for, neither what it lags behind nor what it was
/// ahead.
const OWES_S: f64 = 4.0;
/// So long a step waits for the members to have nothing else to do.
const PATIENCE: Nanos = Nanos(20_000_000);
/// The speed alone is averaged over so many seconds.
const AVERAGE_S: f64 = 1.0;

/// In company it is looked so often at least whether the fence may be raised, and so often at most.
const TICK: Nanos = Nanos(20_000_000);
const SLOW_TICK: Nanos = Nanos(50_000_000);
/// And alone.
const SLOWEST_TICK: Nanos = Nanos(100_000_000);

/// How md may go towards the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// As fast as it can.
    Open,
    /// A little at a time while others use the members.
    Gentle,
    /// Not at all: md is faster than the least limit, and sleeps until that is raised. It sees so within
    /// what it checks at once, but goes on only half a second after the limit is raised.
    Shut,
}

/// Whether a speed limit is one of those that are set here.
pub(in crate::scrub) fn is_limit(kib: u64) -> bool {
    matches!(kib, LEAST | FULL)
}

impl Gate {
    /// The limits that make it so, in KiB a second.
    pub(super) fn limits(self) -> [(Knob, u64); 2] {
        let (least, most) = match self {
            Gate::Open => (FULL, FULL),
            Gate::Gentle => (LEAST, FULL),
            Gate::Shut => (LEAST, LEAST),
        };
        [(Knob::SpeedMin, least), (Knob::SpeedMax, most)]
    }
}

/// The fence of one check.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    at: Sectors,
    /// It stands at multiples of this.
    unit: Sectors,
    /// The least step.
    least: Sectors,
    /// Whether md is held before the fence.
    shut: bool,
    /// The end, rounded up; `None` until it is known.
    last: Option<Sectors>,
    /// Bytes that may be checked now, beyond where md is; negative when it went too far.
    credit: f64,
    /// Bytes a second, averaged.
    speed: f64,
    stood: Nanos,
    /// Since when a step waits for the members.
    waits: Option<Nanos>,
}

impl Fence {
    /// At the place where the check begins, rounded down to where a fence may stand.
    /// `wide` is over how many members md goes at once.
    pub(super) fn new(from: Sectors, chunk: Sectors, wide: u64, now: Nanos) -> Fence {
        let unit = chunk.max(BLOCK);
        let row = LEAST_STEP.0.saturating_mul(wide);
        Fence {
            at: Sectors(from.0 / unit.0 * unit.0),
            unit,
            least: Sectors(row.div_ceil(unit.0).max(1) * unit.0),
            shut: false,
            last: None,
            credit: 0.0,
            speed: 0.0,
            stood: now,
            waits: None,
        }
    }

    /// Where it is.
    pub(super) fn at(&self) -> Sectors {
        self.at
    }

    /// Says where the end is.
    pub(super) fn ends_at(&mut self, of: Sectors) {
        self.last = Some(Sectors(of.0.div_ceil(self.unit.0) * self.unit.0));
    }

    /// Whether there is nothing behind it.
    pub(super) fn is_last(&self) -> bool {
        self.last.is_some_and(|last| self.at >= last)
    }

    /// md stood at it, and what is done was kept.
    pub(super) fn stood(&mut self, now: Nanos) {
        self.stood = now;
    }

    /// Takes that md went on by so many bytes in so many seconds, and gives how it may go.
    pub(super) fn gate(&mut self, may: May, live: Sectors, bytes: f64, seconds: f64) -> Gate {
        let weight = (seconds / AVERAGE_S).min(1.0);
        if seconds > 0.0 {
            self.speed += weight * (bytes / seconds - self.speed);
        }
        match may {
            May::All => {
                self.credit = 0.0;
                self.shut = false;
                return Gate::Open;
            }
            May::Nothing => {
                self.credit -= bytes;
                self.shut = self.ahead(live).0 > 0;
            }
            May::Rate(rate) => {
                let step = self.step(rate).bytes().0 as f64;
                let most = 2.0 * step;
                let least = -(OWES_S * rate).max(most);
                self.credit = (self.credit + rate * seconds - bytes).clamp(least, most);
                // What was let loose when nobody was there lies far ahead.
                let is_far = self.ahead(live).bytes().0 as f64 > most;
                let is_due = self.credit >= if self.shut { step } else { 0.0 };
                self.shut = is_far && !is_due;
            }
        }
        if self.shut { Gate::Shut } else { Gate::Gentle }
    }

    /// So long nothing is to be done at this pace.
    pub(super) fn rest(&self, may: May, live: Sectors) -> Nanos {
        let rate = match may {
            May::Rate(rate) => rate,
            May::Nothing => return SLOW_TICK,
            // The fence is far, and who comes is looked for no more often.
            May::All => return SLOWEST_TICK,
        };
        let lacks = (self.step(rate).bytes().0 + self.ahead(live).bytes().0) as f64 - self.credit;
        let rest = Nanos((lacks.max(0.0) / rate.max(1.0) * 1e9) as u64);
        rest.clamp(TICK, SLOW_TICK)
    }

    /// Whether it should be raised, as far as the pace goes.
    pub(super) fn is_wanted(&self, may: May, live: Sectors, now: Nanos) -> bool {
        // Where it must stand, it does until what is done was kept.
        if self.is_last() || self.must_stand(now) {
            return false;
        }
        let ahead = self.ahead(live);
        match may {
            May::Nothing => false,
            May::All => ahead.bytes().0 as f64 <= RAISED_AT * self.reach(),
            May::Rate(rate) => {
                let step = self.step(rate);
                let spent = ahead.bytes().0 as f64;
                ahead.0 * 2 <= step.0 && self.credit - spent >= step.bytes().0 as f64
            }
        }
    }

    /// Raises it and gives where it is now; `None` while a step waits, because the members have
    /// something to do.
    pub(super) fn raise(
        &mut self,
        may: May,
        live: Sectors,
        busy: bool,
        now: Nanos,
    ) -> Option<Sectors> {
        if busy {
            let since = *self.waits.get_or_insert(now);
            if now.0.saturating_sub(since.0) < PATIENCE.0 {
                return None;
            }
        }
        self.waits = None;
        let to = match may {
            May::Nothing => return None,
            May::Rate(rate) => Sectors(self.at.0 + self.step(rate).0),
            May::All => {
                let ahead = Sectors::of(Bytes(self.reach() as u64));
                Sectors((live.0 + ahead.0).div_ceil(self.unit.0) * self.unit.0)
            }
        };
        let to = self.last.map_or(to, |last| to.min(last));
        if to <= self.at {
            return None;
        }
        self.at = to;
        Some(to)
    }

    fn must_stand(&self, now: Nanos) -> bool {
        now.0.saturating_sub(self.stood.0) >= STAND.0
    }

    /// How much md may do before it stands.
    pub(super) fn ahead(&self, live: Sectors) -> Sectors {
        Sectors(self.at.0.saturating_sub(live.0))
    }

    /// How far ahead it is of a check that is alone, in bytes.
    fn reach(&self) -> f64 {
        (self.speed * AHEAD_S).max(LEAST_AHEAD.0 as f64)
    }

    /// A step in company.
    fn step(&self, rate: f64) -> Sectors {
        let bytes = Bytes((rate * STEP_S) as u64).min(LARGEST_STEP);
        Sectors((Sectors::of(bytes).0 / self.unit.0 * self.unit.0).max(self.least.0))
    }
}
