//! `sync_max`, the position up to which md may check, and the steps by which it is raised.

use linux::md::sync::{Sectors, Tunable};
use record::{Bytes, Nanos};

use study::pace::Allowed;

/// Speed limit that no array reaches, in KiB a second.
const NO_SPEED_LIMIT_KIB: u64 = 10_000_000;
/// Minimum speed limit that md accepts, in KiB a second.
const MIN_SPEED_LIMIT_KIB: u64 = 1;
/// Sectors that md checks at once with RAID 1 and 10 (`RESYNC_BLOCK_SIZE`, drivers/md/raid1-10.c): md rounds smaller
/// steps up to it.
const BLOCK: Sectors = Sectors(128);
/// Work of a step beside a foreground, in seconds at the allowed rate.
const STEP_S: f64 = 0.5;
/// Minimum step, in sectors of each member. Each step costs writes of the superblock: one for each time that the step
/// can be halved.
const MIN_STEP: Sectors = Sectors(2048);
/// Where all foreground requests wait for a step of md's check (RAID 10): maximum duration of a step, as a share of the
/// p99 target. In a longer step the members are idle for most of the time, although the foreground waits.
const MAX_STEP_SHARE: f64 = 0.5;
/// Minimum work of a step for which all foreground requests wait, in seconds at the allowed rate, and at least one
/// unit: below that the superblocks cost more than is gained.
const MIN_STEP_S: f64 = 0.1;
/// Largest step beside a foreground.
const MAX_STEP: Bytes = Bytes::mib(64);
/// Weight of the last step in the duration of a unit.
const LAST_STEP_WEIGHT: f64 = 0.2;
/// Distance of `sync_max` ahead of md without a foreground, in seconds of md's rate. md drains halfway between its last
/// drain and `sync_max`, so `sync_max` is raised each quarter of the distance: then md drains once in that time.
const AHEAD_S: f64 = 2.75;
/// Minimum distance of `sync_max` ahead of md without a foreground.
const MIN_AHEAD: Bytes = Bytes::mib(16);
/// Remaining share of the distance at which `sync_max` is raised.
const RAISED_AT: f64 = 0.75;
/// Time until md first stops at `sync_max`, where the progress is known exactly. It is doubled each time, so that
/// little is lost where a machine crashes soon after the start.
const FIRST_SYNC_MAX_DELAY: Nanos = Nanos(2_500_000_000);
/// Maximum time between two stops at `sync_max`.
const SYNC_MAX_DELAY: Nanos = Nanos(20_000_000_000);
/// Maximum lag or lead, in seconds of the allowed rate, that is made up for.
const MAX_CATCH_UP_S: f64 = 4.0;
/// Share of the usual number of requests in flight for which a step waits.
const IN_FLIGHT_SHARE: f64 = 0.5;
/// Maximum wait of a step for fewer requests in flight.
const TIMEOUT: Nanos = Nanos(20_000_000);
/// Maximum wait of a step for which all foreground requests wait: with fewer requests in flight it begins sooner.
const MAX_STEP_WAIT: Nanos = Nanos(100_000_000);
/// Maximum of this wait as a share of the time between two steps.
const MAX_STEP_WAIT_SHARE: f64 = 0.25;
/// Weight of the last number of requests in flight in the usual number.
const LAST_NUMBER_WEIGHT: f64 = 0.05;
/// Seconds over which md's rate is averaged.
const AVERAGE_S: f64 = 1.0;

/// Minimum interval at which `sync_max` may be raised beside a foreground.
const TICK: Nanos = Nanos(20_000_000);
/// Maximum interval at which `sync_max` may be raised beside a foreground.
const SLOW_TICK: Nanos = Nanos(50_000_000);
/// Interval of polls while a step waits for fewer requests in flight, while md must be throttled soon, and at the start
/// of a step whose duration is measured.
const FINE_TICK: Nanos = Nanos(2_000_000);
/// While a step is measured, the interval of polls is the duration so far, divided by this.
const POLL_DIVISOR: u64 = 8;
/// Interval of polls without a foreground.
const MAX_TICK: Nanos = Nanos(100_000_000);

/// Throttling of md below `sync_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Throttle {
    /// md checks at full speed.
    Open,
    /// md yields to the foreground.
    Gentle,
    /// md stops: it is faster than the minimum limit, and sleeps until the limit is raised. It stops after the current
    /// block, but continues only up to half a second after the limit is raised.
    Shut,
}

/// True if a speed limit, in KiB a second, is one of those that `scrub` sets.
pub(crate) fn is_limit(kib: u64) -> bool {
    matches!(kib, MIN_SPEED_LIMIT_KIB | NO_SPEED_LIMIT_KIB)
}

impl Throttle {
    /// Speed limits of this throttling, in KiB a second.
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
    /// Minimum step where not all foreground requests wait for it.
    least: Sectors,
    /// True if all foreground requests wait for a step.
    holds_all: bool,
    /// True if a deadline has priority over the latency targets.
    hurries: bool,
    /// True if md is stopped before `sync_max`.
    shut: bool,
    /// End of the check, rounded up to a unit; `None` until it is known.
    last: Option<Sectors>,
    /// Maximum of `sync_max`, where it is before the end of the check.
    stop: Option<Sectors>,
    /// Bytes that md may check beyond its position; negative after it was faster than allowed.
    credit: f64,
    /// Rate that was last allowed, in bytes a second.
    rate: f64,
    /// Average rate of md, in bytes a second.
    speed: f64,
    /// Time at which md last stopped at `sync_max`.
    stood: Nanos,
    /// Time after `stood` at which md must stop at `sync_max` again.
    stands: Nanos,
    /// Time since which a step waits for fewer requests in flight.
    waits: Option<Nanos>,
    /// Usual number of requests in flight.
    usual: Option<f64>,
    /// Start and number of units of the current step.
    step: Option<(Nanos, f64)>,
    /// Duration of a unit beside a foreground, in seconds.
    unit_s: Option<f64>,
    /// Maximum duration of a step, in seconds.
    holds: Option<f64>,
}

impl SyncWindow {
    /// A window that ends where the check begins, rounded down to a valid `sync_max`. `wide` is the number of members
    /// that md reads at once.
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

    /// Sets whether all foreground requests wait for each request of the check. With RAID 10 all foreground requests in
    /// flight complete first, and none begins until the check's request of 64 KiB has completed (`raise_barrier`,
    /// drivers/md/raid10.c).
    pub(super) fn with_barrier_if(mut self, holds_all: bool) -> SyncWindow {
        self.holds_all = holds_all;
        self
    }

    /// Sets a maximum of `sync_max`, if one is given.
    pub(super) fn with_end(mut self, stop: Option<Sectors>) -> SyncWindow {
        self.stop = stop;
        self
    }

    /// True if md, which has checked everything up to `done`, has reached the maximum of `sync_max`.
    pub(super) fn has_stopped(&self, done: Sectors) -> bool {
        self.stop.is_some_and(|stop| done >= stop)
    }

    /// The last position up to `place` at which md may stop.
    pub(super) fn last_stop(&self, place: Sectors) -> Sectors {
        Sectors(place.0 / self.unit.0 * self.unit.0)
    }

    /// Unit: `sync_max` is a multiple of this.
    pub(super) fn unit(&self) -> Sectors {
        self.unit
    }

    /// Sets whether the rate follows a deadline, whatever the foreground's latency.
    pub(super) fn set_hurries(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// True if steps are as small as the foreground's latency demands.
    fn spares_all(&self) -> bool {
        self.holds_all && !self.hurries
    }

    /// Sets the latency target, in seconds, from which the maximum duration of a step follows.
    pub(super) fn keep(&mut self, latency: Option<f64>) {
        self.holds = latency.map(|latency| MAX_STEP_SHARE * latency);
    }

    /// Takes md's position. Where a step has just ended, returns md's rate beside a foreground, in bytes a second.
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

    /// Current `sync_max`.
    pub(super) fn at(&self) -> Sectors {
        self.at
    }

    /// Sets the end of the check.
    pub(super) fn ends_at(&mut self, of: Sectors) {
        self.last = Some(Sectors(of.0.div_ceil(self.unit.0) * self.unit.0));
    }

    /// True if `sync_max` has reached the end of the check.
    pub(super) fn is_last(&self) -> bool {
        self.last.is_some_and(|last| self.at >= last)
    }

    /// Notes that md stopped at `sync_max`, and that the progress was stored.
    pub(super) fn note_stop(&mut self, now: Nanos) {
        if self.must_stand(now) {
            self.stands = Nanos((2 * self.stands.0).min(SYNC_MAX_DELAY.0));
        }
        self.stood = now;
    }

    /// Takes md's progress, `bytes` in `seconds`, and returns the throttling from now on.
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
                // A step is short, and md would sleep for half a second after it was stopped. A distance that was set
                // on an idle array is long.
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
        // The duration of a step during which md is stopped is not known.
        self.step = None;
        Throttle::Shut
    }

    /// Time until the next action at this rate.
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

    /// True if `sync_max` should be raised, as far as the rate allows.
    pub(super) fn is_wanted(&self, may: Allowed, live: Sectors, now: Nanos) -> bool {
        // Where md must stop, it waits until the progress was stored.
        if self.is_last() || self.must_stand(now) {
            return false;
        }
        let ahead = self.ahead(live);
        match may {
            Allowed::Nothing => false,
            Allowed::All => ahead.bytes().0 as f64 <= RAISED_AT * self.reach(),
            // The duration of a step is known only if it begins while md waits at `sync_max`.
            Allowed::Rate(_) if self.spares_all() && ahead.0 > 0 => false,
            Allowed::Rate(rate) => {
                let step = self.step(rate);
                let spent = ahead.bytes().0 as f64;
                ahead.0 * 2 <= step.0 && self.credit - spent >= step.bytes().0 as f64
            }
        }
    }

    /// Raises `sync_max`, and returns its new value; `None` while a step waits because more requests are `in_flight`
    /// than usual.
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
            // Only the first number is that of a random moment; later ones were waited for.
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

    /// Distance of `sync_max` ahead of md on an idle array, in bytes.
    fn reach(&self) -> f64 {
        (self.speed * AHEAD_S).max(MIN_AHEAD.0 as f64)
    }

    /// Size of a step beside a foreground at this rate in bytes a second.
    fn step(&self, rate: f64) -> Sectors {
        let unit = self.unit.bytes().0 as f64;
        let most = (rate * STEP_S).min(MAX_STEP.0 as f64);
        let most = most.max(self.least.bytes().0 as f64);
        let bytes = match self.spares_all() {
            false => most,
            true => {
                // Until the duration of a unit is known, the step is the minimum.
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
