//! The rate of a check in company: it grows while the foreground is well, and is cut when it is not.
//!
//! The rule is that of [`study::pace`]: additive increase, multiplicative decrease, with a memory of where
//! the target was passed (CUBIC, RFC 9438). What differs is what it is told: not a latency in each
//! interval, but a [`Verdict`](super::foreground_latency::Verdict) that has spent its evidence. A foreground that is slow by itself is not
//! guessed from that, but measured (`pace`).

/// What a cut leaves of the rate.
const CUT: f64 = 0.7;
/// What is left where the foreground suffers, and what the limit is then taken to be.
const LITTLE: f64 = 0.05;
const HALF: f64 = 0.5;
/// After a cut the rate returns to this share of that at which the target was passed.
const RETURN: f64 = 0.92;
/// How fast it returns: in so many seconds by all but a third of the way.
const RETURN_S: f64 = 2.0;
/// So long after a cut it does not grow: what is felt first was begun before.
const DEAF_S: f64 = 0.5;
/// A target that is passed again so soon after a cut has its limit lower.
const STILL_S: f64 = 4.0;
/// The growth beyond the limit, as a share of it a second, at first; it becomes e times as fast in so
/// many seconds.
const CREEP: f64 = 0.002;
const CREEP_FASTER_S: f64 = 10.0;
/// Growth a second, as a factor, where no limit is known.
const FREE: f64 = 2.0;

/// For each share of its target by which the mean is below, or above it, the rate grows, or falls, by so much a
/// second; down sooner than up, since the busier a queue is the more each request more adds to it. What is further
/// away than this counts as that.
const LEANS_UP: f64 = 0.3;
const LEANS_DOWN: f64 = 0.9;
const MOST_AWAY: f64 = 0.3;
/// A mean below this share of its target is clearly below it.
const CLEARLY: f64 = 0.85;

/// Bytes a second.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    least: f64,
    allowed: f64,
    limit: Option<f64>,
    since_cut_s: f64,
}

impl Rate {
    /// Begins at the least.
    pub(super) fn new(least: f64) -> Rate {
        Rate {
            least,
            allowed: least,
            limit: None,
            since_cut_s: f64::INFINITY,
        }
    }

    /// From now on it falls no lower than this. What was the least stays it, or a least that wanders would
    /// hide for how long the rate has been there.
    pub(super) fn falls_to(&mut self, least: f64) {
        let was_least = self.is_least();
        self.least = least;
        self.allowed = if was_least {
            least
        } else {
            self.allowed.max(least)
        };
    }

    /// Below this it does not fall.
    pub(super) fn least(&self) -> f64 {
        self.least
    }

    /// What is allowed now.
    pub(super) fn allowed(&self) -> f64 {
        self.allowed
    }

    /// Whether it can be no less.
    pub(super) fn is_least(&self) -> bool {
        self.allowed <= self.least
    }

    /// So many seconds passed.
    pub(super) fn pass(&mut self, seconds: f64) {
        self.since_cut_s += seconds;
    }

    /// The foreground was well for so many seconds, in which all that was allowed was used.
    pub(super) fn grow(&mut self, seconds: f64) {
        if self.since_cut_s < DEAF_S {
            return;
        }
        let to = match self.limit {
            None => self.allowed * FREE.powf(seconds),
            Some(limit) if self.allowed < RETURN * limit => {
                let way = 1.0 - (-seconds / RETURN_S).exp();
                // Beyond by a trifle, or the way would never end.
                self.allowed + way * ((RETURN + 0.01) * limit - self.allowed)
            }
            Some(limit) => {
                let faster = (self.since_cut_s.min(1e3) / CREEP_FASTER_S).exp();
                let step = CREEP * faster * limit * seconds;
                self.allowed + step.min((FREE - 1.0) * seconds * self.allowed)
            }
        };
        if to.is_finite() {
            self.allowed = to.max(self.least);
        }
    }

    /// The mean that is felt is this share of its target, for so many seconds: the rate leans to where it is met.
    /// What was felt in a moment says little, so that it leans slowly; but where the mean is clearly below, it returns
    /// to the limit, or looks for one where none is known.
    pub(super) fn lean(&mut self, share: f64, seconds: f64) {
        if self.since_cut_s < DEAF_S {
            return;
        }
        let away = (1.0 - share).clamp(-MOST_AWAY, MOST_AWAY);
        let leans = if away > 0.0 { LEANS_UP } else { LEANS_DOWN };
        let to = match self.limit {
            None if share < CLEARLY => self.allowed * FREE.powf(seconds),
            Some(limit) if share < CLEARLY && self.allowed < RETURN * limit => {
                let way = 1.0 - (-seconds / RETURN_S).exp();
                self.allowed + way * ((RETURN + 0.01) * limit - self.allowed)
            }
            _ => self.allowed * (leans * away * seconds).exp(),
        };
        // Where the mean is above its target, there is no limit above.
        if away < 0.0 {
            self.limit = self.limit.map(|limit| limit.min(to / RETURN));
        }
        if to.is_finite() {
            self.allowed = to.max(self.least);
        }
    }

    /// The target was passed at `used` bytes a second.
    pub(super) fn cut(&mut self, used: f64) {
        // A limit comes down by little, so that a few bad moments do not pull it to the floor, unless
        // the target is passed still.
        let known = self.limit.filter(|_| self.since_cut_s >= STILL_S);
        let used = self.within(used);
        let limit = known.map_or(used, |limit| used.max(RETURN * limit));
        self.lower(CUT * used, limit);
    }

    /// The target was passed by far.
    pub(super) fn collapse(&mut self, used: f64) {
        let used = self.within(used);
        self.lower(LITTLE * used, HALF * used);
    }

    fn within(&self, used: f64) -> f64 {
        used.clamp(self.least, self.allowed.max(self.least))
    }

    fn lower(&mut self, to: f64, limit: f64) {
        // At the floor nothing is learned of where the limit is.
        self.limit = Some(limit).filter(|limit| *limit > self.least);
        self.allowed = to.max(self.least);
        self.since_cut_s = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(rate: &mut Rate, seconds: f64) -> f64 {
        for _ in 0..(seconds * 2.0) as u32 {
            rate.pass(0.5);
            rate.grow(0.5);
        }
        rate.allowed()
    }

    #[test]
    fn it_returns_to_a_little_below_where_the_target_was_passed_and_stays_there() {
        let mut rate = Rate::new(1.0);
        assert!(grown(&mut rate, 7.0) > 100.0);
        rate.cut(100.0);
        assert!((rate.allowed() - 70.0).abs() < 1e-9);
        let after = grown(&mut rate, 10.0);
        assert!((90.0..98.0).contains(&after), "{after}");
        // Nobody else is there any more: some minutes later it is far beyond.
        assert!(grown(&mut rate, 180.0) > 1000.0);
    }

    #[test]
    fn it_leans_to_where_the_mean_meets_its_target_and_stays_about_there() {
        // The mean is that of the foreground alone, two thirds of the target, and what the rate adds.
        let share = |rate: f64| 0.667 + rate / 300.0;
        for (begins, cut) in [(1.0, false), (900.0, false), (900.0, true)] {
            let mut rate = Rate::new(1.0);
            rate.allowed = begins;
            if cut {
                rate.cut(begins);
            }
            for _ in 0..240 {
                rate.pass(0.5);
                rate.lean(share(rate.allowed()), 0.5);
            }
            let after = rate.allowed();
            assert!((85.0..115.0).contains(&after), "{after} from {begins}");
            // A moment in which it is a little below, or well below, is no reason to leap.
            for (share, most) in [(0.99, 1.01), (0.5, 1.6)] {
                let mut rate = rate.clone();
                rate.limit = rate.limit.or(Some(after));
                rate.lean(share, 0.5);
                assert!(
                    rate.allowed() < most * after,
                    "{} at {share}",
                    rate.allowed()
                );
            }
        }
    }

    #[test]
    fn it_follows_a_least_that_moves_from_there_and_from_above_only_where_it_must() {
        let mut rate = Rate::new(1.0);
        for least in [8.0, 2.0] {
            rate.falls_to(least);
            assert!(rate.is_least() && (rate.allowed() - least).abs() < 1e-9);
        }
        let above = grown(&mut rate, 3.0);
        rate.falls_to(1.0);
        assert!(!rate.is_least() && rate.allowed() >= above);
        rate.falls_to(2.0 * above);
        assert!(rate.is_least());
    }

    #[test]
    fn what_is_passed_still_has_its_limit_lower_and_it_never_ends() {
        let mut rate = Rate::new(1.0);
        grown(&mut rate, 7.0);
        (0..20).for_each(|_| rate.collapse(rate.allowed()));
        assert!(rate.is_least());
        assert!(grown(&mut rate, 30.0) > 1.0, "it begins anew");
    }
}
