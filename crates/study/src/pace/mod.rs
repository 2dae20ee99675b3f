//! Keeps a foreground's latency under a target while background work takes what is left.
//!
//! The rule is that of congestion control: grow slowly while all is well, cut by a factor when it is
//! not (additive increase, multiplicative decrease; Chiu and Jain 1989). A plain sawtooth would leave a
//! quarter of the disk unused, so the [`Pacer`] remembers the rate at which the target was passed, as CUBIC
//! does (Ha, Rhee and Xu 2008; RFC 9438): after a cut it returns quickly to a little below, stays there
//! long, and then goes beyond it, slowly at first.
//!
//! - **Cut**: in the interval in which the target is passed, to 0.7 of the rate that was really
//!   used. A queue of a cloud volume is short; half a second later the cut has shown what it does.
//! - **Hysteresis**: between 0.9 of the target and the target the rate stays.
//! - **Floor**: the background never gets less. Where the target is passed for three seconds at the
//!   floor, or still now and then after twenty seconds at a low rate, the background is not to blame: the
//!   foreground is slow by itself. Then what it has there is what it is held to, with some room, and the
//!   background grows until that gets worse. This indulgence fades.
//! - **Nobody there**: without a foreground the rate grows fast, and what was learned is forgotten.
//! - Where the foreground does not reach the target by itself, a [`Keeper`] listens first and holds it to
//!   what it has.
//! - A rate that the background does not use up does not grow (congestion window validation, RFC
//!   7661): how it does beyond what it uses is not known.

mod keeper;

pub use keeper::Keeper;

/// Share of the rate that a cut leaves.
const CUT: f64 = 0.7;
/// So long after a cut there is no other, in seconds: what is seen first was begun before.
const DEAF_S: f64 = 0.5;
/// Below this share of the target the rate may grow.
const CALM: f64 = 0.9;
/// After a cut the rate returns to this share of that at which the target was passed.
const RETURN: f64 = 0.92;
/// Time of the rate's return, in seconds, by all but a third of the way.
const RETURN_S: f64 = 0.7;
/// The growth beyond, as a share of the remembered rate a second, at first; it grows itself.
const CREEP: f64 = 0.0012;
/// In so many seconds the growth becomes e times as fast.
const CREEP_FASTER_S: f64 = 20.0;
/// Growth a second, as a factor, where no limit is known.
const FREE: f64 = 2.0;
/// The same where there is no foreground.
const ALONE: f64 = 4.0;
/// The background must use this share of its rate for it to grow.
const USED: f64 = 0.8;
/// The target may be passed so long at the floor before the background is no longer blamed, in seconds.
const PATIENCE_S: f64 = 3.0;
/// A target that is passed again so soon after a cut is passed still, in seconds.
const STILL_S: f64 = 1.0;
/// Multiple of the floor up to which a rate is low.
const NEAR_FLOOR: f64 = 4.0;
/// A rate below half of what it was lately is low too; so long, in seconds, it may be low before a target
/// that is passed nevertheless is put down to noise.
const STARVED_S: f64 = 20.0;
/// The room above what the foreground has by itself, if that is more than the target.
const ROOM: f64 = 1.5;
/// In so many seconds half of an indulgence is gone, and half of the highest rate is forgotten.
const MEMORY_S: f64 = 60.0;

/// The bounds of the background's rate, in any unit a second: bytes, operations, requests in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    floor: f64,
    ceiling: f64,
}

impl Rates {
    /// `None` where the floor is not positive, the ceiling is below it, or one of them is not finite.
    pub fn new(floor: f64, ceiling: f64) -> Option<Rates> {
        (floor > 0.0 && floor <= ceiling && ceiling.is_finite()).then_some(Rates { floor, ceiling })
    }
}

/// Measurements of an interval. Intervals of a quarter of a second to one second serve best. A percentile of
/// so few reads that chance alone passes the target (a p99 of fewer than some 200) costs the background
/// dearly; the mean is then the better measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Length, in seconds.
    pub seconds: f64,
    /// The foreground's latency in seconds, mean or percentile as the target has it; `None` where the
    /// foreground asked for nothing.
    pub foreground_s: Option<f64>,
    /// The rate of the background, in the unit of its bounds.
    pub background: f64,
}

/// Answers how much the background may do next.
#[derive(Clone, Debug)]
pub struct Pacer {
    rates: Rates,
    target_s: f64,
    allowed: f64,
    /// The rate at which the target was last passed.
    limit: Option<f64>,
    /// Seconds since the last cut.
    since_cut_s: f64,
    /// Seconds at the floor with the target passed.
    suffered_s: f64,
    /// The highest rate lately at which a foreground held the target.
    peak: f64,
    /// Seconds since the rate was half of that.
    starved_s: f64,
    /// The foreground's own latency, where it is more than the target.
    indulged_s: Option<f64>,
}

impl Pacer {
    /// Begins at the floor. `target_s` is the latency that the foreground shall not exceed, in seconds.
    /// `None` where it is not positive and finite.
    pub fn new(rates: Rates, target_s: f64) -> Option<Pacer> {
        (target_s > 0.0 && target_s.is_finite()).then_some(Pacer {
            rates,
            target_s,
            allowed: rates.floor,
            limit: None,
            since_cut_s: f64::INFINITY,
            suffered_s: 0.0,
            peak: rates.floor,
            starved_s: 0.0,
            indulged_s: None,
        })
    }

    /// The same, beginning at this rate, brought within the bounds: for a background that has run before.
    pub fn beginning_at(mut self, rate: f64) -> Pacer {
        if rate.is_finite() {
            self.allowed = rate.clamp(self.rates.floor, self.rates.ceiling);
        }
        self
    }

    /// Holds the foreground to another latency in seconds from now on; the rate goes on. One that is not
    /// positive and finite changes nothing.
    fn hold_to(&mut self, target_s: f64) {
        if target_s > 0.0 && target_s.is_finite() {
            self.target_s = target_s;
            self.indulged_s = None;
            self.suffered_s = 0.0;
            self.starved_s = 0.0;
        }
    }

    /// The rate now allowed.
    pub fn allowed(&self) -> f64 {
        self.allowed
    }

    /// The latency in seconds that the foreground is held to now: the target, or more where the foreground
    /// does not reach it by itself.
    pub fn held_to_s(&self) -> f64 {
        self.indulged_s
            .map_or(self.target_s, |own| self.target_s.max(ROOM * own))
    }

    /// Takes what an interval showed, and answers the rate allowed from now on. An interval that
    /// makes no sense changes nothing.
    pub fn observe(&mut self, interval: &Interval) -> f64 {
        let latency = interval.foreground_s;
        let sensible = interval.seconds > 0.0
            && interval.seconds.is_finite()
            && interval.background >= 0.0
            && latency.is_none_or(|latency| latency >= 0.0 && latency.is_finite());
        if !sensible {
            return self.allowed;
        }
        self.since_cut_s += interval.seconds;
        self.fade(interval.seconds);
        let uses = interval.background >= USED * self.allowed;
        match latency {
            None => {
                self.limit = None;
                self.peak = 0.0;
                self.grow(uses, ALONE.powf(interval.seconds));
            }
            Some(latency) if latency > self.held_to_s() => self.passed(latency, interval),
            Some(latency) => {
                self.suffered_s = 0.0;
                self.peak = self.peak.max(self.allowed);
                if latency < CALM * self.held_to_s() {
                    self.calm(uses, interval.seconds);
                }
            }
        }
        self.allowed
    }

    /// The target was passed.
    fn passed(&mut self, latency: f64, interval: &Interval) {
        if self.allowed <= self.rates.floor {
            self.suffered_s += interval.seconds;
        }
        if self.suffered_s >= PATIENCE_S || self.starved_s >= STARVED_S {
            self.indulge(latency);
        } else if self.since_cut_s >= DEAF_S {
            let used = interval.background.min(self.allowed);
            // One that is passed still, after a cut, has its limit lower. Otherwise a limit comes down by
            // little, so that a few bad moments do not pull it to the floor.
            let still = self.since_cut_s < STILL_S;
            let known = self.limit.filter(|_| !still);
            let limit = known.map_or(used, |limit| used.max(RETURN * limit));
            self.limit = Some(limit);
            self.allowed = (CUT * used).max(self.rates.floor);
            self.since_cut_s = 0.0;
        }
    }

    /// The target is passed though the background does little: it is not to blame.
    fn indulge(&mut self, latency: f64) {
        self.suffered_s = 0.0;
        self.starved_s = 0.0;
        self.limit = None;
        self.indulged_s = Some(latency);
    }

    /// The foreground is well.
    fn calm(&mut self, uses: bool, seconds: f64) {
        match self.limit {
            None => self.grow(uses, FREE.powf(seconds)),
            Some(limit) if self.allowed < RETURN * limit => {
                if self.since_cut_s >= DEAF_S {
                    let way = 1.0 - (-seconds / RETURN_S).exp();
                    // Beyond by a trifle, or the way would never end.
                    let to = (RETURN + 0.01) * limit;
                    self.grow(uses, 1.0 + way * (to - self.allowed) / self.allowed);
                }
            }
            Some(limit) => {
                let faster = (self.since_cut_s / CREEP_FASTER_S).exp();
                let step =
                    (CREEP * faster * limit * seconds).min((FREE - 1.0) * seconds * self.allowed);
                self.grow(uses, 1.0 + step / self.allowed);
            }
        }
    }

    fn grow(&mut self, uses: bool, factor: f64) {
        if uses {
            self.allowed = (self.allowed * factor).clamp(self.rates.floor, self.rates.ceiling);
        }
    }

    fn fade(&mut self, seconds: f64) {
        let left = 0.5f64.powf(seconds / MEMORY_S);
        self.peak *= left;
        let low = f64::max(0.5 * self.peak, NEAR_FLOOR * self.rates.floor);
        self.starved_s = if self.allowed < low.min(self.rates.ceiling) {
            self.starved_s + seconds
        } else {
            0.0
        };
        self.indulged_s = self
            .indulged_s
            .map(|own| own * left)
            .filter(|own| ROOM * own > self.target_s);
    }
}

#[cfg(test)]
mod tests;
