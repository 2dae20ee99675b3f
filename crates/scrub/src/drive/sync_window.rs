//! The place up to which md may check, and how far it is raised.

use linux::md::sync::{Sectors, Tunable};
use record::{Bytes, Nanos};

use study::pace::Allowed;

/// Speed limit that limits nothing, in KiB a second.
const NO_SPEED_LIMIT_KIB: u64 = 10_000_000;
/// The least speed limit that md takes, in KiB a second.
const MIN_SPEED_LIMIT_KIB: u64 = 1;
/// Sectors that md checks at once at RAID 1 and 10 (`RESYNC_BLOCK_SIZE`, drivers/md/raid1-10.c): a smaller step
/// would be no smaller.
const BLOCK: Sectors = Sectors(128);
/// Work of a step beside a foreground, in seconds at the allowed rate.
const STEP_S: f64 = 0.5;
/// The least step, in sectors of each member: each step costs writes of the superblock, one for each time that it can
/// be halved.
const MIN_STEP: Sectors = Sectors(2048);
/// Share of the p99 target that a step takes at most, where all foreground requests wait for it. In a longer one the
/// members idle for most of the time, though the foreground waits.
const MAX_STEP_SHARE: f64 = 0.5;
/// Seconds of work that such a step has at least, and one unit: the superblocks cost more below that than is gained.
const MIN_STEP_S: f64 = 0.1;
/// Largest step beside a foreground.
const MAX_STEP: Bytes = Bytes::mib(64);
/// Weight of the last step in the duration of a unit.
const LAST_STEP_WEIGHT: f64 = 0.2;
/// Distance of `sync_max` ahead of md without a foreground, in seconds. md drains halfway from where it drained last,
/// so `sync_max` is raised each quarter of the distance: then md drains once in that time.
const AHEAD_S: f64 = 2.75;
/// The least distance.
const MIN_AHEAD: Bytes = Bytes::mib(16);
/// Share of the distance that is left when `sync_max` is raised.
const RAISED_AT: f64 = 0.75;
/// Time until md may reach `sync_max`, where the progress is known exactly: twice as long each time, from the first
/// on, so that little is lost where a machine goes down soon after it came up.
const FIRST_SYNC_MAX_DELAY: Nanos = Nanos(2_500_000_000);
const SYNC_MAX_DELAY: Nanos = Nanos(20_000_000_000);
/// More than this, in seconds of the rate, is not made up for, neither what it lags behind nor what it was
/// ahead.
const MAX_CATCH_UP_S: f64 = 4.0;
/// Share of the usual number of requests in flight down to which a step waits, and its longest wait.
const IN_FLIGHT_SHARE: f64 = 0.5;
const TIMEOUT: Nanos = Nanos(20_000_000);
/// Longest wait of a step for which all foreground requests wait, and the longest as a share of the time between two
/// steps: the fewer requests are in flight, the sooner they complete.
const MAX_STEP_WAIT: Nanos = Nanos(100_000_000);
const MAX_STEP_WAIT_SHARE: f64 = 0.25;
/// Weight of the last number in the usual one.
const LAST_NUMBER_WEIGHT: f64 = 0.05;
/// Seconds over which md's rate is averaged.
const AVERAGE_S: f64 = 1.0;

/// Shortest and longest interval, beside a foreground, at which `sync_max` may be raised.
const TICK: Nanos = Nanos(20_000_000);
const SLOW_TICK: Nanos = Nanos(50_000_000);
/// Interval of polls where a step waits for fewer requests in flight, where md must be throttled soon, and at first
/// where the duration of a step is measured.
const FINE_TICK: Nanos = Nanos(2_000_000);
/// A later poll comes after the time taken so far, divided by this.
const POLL_DIVISOR: u64 = 8;
/// Longest interval without a foreground.
const MAX_TICK: Nanos = Nanos(100_000_000);

/// Throttling of md below `sync_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Throttle {
    /// md goes as fast as it can.
    Open,
    /// md goes a little at a time while there is a foreground.
    Gentle,
    /// md does nothing: it is faster than the least limit, and sleeps until that is raised. It sees so within what
    /// it checks at once, but goes on only half a second after the limit is raised.
    Shut,
}

/// True if a speed limit is one of those that are set here.
pub(crate) fn is_limit(kib: u64) -> bool {
    matches!(kib, MIN_SPEED_LIMIT_KIB | NO_SPEED_LIMIT_KIB)
}

impl Throttle {
    /// The limits that make it so, in KiB a second.
    pub(super) fn limits(self) -> [(Tunable, u64); 2] {
        let (least, most) = match self {
            Throttle::Open => (NO_SPEED_LIMIT_KIB, NO_SPEED_LIMIT_KIB),
            Throttle::Gentle => (MIN_SPEED_LIMIT_KIB, NO_SPEED_LIMIT_KIB),
            Throttle::Shut => (MIN_SPEED_LIMIT_KIB, MIN_SPEED_LIMIT_KIB),
        };
        [(Tunable::SpeedMin, least), (Tunable::SpeedMax, most)]
    }
}

/// `sync_max` of one check.
#[derive(Clone, Debug)]
pub(super) struct SyncWindow {
    at: Sectors,
    /// Unit: `sync_max` is a multiple of this.
    unit: Sectors,
    /// The least step where not all foreground requests wait for it.
    least: Sectors,
    /// True if all foreground requests wait for a step.
    holds_all: bool,
    /// True if a deadline counts more than the foreground.
    hurries: bool,
    /// True if md is held before `sync_max`.
    shut: bool,
    /// The end, rounded up; `None` until it is known.
    last: Option<Sectors>,
    /// Position at which `sync_max` stays though the end is further.
    stop: Option<Sectors>,
    /// Bytes that may be checked now, beyond where md is; negative when it went too far.
    credit: f64,
    /// The last rate allowed, in bytes a second.
    rate: f64,
    /// Rate of md, averaged, in bytes a second.
    speed: f64,
    /// Time at which md last stood at `sync_max`, and time after which it must again.
    stood: Nanos,
    stands: Nanos,
    /// Time since which a step waits for a moment with few requests in flight, and the usual number of them.
    waits: Option<Nanos>,
    usual: Option<f64>,
    /// The step that md is at: when it began, and of how many units it is.
    step: Option<(Nanos, f64)>,
    /// Duration of a unit beside a foreground, in seconds.
    unit_s: Option<f64>,
    /// Longest duration of a step, in seconds.
    holds: Option<f64>,
}

impl SyncWindow {
    /// A window that ends where the check begins, rounded down to a valid `sync_max`.
    /// `wide` is over how many members md goes at once.
    pub(super) fn new(from: Sectors, chunk: Sectors, wide: u64, now: Nanos) -> SyncWindow {
        let unit = chunk.max(BLOCK);
        let row = MIN_STEP.0.saturating_mul(wide);
        SyncWindow {
            at: Sectors(from.0 / unit.0 * unit.0),
            unit,
            least: Sectors(row.div_ceil(unit.0).max(1) * unit.0),
            holds_all: false,
            hurries: false,
            shut: false,
            last: None,
            stop: None,
            credit: 0.0,
            rate: 0.0,
            speed: 0.0,
            stood: now,
            stands: FIRST_SYNC_MAX_DELAY,
            waits: None,
            usual: None,
            step: None,
            unit_s: None,
            holds: None,
        }
    }

    /// Sets whether all foreground requests wait for each request of the check: RAID 10 lets all that were begun
    /// complete, and none begin until one of its own of 64 KiB has completed (`raise_barrier`,
    /// drivers/md/raid10.c).
    pub(super) fn with_barrier_if(mut self, holds_all: bool) -> SyncWindow {
        self.holds_all = holds_all;
        self
    }

    /// Sets a position beyond which `sync_max` does not go, if one is given.
    pub(super) fn with_end(mut self, stop: Option<Sectors>) -> SyncWindow {
        self.stop = stop;
        self
    }

    /// True if md, which has done all up to there, is at the place where it must stop.
    pub(super) fn has_stopped(&self, done: Sectors) -> bool {
        self.stop.is_some_and(|stop| done >= stop)
    }

    /// The last place up to there where it may stand.
    pub(super) fn last_stop(&self, place: Sectors) -> Sectors {
        Sectors(place.0 / self.unit.0 * self.unit.0)
    }

    /// Unit: `sync_max` is a multiple of this.
    pub(super) fn unit(&self) -> Sectors {
        self.unit
    }

    /// Sets whether it is as fast as a deadline demands, whatever the foreground's latency.
    pub(super) fn set_hurries(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// True if steps are as small as the foreground's latency demands.
    fn spares_all(&self) -> bool {
        self.holds_all && !self.hurries
    }

    /// Sets the p99 target, in seconds.
    pub(super) fn keep(&mut self, latency: Option<f64>) {
        self.holds = latency.map(|latency| MAX_STEP_SHARE * latency);
    }

    /// Takes md's position, and returns its rate beside a foreground, in bytes a second, where a step has just ended.
    pub(super) fn follow(&mut self, live: Sectors, now: Nanos) -> Option<f64> {
        if self.ahead(live).0 > 0 {
            return None;
        }
        let (began, units) = self.step.take()?;
        let took = Nanos(now.0.saturating_sub(began.0)).as_secs_f64() / units.max(1.0);
        let unit_s = self.unit_s.get_or_insert(took);
        *unit_s += LAST_STEP_WEIGHT * (took - *unit_s);
        Some(self.unit.bytes().0 as f64 / unit_s.max(1e-6))
    }

    /// Present `sync_max`.
    pub(super) fn at(&self) -> Sectors {
        self.at
    }

    /// Sets the end.
    pub(super) fn ends_at(&mut self, of: Sectors) {
        self.last = Some(Sectors(of.0.div_ceil(self.unit.0) * self.unit.0));
    }

    /// True if there is nothing behind it.
    pub(super) fn is_last(&self) -> bool {
        self.last.is_some_and(|last| self.at >= last)
    }

    /// Notes that md stood at it, and that the progress was stored.
    pub(super) fn note_stop(&mut self, now: Nanos) {
        if self.must_stand(now) {
            self.stands = Nanos((2 * self.stands.0).min(SYNC_MAX_DELAY.0));
        }
        self.stood = now;
    }

    /// Takes md's progress of so many bytes in so many seconds, and gives its throttling from now on.
    pub(super) fn throttle(
        &mut self,
        may: Allowed,
        live: Sectors,
        bytes: f64,
        seconds: f64,
    ) -> Throttle {
        let weight = (seconds / AVERAGE_S).min(1.0);
        if seconds > 0.0 {
            self.speed += weight * (bytes / seconds - self.speed);
        }
        match may {
            Allowed::All => {
                self.credit = 0.0;
                self.shut = false;
                self.waits = None;
                return Throttle::Open;
            }
            Allowed::Nothing => {
                self.credit -= bytes;
                // A step is soon done, and md would sleep for half a second. What was let loose on an idle array
                // is not.
                let step = self.step(self.rate).bytes().0 as f64;
                self.shut = self.ahead(live).bytes().0 as f64 > 2.0 * step;
                self.waits = None;
            }
            Allowed::Rate(rate) => {
                self.rate = rate;
                let step = self.step(rate).bytes().0 as f64;
                let most = 2.0 * step;
                let least = -(MAX_CATCH_UP_S * rate).max(most);
                self.credit = (self.credit + rate * seconds - bytes).clamp(least, most);
                // A `sync_max` that was set without a foreground lies far ahead.
                let is_far = self.ahead(live).bytes().0 as f64 > most;
                let is_due = self.credit >= if self.shut { step } else { 0.0 };
                self.shut = is_far && !is_due;
            }
        }
        if !self.shut {
            return Throttle::Gentle;
        }
        // How long it takes is not known of a step that is held.
        self.step = None;
        Throttle::Shut
    }

    /// Time for which nothing is to be done at this pace.
    pub(super) fn rest(&self, may: Allowed, live: Sectors, now: Nanos) -> Nanos {
        let rate = match may {
            Allowed::Rate(rate) => rate,
            Allowed::Nothing => return SLOW_TICK,
            // `sync_max` is far ahead, and a foreground is not polled more often.
            Allowed::All => return MAX_TICK,
        };
        if let Some((began, _)) = self.step {
            let so_far = now.0.saturating_sub(began.0);
            return Nanos(so_far / POLL_DIVISOR).clamp(FINE_TICK, SLOW_TICK);
        }
        let is_let_go = self.ahead(live).0 > 0 && !self.shut;
        if is_let_go || self.waits.is_some() {
            return FINE_TICK;
        }
        let lacks = (self.step(rate).bytes().0 + self.ahead(live).bytes().0) as f64 - self.credit;
        let rest = Nanos((lacks.max(0.0) / rate.max(1.0) * 1e9) as u64);
        rest.clamp(TICK, SLOW_TICK)
    }

    /// True if it should be raised, as far as the rate allows.
    pub(super) fn is_wanted(&self, may: Allowed, live: Sectors, now: Nanos) -> bool {
        // Where it must stand, it does until what is done was kept.
        if self.is_last() || self.must_stand(now) {
            return false;
        }
        let ahead = self.ahead(live);
        match may {
            Allowed::Nothing => false,
            Allowed::All => ahead.bytes().0 as f64 <= RAISED_AT * self.reach(),
            // How long it takes is seen only where it begins when md stands.
            Allowed::Rate(_) if self.spares_all() && ahead.0 > 0 => false,
            Allowed::Rate(rate) => {
                let step = self.step(rate);
                let spent = ahead.bytes().0 as f64;
                ahead.0 * 2 <= step.0 && self.credit - spent >= step.bytes().0 as f64
            }
        }
    }

    /// Raises it and gives where it is now; `None` while a step waits, because more requests are `in_flight`
    /// than at other moments.
    pub(super) fn raise(
        &mut self,
        may: Allowed,
        live: Sectors,
        in_flight: u64,
        now: Nanos,
    ) -> Option<Sectors> {
        if let Allowed::Rate(rate) = may
            && self.is_better_later(rate, in_flight as f64, now)
        {
            return None;
        }
        self.waits = None;
        let to = match may {
            Allowed::Nothing => return None,
            Allowed::Rate(rate) => Sectors(self.at.0 + self.step(rate).0),
            Allowed::All => {
                let ahead = Sectors::of(Bytes(self.reach() as u64));
                Sectors((live.0 + ahead.0).div_ceil(self.unit.0) * self.unit.0)
            }
        };
        let ends = self.last.into_iter().chain(self.stop).min();
        let to = ends.map_or(to, |ends| to.min(ends));
        if to <= self.at {
            return None;
        }
        let units = (to.0 - self.at.0) as f64 / self.unit.0 as f64;
        self.step = matches!(may, Allowed::Rate(_)).then_some((now, units));
        self.at = to;
        Some(to)
    }

    /// True if a step should wait for fewer requests in flight.
    fn is_better_later(&mut self, rate: f64, in_flight: f64, now: Nanos) -> bool {
        let since = *self.waits.get_or_insert_with(|| {
            // Only the first number is of any moment, and not of one that was waited for.
            let usual = self.usual.get_or_insert(in_flight);
            *usual += LAST_NUMBER_WEIGHT * (in_flight - *usual);
            now
        });
        let timeout = match self.spares_all() {
            false => TIMEOUT,
            true => {
                let interval = self.step(rate).bytes().0 as f64 / rate.max(1.0);
                Nanos((MAX_STEP_WAIT_SHARE * interval * 1e9) as u64).clamp(TIMEOUT, MAX_STEP_WAIT)
            }
        };
        let usual = self.usual.unwrap_or_default();
        in_flight > IN_FLIGHT_SHARE * usual && now.0.saturating_sub(since.0) < timeout.0
    }

    fn must_stand(&self, now: Nanos) -> bool {
        now.0.saturating_sub(self.stood.0) >= self.stands.0
    }

    /// Distance from md's position to `sync_max`.
    pub(super) fn ahead(&self, live: Sectors) -> Sectors {
        Sectors(self.at.0.saturating_sub(live.0))
    }

    /// Distance ahead of a check on an idle array, in bytes.
    fn reach(&self) -> f64 {
        (self.speed * AHEAD_S).max(MIN_AHEAD.0 as f64)
    }

    /// A step beside a foreground.
    fn step(&self, rate: f64) -> Sectors {
        let unit = self.unit.bytes().0 as f64;
        let most = (rate * STEP_S).min(MAX_STEP.0 as f64);
        let most = most.max(self.least.bytes().0 as f64);
        let bytes = match self.spares_all() {
            false => most,
            true => {
                // Until it is known how long one takes, it is the least.
                let fits = self.holds.zip(self.unit_s);
                let fits = fits.map_or(0.0, |(holds, unit_s)| unit * holds / unit_s.max(1e-6));
                fits.clamp((rate * MIN_STEP_S).min(most), most)
            }
        };
        Sectors(((bytes / unit) as u64).max(1) * self.unit.0)
    }
}

#[cfg(test)]
mod tests;
