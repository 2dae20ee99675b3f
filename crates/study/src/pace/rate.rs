//! The background's rate beside a foreground: the least of what the mean, the p99, the foreground's throughput and the
//! plateau allow, times the back-off. docs/design/pacing.md calls this the rule.

use super::guard::{BackOff, LatencyWeight, MAX_GROWTH_PER_S, MeanGuard, SlowGuard};
use super::plateau::Plateau;
use super::{Sample, Targets};

/// Minimum rate of the background, as a share of what the device does with one request in flight. It lets the work
/// end, and costs the foreground less than 3 %.
const MIN_RATE_SHARE: f64 = 0.02;
/// Upper and lower bound of the least rate, in bytes a second; and the least rate until it is known what the device
/// gives.
pub const MAX_MIN_RATE: f64 = (1 << 20) as f64;
const LOWEST_MIN_RATE: f64 = MAX_MIN_RATE / 64.0;
const MIN_RATE_WHILE_UNKNOWN: f64 = MAX_MIN_RATE / 16.0;
/// Length of a span of work, in seconds, while the rate is sought from below or the throughput's bound moves: a
/// foreground that loses throughput is recognized after three cycles, and a loss by chance is forgotten as soon.
pub(super) const SEARCH_S: f64 = 0.5;
/// Growth of the rate within one span of work, as a logarithm, from which the span ends after [`SEARCH_S`]: half of
/// what a search grows in that time. A foreground's loss at such a rate is not yet known.
pub(super) const SEARCH_GROWTH: f64 = 0.5 * MAX_GROWTH_PER_S * SEARCH_S;
/// Multiple of the rate used over so many seconds, above which the rate does not grow (congestion window validation,
/// RFC 7661). md goes in steps of half a second.
const MAX_MULTIPLE_OF_USED: f64 = 3.0;
const USED_S: f64 = 2.0;
/// Time without a foreground request after which the rate does not grow, in seconds: nothing is learned.
const IDLE_S: f64 = 0.5;
/// Excess of slow requests over the usual share, which is a few times a p99's, that ends a search (a cumulative sum,
/// Page 1954); a mean of a second above its target ends it too. The last doubling is taken back.
const SLOW_ENDS_SEARCH: f64 = 2.0;
const USUAL_SLOW_SHARE: f64 = 0.025;
const MEAN_S: f64 = 1.0;
const SHARE_AFTER_HARM: f64 = 0.5;
/// Maximum factor by which one cycle of work and pause changes the throughput's bound: tested after each cycle, a
/// loss seems significant by chance now and then, and a rate that fell to a twentieth at once would take a minute to
/// recover.
const MAX_BOUND_CHANGE: f64 = 2.0;
/// The rate grows only while latencies come this often, in seconds.
const MAX_LATENCY_GAP_S: f64 = 0.3;
/// Maximum distance of a guard's rate above the least of all, as a logarithm: a guard far above would be late when it
/// matters.
const MAX_GUARD_LEAD: f64 = std::f64::consts::LN_2;

/// Minimum rate on a device with this rate of one request after the other, both in bytes a second.
pub fn min_rate(device_rate: f64) -> f64 {
    (MIN_RATE_SHARE * device_rate).clamp(LOWEST_MIN_RATE, MAX_MIN_RATE)
}

/// Latencies to aim at, and the conditions in which the rate is steered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steering {
    /// Latencies by which the rate is steered.
    pub(super) aims: Targets,
    /// True if the p99's target is one that was asked for.
    pub(super) is_p99_asked: bool,
    /// True if the background goes in steps.
    pub(super) is_stepped: bool,
    /// True if a deadline's rate is in use instead of this one.
    pub(super) is_driven: bool,
}

/// The rate beside a foreground.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    /// The rate, in bytes a second.
    pub(super) bytes_per_s: f64,
    /// Its minimum, in bytes a second.
    pub(super) least: f64,
    /// The rate without the back-off, as a logarithm.
    pub(super) log: f64,
    /// The same when this work began.
    pub(super) log_before: f64,
    /// The search from below, until it ends.
    pub(super) search: Option<Search>,
    pub(super) back_off: BackOff,
    pub(super) plateau: Plateau,
    mean: MeanGuard,
    slow: SlowGuard,
    /// Seconds that the next mean counts for.
    since_mean_s: f64,
    latency_weight: LatencyWeight,
    /// Rate in bytes a second up to which the foreground's throughput is kept.
    bound: Option<f64>,
    /// True if the last cycle moved the bound by far, so that it is not yet where it will settle.
    is_bound_sought: bool,
    /// Bytes a second of the last seconds, while the background works.
    used: f64,
    /// Seconds since the last foreground request.
    idle_s: f64,
}

/// The search from below.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Search {
    /// Slow requests beyond the usual.
    slow: f64,
    /// The mean as a share of its target, averaged from zero: the first probe is no mean of a second.
    mean: f64,
    /// Seconds since the last latency.
    unknown_s: f64,
}

/// Latencies of a sample as shares of their targets.
struct Shares {
    /// Those of single requests, and the weight of each.
    slow: Vec<f64>,
    weight: f64,
    /// The mean's.
    mean: Option<f64>,
}

impl Default for Rate {
    fn default() -> Rate {
        let log = MIN_RATE_WHILE_UNKNOWN.ln();
        Rate {
            bytes_per_s: MIN_RATE_WHILE_UNKNOWN,
            least: MIN_RATE_WHILE_UNKNOWN,
            log,
            log_before: log,
            search: None,
            back_off: BackOff::default(),
            plateau: Plateau::default(),
            mean: MeanGuard::default(),
            slow: SlowGuard::default(),
            since_mean_s: 0.0,
            latency_weight: LatencyWeight::default(),
            bound: None,
            is_bound_sought: false,
            used: 0.0,
            idle_s: 0.0,
        }
    }
}

impl Rate {
    /// Takes the device's rate of one request after the other, in bytes a second, or a lower bound of it.
    pub(super) fn set_device_rate(&mut self, bytes_per_s: f64, is_lower_bound: bool) {
        let least = min_rate(bytes_per_s);
        self.set_least(if is_lower_bound {
            least.max(MIN_RATE_WHILE_UNKNOWN)
        } else {
            least
        });
    }

    fn set_least(&mut self, least: f64) {
        let before = std::mem::replace(&mut self.least, least);
        // With a back-off the rate may be at its minimum while it grows without it.
        let keep = |value: f64, before: f64, least: f64| {
            if value <= before {
                least
            } else {
                value.max(least)
            }
        };
        self.log = keep(self.log, before.ln(), least.ln());
        self.bytes_per_s = keep(self.bytes_per_s, before, least);
    }

    /// Begins a search from below.
    pub(super) fn search_from_below(&mut self) {
        self.bytes_per_s = self.least;
        self.back_off = BackOff::default();
        self.plateau = Plateau::default();
        self.set(self.least.ln());
        self.search = Some(Search::default());
        self.bound = None;
        self.is_bound_sought = false;
    }

    /// Forgets the limits of the device.
    pub(super) fn forget_plateau(&mut self) {
        self.plateau = Plateau::default();
    }

    /// Goes on beside a foreground that has returned, with half of what the background had beside it.
    pub(super) fn resume_at_half(&mut self, log_rate: f64) {
        self.search = None;
        self.set(log_rate + SHARE_AFTER_HARM.ln());
    }

    /// Begins a span of work.
    pub(super) fn begin_work(&mut self) {
        self.log_before = self.log;
    }

    /// True if the span of work is to be short, since the rate or its bound is being sought.
    pub(super) fn is_sought(&self) -> bool {
        let has_grown = self.log - self.log_before >= SEARCH_GROWTH;
        self.is_bound_sought || self.search.is_some() && (self.may_grow() || has_grown)
    }

    /// True if the foreground's throughput limits the rate.
    pub(super) fn is_at_bound(&self) -> bool {
        self.bound.is_some_and(|bound| self.bytes_per_s >= bound)
    }

    /// True if the mean limits the rate more than the p99.
    pub(super) fn is_mean_below_p99(&self) -> bool {
        self.mean.log_rate < self.slow.log_rate
    }

    /// True if the effect of more background I/O would be seen: it uses what it is allowed, beside foreground
    /// requests.
    pub(super) fn may_grow(&self) -> bool {
        self.idle_s < IDLE_S && self.log <= MAX_MULTIPLE_OF_USED.ln() + self.log_used()
    }

    /// Logarithm of the rate that was used lately, and at least of the least rate.
    pub(super) fn log_used(&self) -> f64 {
        self.used.max(self.least).ln()
    }

    /// Takes the bound of the foreground's throughput at the end of a cycle, in bytes a second.
    pub(super) fn take_bound(&mut self, bound: Option<f64>) {
        let before = self.bound.unwrap_or(f64::INFINITY);
        let least = before.min(self.log.exp()) / MAX_BOUND_CHANGE;
        let bound = bound.unwrap_or(f64::INFINITY);
        let bound = bound.max(least).min(MAX_BOUND_CHANGE * before);
        let next = Some(bound).filter(|bound| bound.is_finite());
        self.is_bound_sought = self.moves_far(next);
        self.bound = next;
    }

    /// True if this next bound moves by more than half of what a cycle may move it, and limits the rate, or the last
    /// one did: far above the rate, the bound of a loss by chance doubles with each cycle and tells nothing. Below the
    /// minimum rate, which is kept anyway, it changes nothing.
    fn moves_far(&self, next: Option<f64>) -> bool {
        let before = self.bound.unwrap_or(f64::INFINITY).max(self.least);
        let next = next.unwrap_or(f64::INFINITY).max(self.least);
        let is_limit = before.min(next) < self.log.exp();
        let moved = (next / before).ln().abs();
        is_limit && moved > 0.5 * MAX_BOUND_CHANGE.ln()
    }

    /// Takes a sample of the background's work.
    pub(super) fn take(&mut self, steering: &Steering, sample: &Sample<'_>) {
        self.idle_s = match sample.foreground.requests {
            Some(requests) if requests <= 0.0 => self.idle_s + sample.seconds,
            _ => 0.0,
        };
        let weight = (sample.seconds / USED_S).min(1.0);
        self.used += weight * (sample.background / sample.seconds.max(1e-9) - self.used);
        let slow = shares_of_slow(&steering.aims, sample);
        let shares = Shares {
            mean: share_of_mean(&steering.aims, sample),
            weight: self.latency_weight.take(slow.len(), sample.seconds),
            slow,
        };
        let may_grow = self.may_grow();
        self.answer_slow_requests(steering, &shares, may_grow, sample);
        let growth = if may_grow {
            MAX_GROWTH_PER_S * sample.seconds
        } else {
            0.0
        };
        match self.search {
            Some(search) => self.search(search, &shares, growth, sample.seconds),
            None => self.settle(steering, &shares, growth, sample.seconds),
        }
        self.bytes_per_s = (self.log + self.back_off.log).exp();
        self.bytes_per_s = self
            .bytes_per_s
            .min(self.bound.unwrap_or(f64::INFINITY))
            .max(self.least);
    }

    /// Backs off at once from slow requests, and notes them for the plateau.
    fn answer_slow_requests(
        &mut self,
        steering: &Steering,
        shares: &Shares,
        may_grow: bool,
        sample: &Sample<'_>,
    ) {
        // A probe that is outstanding has no latency yet: each poll counts the time that it has waited.
        let slow_s = steering.aims.slow_s();
        let waits = slow_s.map(|slow_s| sample.waiting_s / slow_s);
        let is_slow = shares.slow.iter().chain(&waits).any(|share| *share > 1.0);
        self.plateau.pass(sample.seconds);
        // At the least rate nothing can be lowered, steps are not spread over time, and a deadline's rate is not this
        // one.
        if self.bytes_per_s > self.least && !steering.is_stepped && !steering.is_driven {
            self.plateau.take(
                is_slow,
                (self.bytes_per_s, self.log_used()),
                sample.seconds,
                sample.background,
            );
        }
        self.back_off.pass(sample.seconds);
        if !may_grow && shares.slow.iter().any(|share| *share > 1.0) {
            // It backs off from what it used, as a congestion window does (RFC 7661).
            self.back_off.begin_at(self.log_used() - self.log);
        }
        for share in &shares.slow {
            self.back_off.take(*share, shares.weight);
        }
        if let Some(share) = waits {
            self.back_off.take(share, 1.0);
        }
    }

    /// Raises the rate from below until the targets are first missed, or the plateau is exceeded.
    fn search(&mut self, mut search: Search, shares: &Shares, growth: f64, seconds: f64) {
        for share in &shares.slow {
            let slow = f64::from(u8::from(*share > 1.0));
            search.slow = (search.slow + slow - USUAL_SLOW_SHARE).max(0.0);
        }
        if let Some(share) = shares.mean {
            search.mean += (seconds / MEAN_S).min(1.0) * (share - search.mean);
        }
        search.unknown_s = if shares.slow.is_empty() && shares.mean.is_none() {
            search.unknown_s + seconds
        } else {
            0.0
        };
        let is_bound = self.bound.is_some_and(|bound| self.log >= bound.ln());
        let is_harm = search.slow >= SLOW_ENDS_SEARCH || search.mean > 1.0;
        let log_cap = self.plateau.log_cap().filter(|cap| self.log > *cap);
        let found = is_harm.then(|| self.log + SHARE_AFTER_HARM.ln());
        if let Some(log_rate) = found.or(log_cap) {
            self.search = None;
            self.set(log_rate);
            return;
        }
        self.search = Some(search);
        if growth > 0.0 && search.unknown_s < MAX_LATENCY_GAP_S && !is_bound {
            self.set(self.log + growth);
        }
    }

    /// Moves the rate to the highest at which the targets are met.
    fn settle(&mut self, steering: &Steering, shares: &Shares, growth: f64, seconds: f64) {
        let mut log_rate = self.log + growth;
        self.since_mean_s = (self.since_mean_s + seconds).min(MAX_LATENCY_GAP_S);
        if let Some(share) = shares.mean {
            self.mean
                .take(share, std::mem::take(&mut self.since_mean_s));
        }
        if steering.aims.p99_s.is_some() {
            self.slow
                .take(&shares.slow, shares.weight, seconds, steering.is_p99_asked);
            log_rate = log_rate.min(self.slow.log_rate);
        }
        if steering.aims.mean_s.is_some() {
            log_rate = log_rate.min(self.mean.log_rate);
        }
        let least = self.least.ln();
        let log_cap = self.plateau.log_cap().unwrap_or(f64::INFINITY);
        self.log = log_rate.min(log_cap).max(least);
        let within = |log: f64| log.clamp(least, self.log + MAX_GUARD_LEAD);
        self.slow.log_rate = within(self.slow.log_rate);
        self.mean.log_rate = within(self.mean.log_rate);
    }

    /// Sets the rate, and each guard's.
    pub(super) fn set(&mut self, log_rate: f64) {
        self.log = log_rate.max(self.least.ln());
        self.mean.log_rate = self.log;
        self.slow.log_rate = self.log;
    }
}

/// The mean of these as a share of its target.
fn share_of_mean(targets: &Targets, sample: &Sample<'_>) -> Option<f64> {
    let target_s = targets.mean_s?;
    let mean_s = match sample.timed {
        Some((requests, seconds)) if requests > 0.0 => seconds / requests,
        _ if sample.latencies_s.is_empty() => return None,
        _ => sample.latencies_s.iter().sum::<f64>() / sample.latencies_s.len() as f64,
    };
    Some(mean_s / target_s)
}

/// Latencies as shares of the target of single requests.
fn shares_of_slow(targets: &Targets, sample: &Sample<'_>) -> Vec<f64> {
    let Some(target_s) = targets.slow_s().filter(|target_s| *target_s > 0.0) else {
        return Vec::new();
    };
    sample
        .latencies_s
        .iter()
        .map(|one| one / target_s)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_moves_far_where_it_limits_the_rate_above_the_minimum() {
        let mut rate = Rate {
            least: 1e5,
            log: 1e6_f64.ln(),
            ..Rate::default()
        };
        for (before, next, moves_far) in [
            (None, Some(5e5), true),
            (Some(8e5), Some(4e5), true),
            (Some(8e5), Some(7e5), false),
            // Far above the rate.
            (Some(2e7), Some(1e7), false),
            (None, Some(1e7), false),
            // Below the minimum, which is kept anyway.
            (Some(8e4), Some(4e4), false),
        ] {
            rate.bound = before;
            assert_eq!(rate.moves_far(next), moves_far, "{before:?} {next:?}");
        }
    }
}
