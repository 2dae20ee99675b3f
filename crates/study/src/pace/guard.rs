//! Integrators of the background's rate, one for each latency target, and the back-off after slow requests.
//!
//! Each integrator moves the logarithm of its rate by its own error, so that the error is zero on average: the mean is
//! at its target, or about 25 probes in 1,000 are above that of the p99 (7 for a requested target) (Robbins and Monro
//! 1951, "A stochastic approximation method"). That is slow. Slow requests therefore also cause an immediate back-off,
//! which decays over a few seconds, while the integrators move to a rate without slow requests.

/// Decrease of the logarithm of the rate by one slow request.
const STEP: f64 = 0.2;
/// Increase of the logarithm of the rate by any other request.
const GROWTH: f64 = STEP / 100.0;
/// Number of requests without a slow one after which the growth is four times as fast; it grows with the square of
/// their number, since a short sequence is often chance. At the settled rate, about 25 in 1,000 are slow.
const FASTER_AFTER: f64 = 100.0;
/// Share of that number which a slow request leaves. Where one request in 100 is slow by chance, the rate doubles in 5 s;
/// if each slow one began anew, in 10 s.
const KEPT_BY_SLOW: f64 = 0.5;
/// Maximum of that number of which it leaves a share: by then the rate doubles in a second.
const MAX_WELL: f64 = 300.0;
/// The same growth for a requested target, which is to be met in most intervals of seconds: about 7 in 1,000 are slow
/// at the settled rate.
const GROWTH_ASKED: f64 = GROWTH / 10.0;
/// Logarithm by which the rate backs off after a slow request, multiplied by the request's latency as a share of its
/// target, up to [`MAX_SEVERITY`]: one very slow request counts as several.
const BACK_OFF: f64 = 0.2;
const MAX_SEVERITY: f64 = 4.0;
/// Time constant of the recovery, in seconds: about a third of the back-off is left.
const RECOVERS_S: f64 = 3.0;
/// Maximum back-off, as a logarithm.
const MAX_BACK_OFF: f64 = 6.0;
/// Change of the rate a second by a mean, as a logarithm, for each share of its target by which it is off. The mean of
/// a second's probes scatters by a fifth, which changes the rate by a tenth.
const GAIN: f64 = 0.6;
/// Maximum error of one sample.
const MAX_ERROR: f64 = 3.0;
/// Maximum time that one latency counts for, in seconds. It counts for the time since the preceding one, so that the
/// change of the rate in a second depends on the latencies of the probes, and not on their number.
const FULL_WEIGHT_S: f64 = 0.04;
/// Maximum growth of a rate, as a logarithm a second: doubling.
pub(super) const MAX_GROWTH_PER_S: f64 = std::f64::consts::LN_2;

/// Logarithm of the rate at which a mean latency is at its target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanGuard {
    pub(super) log_rate: f64,
}

impl MeanGuard {
    /// Adds a mean as a share of its target, measured over `seconds`.
    pub(super) fn take(&mut self, share: f64, seconds: f64) {
        let error = (1.0 - share).clamp(-MAX_ERROR, 1.0);
        self.log_rate += (GAIN * error).min(MAX_GROWTH_PER_S) * seconds;
    }
}

/// Logarithm of the rate at which a p99 is at its target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowGuard {
    pub(super) log_rate: f64,
    /// Weights of the requests since the last slow one, with what it left of those before, and number of consecutive
    /// slow ones.
    well: f64,
    in_row: f64,
}

impl SlowGuard {
    /// Adds latencies as shares of the target, each with this weight, from an interval of `seconds`.
    pub(super) fn take(&mut self, shares: &[f64], weight: f64, seconds: f64, is_asked: bool) {
        let step = if is_asked { GROWTH_ASKED } else { GROWTH };
        let mut growth = 0.0;
        for share in shares {
            if *share > 1.0 {
                // The more in a row, the less likely it is chance.
                self.in_row = (self.in_row + 1.0).min(MAX_SEVERITY);
                self.log_rate -= weight * STEP * self.in_row;
                self.well = if is_asked {
                    0.0
                } else {
                    KEPT_BY_SLOW * self.well.min(MAX_WELL)
                };
            } else {
                self.in_row = 0.0;
                self.well += weight;
                // The more were not slow, the more certain it is that the rate is too low.
                growth += weight * step * (1.0 + self.well / FASTER_AFTER).powi(2);
            }
        }
        self.log_rate += growth.min(MAX_GROWTH_PER_S * seconds);
    }
}

/// Weights of latencies, by the time that each counts for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatencyWeight {
    /// Seconds since the last latency.
    since_s: f64,
}

impl LatencyWeight {
    /// Weight of each of these latencies, which were measured within `seconds`.
    pub(super) fn take(&mut self, latencies: usize, seconds: f64) -> f64 {
        self.since_s += seconds;
        if latencies == 0 {
            return 0.0;
        }
        let each_s = std::mem::take(&mut self.since_s) / latencies as f64;
        (each_s / FULL_WEIGHT_S).min(1.0)
    }
}

/// Factor on the rate after slow requests, as a logarithm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackOff {
    pub(super) log: f64,
}

impl BackOff {
    /// Sets the back-off to at least this depth.
    pub(super) fn begin_at(&mut self, log: f64) {
        self.log = self.log.min(log).max(-MAX_BACK_OFF);
    }

    /// Adds one latency as a share of the target, with this weight.
    pub(super) fn take(&mut self, share: f64, weight: f64) {
        if share > 1.0 {
            self.log = (self.log - weight * BACK_OFF * share.min(MAX_SEVERITY)).max(-MAX_BACK_OFF);
        }
    }

    /// Lets the back-off recover for `seconds`.
    pub(super) fn pass(&mut self, seconds: f64) {
        self.log *= (-seconds / RECOVERS_S).exp();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Change of the p99's rate, as a logarithm, within a second of `polls` polls, each with `latencies` slow
    /// latencies.
    fn moved_in_a_second(polls: u32, latencies: usize) -> f64 {
        let seconds = 1.0 / f64::from(polls);
        let (mut weight, mut guard) = (LatencyWeight::default(), SlowGuard::default());
        for _ in 0..polls {
            let each = weight.take(latencies, seconds);
            guard.take(&vec![2.0; latencies], each, seconds, false);
        }
        guard.log_rate
    }

    #[test]
    fn more_probes_move_the_rate_no_faster() {
        let one = moved_in_a_second(50, 1);
        for (polls, latencies) in [(50, 2), (50, 8), (25, 1), (10, 10)] {
            let more = moved_in_a_second(polls, latencies);
            assert!(
                (0.9..1.1).contains(&(more / one)),
                "{polls} {latencies}: {more} {one}"
            );
        }
    }

    #[test]
    fn a_latency_counts_by_the_time_since_the_one_before() {
        let mut weight = LatencyWeight::default();
        assert_eq!(weight.take(1, 0.02), 0.5);
        assert_eq!(weight.take(2, 0.02), 0.25);
        // The time of polls without a latency counts for the next latency, whose weight is 1 at most.
        assert_eq!(weight.take(0, 0.01), 0.0);
        assert_eq!(weight.take(1, 0.01), 0.5);
        assert_eq!(weight.take(0, 10.0), 0.0);
        assert_eq!(weight.take(1, 0.02), 1.0);
        assert_eq!(weight.take(1, 0.02), 0.5);
    }

    #[test]
    fn a_back_off_begins_at_what_was_used_and_decays() {
        let mut back_off = BackOff::default();
        back_off.begin_at(-1.5);
        assert_eq!(back_off.log, -1.5);
        // A deeper back-off stays.
        back_off.begin_at(-1.0);
        back_off.begin_at(1.0);
        assert_eq!(back_off.log, -1.5);
        back_off.take(2.0, 1.0);
        assert_eq!(back_off.log, -1.5 - 2.0 * BACK_OFF);
        back_off.begin_at(-100.0);
        assert_eq!(back_off.log, -MAX_BACK_OFF);
        back_off.pass(RECOVERS_S);
        assert!((back_off.log + MAX_BACK_OFF / std::f64::consts::E).abs() < 1e-9);
    }
}
