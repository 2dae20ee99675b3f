//! The plateau just below a limit of the device: a rate at which foreground and background were delayed twice.
//!
//! Below a cap no request is delayed, above it all are. An integrator raises the rate until requests are slow, so it
//! would exceed the cap every few seconds, by as much as it grows meanwhile. So the rate returns quickly to just below
//! the rate at which that happened, stays there for seconds, and then grows slowly at first: the cubic function of
//! CUBIC (RFC 9438, section 4.2), of the rate's logarithm. Times are those of work, without pauses.
//!
//! A device may save up what is not used of a cap, so that for a moment it gives more: the limit is not the rate of the
//! moment, but what the background had over the last seconds.

/// Share of the allowed rate below which the background counts as delayed: a tenth of a poll of 40 ms is the wait of a
/// cap that is exceeded by little.
const SHORT: f64 = 0.9;
/// Bytes that the background may lag without counting as delayed: a few requests.
const REQUESTS: f64 = (256 << 10) as f64;
/// Time without slow requests after which others are a new harm, in seconds.
const APART_S: f64 = 0.5;
/// Maximum distance of two rates, as logarithms, that count as the same limit.
const SAME: f64 = 0.2;
/// Number of successive polls with a slow request that are no chance.
const NO_CHANCE: u32 = 2;
/// Distance below the limit at which the plateau begins, as a logarithm: CUBIC gives up more of its window, but here
/// the back-off already lowers the rate.
const DEPTH: f64 = 0.1;
/// Time after which the limit is reached again, in seconds. After twice that it is exceeded by [`DEPTH`]. The time
/// doubles each time that the limit was reached and harm came again, so that a limit which stays where it is, is exceeded
/// less often.
const RETURN_S: f64 = 6.0;
/// Maximum of that time, in seconds: after twice that, the rate finds out that the foreground needs less.
const MAX_RETURN_S: f64 = 24.0;
/// Multiple of that time after which a limit is forgotten: the rate may be twice as high by then.
const FORGOTTEN_AFTER: f64 = 3.0;

/// Highest rate that a limit of the device allows, by the rates at which the foreground was slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plateau {
    /// Seconds since the last slow request.
    since_slow_s: f64,
    /// Successive polls with a slow request.
    slow_polls: u32,
    /// Logarithm of the rate before the first slow request of the present moment; the rate has backed off since.
    log_rate: f64,
    /// True if the present moment is recorded in `harm`.
    is_noted: bool,
    /// The last harm.
    harm: Option<Harm>,
}

/// A moment in which foreground and background were delayed.
#[derive(Clone, Copy, Debug)]
struct Harm {
    /// Logarithm of the rate: the mean of those that count as the same limit, later ones counting more.
    log_rate: f64,
    /// Time after which it is reached again, in seconds; `None` if the harm before it was not at the same limit.
    return_s: Option<f64>,
    age_s: f64,
}

impl Harm {
    /// Time to reach the limit after the next harm at it, in seconds. If the harm came before the limit was reached, the
    /// cause is another one or the limit is lower now, and the time is short again.
    fn next_return_s(&self) -> f64 {
        let reached = self.return_s.filter(|return_s| self.age_s >= *return_s);
        reached.map_or(RETURN_S, |return_s| (2.0 * return_s).min(MAX_RETURN_S))
    }

    fn is_remembered(&self) -> bool {
        self.age_s < FORGOTTEN_AFTER * self.return_s.unwrap_or(RETURN_S)
    }
}

impl Default for Plateau {
    fn default() -> Plateau {
        Plateau {
            since_slow_s: APART_S,
            slow_polls: 0,
            log_rate: 0.0,
            is_noted: false,
            harm: None,
        }
    }
}

impl Plateau {
    /// Lets `seconds` of work pass.
    pub(super) fn pass(&mut self, seconds: f64) {
        self.since_slow_s += seconds;
        if let Some(harm) = &mut self.harm {
            harm.age_s += seconds;
        }
        self.harm = self.harm.filter(Harm::is_remembered);
    }

    /// Takes a poll of `seconds`, which have passed: whether a foreground request was slow, the allowed rate in bytes a
    /// second, the logarithm of the rate that was used over the last seconds, and the bytes that the background did. A
    /// request that is slow by chance delays no others.
    pub(super) fn take(
        &mut self,
        is_slow: bool,
        (allowed, log_used): (f64, f64),
        seconds: f64,
        background: f64,
    ) {
        if !is_slow {
            self.slow_polls = 0;
            return;
        }
        self.slow_polls += 1;
        if self.since_slow_s >= APART_S {
            (self.log_rate, self.is_noted) = (allowed.ln().min(log_used), false);
        }
        self.since_slow_s = 0.0;
        if self.is_noted {
            return;
        }
        if background < SHORT * allowed * seconds - REQUESTS {
            self.note_harm();
        } else if self.slow_polls >= NO_CHANCE {
            self.touch();
        }
    }

    /// The last harm, if it was at the limit at which requests are slow now.
    fn same(&self) -> Option<Harm> {
        self.harm
            .filter(|harm| (self.log_rate - harm.log_rate).abs() < SAME)
    }

    fn note_harm(&mut self) {
        let before = self.same();
        let mean = |before: Harm| 0.5 * (before.log_rate + self.log_rate);
        self.harm = Some(Harm {
            log_rate: before.map_or(self.log_rate, mean),
            return_s: before.as_ref().map(Harm::next_return_s),
            age_s: 0.0,
        });
        self.is_noted = true;
    }

    /// A known limit that is exceeded by little delays the foreground alone. The limit stays where it is.
    fn touch(&mut self) {
        let known = self.same().filter(|harm| harm.return_s.is_some());
        if let Some(harm) = known {
            self.harm = Some(Harm {
                return_s: Some(harm.next_return_s()),
                age_s: 0.0,
                ..harm
            });
            self.is_noted = true;
        }
    }

    /// Logarithm of the highest rate now; `None` where no limit is known.
    pub(super) fn log_cap(&self) -> Option<f64> {
        let harm = self.harm?;
        let return_s = harm.return_s?;
        let from_limit = (harm.age_s - return_s) / return_s;
        Some(harm.log_rate + DEPTH * from_limit.powi(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A poll of a tenth of a second in which a request was slow, and the background got this share of its rate.
    fn slow(plateau: &mut Plateau, log_rate: f64, share: f64) {
        plateau.pass(0.1);
        let rate = log_rate.exp();
        plateau.take(true, (rate, log_rate), 0.1, share * 0.1 * rate);
    }

    /// So many seconds without a slow request.
    fn quiet(plateau: &mut Plateau, seconds: f64) {
        plateau.pass(seconds);
        plateau.take(false, (1e6, 1e6_f64.ln()), seconds, 0.0);
    }

    /// A plateau after harms at these rates, so many seconds apart.
    fn after(log_rates: &[f64], apart_s: f64) -> Plateau {
        let mut plateau = Plateau::default();
        for log_rate in log_rates {
            quiet(&mut plateau, apart_s);
            slow(&mut plateau, *log_rate, 0.2);
        }
        plateau
    }

    #[test]
    fn a_limit_is_where_the_foreground_was_harmed_twice() {
        assert_eq!(after(&[18.0], 1.0).log_cap(), None);
        assert_eq!(after(&[18.0, 19.0], 1.0).log_cap(), None);
        assert_eq!(after(&[18.0, 19.0, 18.0], 1.0).log_cap(), None);
        // Those of one moment are one.
        assert_eq!(after(&[18.0, 17.9, 17.5], 0.1).log_cap(), None);
        assert_eq!(after(&[18.0, 18.0], 3.0 * RETURN_S).log_cap(), None);
        let log_cap = after(&[18.0, 18.1], 1.0).log_cap().unwrap();
        assert!((log_cap - (18.05 - DEPTH)).abs() < 1e-9, "{log_cap}");
    }

    #[test]
    fn a_request_that_is_slow_by_chance_is_no_harm() {
        let mut plateau = Plateau::default();
        slow(&mut plateau, 18.0, 0.95);
        assert!(plateau.harm.is_none());
        // The rate at the first of them counts.
        slow(&mut plateau, 17.8, 0.2);
        assert_eq!(plateau.harm.map(|harm| harm.log_rate), Some(18.0));
        // A few requests are no measure.
        let mut plateau = Plateau::default();
        slow(&mut plateau, 14.0, 0.0);
        assert!(plateau.harm.is_none());
    }

    #[test]
    fn it_is_reached_after_seconds_and_exceeded_slowly_at_first() {
        let mut plateau = after(&[18.0, 18.0], 1.0);
        for share in [-0.125, 0.0, 0.125, 1.0] {
            quiet(&mut plateau, RETURN_S / 2.0);
            let over = plateau.log_cap().unwrap() - 18.0;
            assert!((over - share * DEPTH).abs() < 1e-9, "{over}");
        }
    }

    #[test]
    fn the_limit_is_what_was_used_and_not_the_rate_of_a_moment() {
        let mut plateau = Plateau::default();
        for _ in 0..2 {
            quiet(&mut plateau, 1.0);
            plateau.take(true, (1.3e8, 1.1e8_f64.ln()), 0.1, 0.0);
        }
        let log_cap = plateau.log_cap().unwrap();
        assert!((log_cap - (1.1e8_f64.ln() - DEPTH)).abs() < 1e-9);
    }

    #[test]
    fn a_limit_that_was_found_more_often_is_exceeded_less_often() {
        let mut plateau = after(&[18.0, 18.0], 1.0);
        for return_s in [6.0, 12.0, 24.0, 24.0] {
            quiet(&mut plateau, return_s);
            assert_eq!(plateau.log_cap(), Some(18.0));
            slow(&mut plateau, 18.0, 0.2);
        }
        quiet(&mut plateau, 2.9 * MAX_RETURN_S);
        assert!(plateau.log_cap().is_some());
        quiet(&mut plateau, 0.1 * MAX_RETURN_S);
        assert_eq!(plateau.log_cap(), None);
    }

    #[test]
    fn harm_below_the_limit_does_not_lower_it() {
        // A host that stands still now and then, whatever the rate.
        let mut plateau = after(&[18.0, 18.0], 1.0);
        let mut log_rate = 18.0_f64;
        for _ in 0..20 {
            quiet(&mut plateau, 10.0);
            log_rate = plateau.log_cap().unwrap_or(log_rate);
            slow(&mut plateau, log_rate, 0.2);
        }
        assert!(log_rate >= 18.0, "{log_rate}");
    }

    #[test]
    fn a_known_limit_is_touched_by_two_slow_polls_and_does_not_sink() {
        let mut plateau = after(&[18.0, 18.0], 1.0);
        quiet(&mut plateau, RETURN_S);
        slow(&mut plateau, 17.9, 1.0);
        assert!(plateau.log_cap().unwrap() > 18.0 - 1e-9, "one is chance");
        slow(&mut plateau, 17.7, 1.0);
        assert_eq!(plateau.log_cap(), Some(18.0 - DEPTH));
        // By chance one every two seconds: it is exceeded, and forgotten.
        for _ in 0..20 {
            quiet(&mut plateau, 2.0);
            slow(&mut plateau, 17.9, 1.0);
        }
        assert_eq!(plateau.log_cap(), None);
    }
}
