//! The plateau below a limit of the device: a rate at which the foreground was harmed twice in a row.
//!
//! A cap delays nothing below it, and everything above it: by an integrator, which moves until requests are slow, the
//! rate would exceed the cap every few seconds, by as much as it grows meanwhile. So it returns quickly to just below
//! the rate at which that happened, stays there for seconds, and then grows slowly at first: the cubic function of
//! CUBIC (RFC 9438, section 4.2), of the rate's logarithm.

/// Share of the allowed rate below which the background falls short, …
const SHORT: f64 = 0.8;
/// … and bytes that it may be behind anyway: a request, of which a step of a comparison has the most.
const REQUEST: f64 = (256 << 10) as f64;
/// Time without slow requests after which others are a new harm, in seconds.
const APART_S: f64 = 0.5;
/// Maximum distance of two rates, as logarithms, that are the same limit. Stalls of a host come at any rate.
const SAME: f64 = 0.2;
/// Distance below the limit at which the plateau begins, as a logarithm: the share of CUBIC's window that is given up
/// would be more, but the back-off already lowers the rate.
const DEPTH: f64 = 0.1;
/// Time after which the limit is reached again, in seconds. After twice that it is exceeded by [`DEPTH`].
const RETURN_S: f64 = 6.0;

/// Highest rate that a limit of the device allows, by the rates at which the foreground was slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plateau {
    /// Seconds since the last slow request.
    since_slow_s: f64,
    /// Logarithm of the rate at the first of the last slow requests, from which it has backed off since.
    log_rate: f64,
    /// True if these are a part of `harm`.
    is_noted: bool,
    /// The last harm.
    harm: Option<Harm>,
}

#[derive(Clone, Copy, Debug)]
struct Harm {
    /// Logarithm of the rate at which it happened: the mean of those that are the same, later ones counting more.
    log_rate: f64,
    /// True if the one before it happened at the same rate.
    is_repeated: bool,
    age_s: f64,
}

impl Default for Plateau {
    fn default() -> Plateau {
        Plateau {
            since_slow_s: APART_S,
            log_rate: 0.0,
            is_noted: false,
            harm: None,
        }
    }
}

impl Plateau {
    /// Takes an interval of `seconds`: whether a foreground request was slow, the rate that was allowed, and the bytes
    /// that the background did. Harm is that both are late, the foreground and the background: a request that is slow
    /// by chance delays no others.
    pub(super) fn take(&mut self, is_slow: bool, rate: f64, seconds: f64, background: f64) {
        self.since_slow_s += seconds;
        if let Some(harm) = &mut self.harm {
            harm.age_s += seconds;
        }
        if !is_slow {
            return;
        }
        if self.since_slow_s >= APART_S {
            (self.log_rate, self.is_noted) = (rate.ln(), false);
        }
        self.since_slow_s = 0.0;
        let falls_short = background < SHORT * rate * seconds - REQUEST;
        // Where the limit is known, it is touched before it delays the background.
        let is_known = self.same().is_some_and(|harm| harm.is_repeated);
        if (falls_short || is_known) && !self.is_noted {
            self.note_harm();
        }
    }

    /// The last harm, if it happened at the rate at which requests are slow now.
    fn same(&self) -> Option<Harm> {
        self.harm
            .filter(|harm| (self.log_rate - harm.log_rate).abs() < SAME)
    }

    fn note_harm(&mut self) {
        let before = self.same();
        let mean = |before: Harm| 0.5 * (before.log_rate + self.log_rate);
        self.harm = Some(Harm {
            log_rate: before.map_or(self.log_rate, mean),
            is_repeated: before.is_some(),
            age_s: 0.0,
        });
        self.is_noted = true;
    }

    /// Logarithm of the highest rate now; `None` where no limit is known.
    pub(super) fn log_cap(&self) -> Option<f64> {
        let harm = self.harm.filter(|harm| harm.is_repeated)?;
        let from_limit = (harm.age_s - RETURN_S) / RETURN_S;
        Some(harm.log_rate + DEPTH * from_limit.powi(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes an interval of a tenth of a second in which a request was slow, and the background got this share of its
    /// rate.
    fn slow(plateau: &mut Plateau, log_rate: f64, share: f64) {
        plateau.take(true, log_rate.exp(), 0.1, share * 0.1 * log_rate.exp());
    }

    /// A plateau after harms at these rates, so many seconds apart.
    fn after(log_rates: &[f64], apart_s: f64) -> Plateau {
        let mut plateau = Plateau::default();
        for log_rate in log_rates {
            plateau.take(false, log_rate.exp(), apart_s, apart_s * log_rate.exp());
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
        let mut caps = Vec::new();
        for _ in 0..4 {
            plateau.take(false, 1e6, RETURN_S / 2.0, 0.0);
            caps.push(plateau.log_cap().unwrap() - 18.0);
        }
        for (cap, share) in caps.iter().zip([-0.125, 0.0, 0.125, 1.0]) {
            assert!((cap - share * DEPTH).abs() < 1e-9, "{caps:?}");
        }
    }
}
