//! Search for the highest request rate whose 99th percentile of latency is within a target.
//!
//! A rate meets the target if at most one request in a hundred takes longer. Trials at rates that rise and then
//! converge show which rates significantly meet or miss the target; the answer is between them.

use crate::interval::mean_interval;

/// The share of requests that may take longer than the target.
const LATE_SHARE: f64 = 0.01;
/// Probability that chance alone gives a result.
const SIGNIFICANCE: f64 = 0.01;
/// Minimum share of the due requests that must complete, below which the disk does not keep up.
const MIN_COMPLETED_SHARE: f64 = 0.95;
/// Maximum number of trials; the search then ends with the known bounds.
pub const MAX_TRIALS: usize = 32;
/// Highest rate that is tried, in requests a second; the lowest is 1.
const MAX_RATE: f64 = 2e7;

/// Completions in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceCompletions {
    /// Requests.
    pub count: f64,
    /// Requests that took longer than the target.
    pub over: f64,
}

/// Requests at one rate, for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Requests due a second.
    pub rate: f64,
    /// Length of the trial in seconds.
    pub seconds: f64,
    /// Completions, slice by slice.
    pub slices: Vec<SliceCompletions>,
}

/// Result of a trial against the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMet {
    /// The rate meets the target.
    Yes,
    /// The rate misses the target.
    No,
    /// Too few requests to conclude, or the result is too close to the target.
    Unclear,
}

/// Result of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveResult {
    /// The best estimate of the highest rate that meets the target. `None` if no rate does, or all do.
    pub rate: Option<f64>,
    /// The highest rate that was measured to meet it.
    pub low: Option<f64>,
    /// The lowest rate that was measured to miss it.
    pub high: Option<f64>,
}

/// Next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure at this rate.
    Measure(f64),
    /// The highest rate is known with the requested precision.
    Found(CurveResult),
}

/// Result of a trial.
///
/// Requests over the target come in clusters, since the cause of a delay delays neighbouring requests too: the
/// interval of their excess over slices takes that into account. With hardly any requests over the target it is not
/// reliable, and the Poisson law of their number has to agree too.
///
/// A trial may end early for a `No`, but not for a `Yes`: if slow periods are rare, a short trial sees none of them.
pub fn judge(trial: &Trial) -> TargetMet {
    judge_all(trial.rate * trial.seconds, trial.slices.iter().copied())
}

fn judge_all(due: f64, slices: impl Iterator<Item = SliceCompletions> + Clone) -> TargetMet {
    let count: f64 = slices.clone().map(|slice| slice.count).sum();
    let over: f64 = slices.clone().map(|slice| slice.over).sum();
    if count < due * MIN_COMPLETED_SHARE && count < due - 3.0 * due.sqrt() {
        return TargetMet::No;
    }
    let surplus: Vec<f64> = slices
        .map(|slice| slice.over - LATE_SHARE * slice.count)
        .collect();
    let Some(interval) = mean_interval(&surplus) else {
        return TargetMet::Unclear;
    };
    let expected = LATE_SHARE * count;
    if interval.high < 0.0 && poisson_at_most(over, expected) < SIGNIFICANCE {
        TargetMet::Yes
    } else if interval.low > 0.0 && 1.0 - poisson_at_most(over - 1.0, expected) < SIGNIFICANCE {
        TargetMet::No
    } else {
        TargetMet::Unclear
    }
}

/// The probability that a Poisson number with the mean `mean` is at most `most`.
fn poisson_at_most(most: f64, mean: f64) -> f64 {
    if most < 0.0 {
        return 0.0;
    }
    if mean <= 0.0 {
        return 1.0;
    }
    let mut log_term = -mean;
    let mut sum = log_term.exp();
    let mut number = 1.0;
    while number <= most {
        log_term += (mean / number).ln();
        let term = log_term.exp();
        sum += term;
        // Beyond the mean the terms decrease monotonically.
        if number > mean && term < 1e-12 {
            break;
        }
        number += 1.0;
    }
    sum.min(1.0)
}

/// Result of all trials at one rate together.
struct RateTrials {
    rate: f64,
    trials: usize,
    kept: TargetMet,
}

/// Results of the trials by rate, in ascending order.
fn known(trials: &[Trial]) -> Vec<RateTrials> {
    let mut rates: Vec<f64> = trials.iter().map(|trial| trial.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
        .into_iter()
        .map(|rate| {
            let same = || trials.iter().filter(move |trial| trial.rate == rate);
            let due = rate * same().map(|trial| trial.seconds).sum::<f64>();
            RateTrials {
                rate,
                trials: same().count(),
                kept: judge_all(due, same().flat_map(|trial| trial.slices.iter().copied())),
            }
        })
        .collect()
}

/// Next step after `trials`: `first` is the initial rate, and `width` the requested distance of the bounds, as a share
/// of the rate.
///
/// The rate doubles until one misses the target, and is then bisected; if a rate is too close to the target to decide,
/// the gaps on both sides of it are closed instead. A bound is accepted after two measurements: a disk with burst
/// credit may meet the target once at a rate that it cannot sustain.
pub fn next(trials: &[Trial], first: f64, width: f64) -> Next {
    let known = known(trials);
    let (Some(least), Some(most)) = (known.first(), known.last()) else {
        return Next::Measure(first);
    };
    let answer = bounds(&known);
    if trials.len() >= MAX_TRIALS {
        return Next::Found(guessed(answer, &known));
    }
    let (low, high) = match (answer.low, answer.high) {
        (_, None) if most.rate >= MAX_RATE => return Next::Found(answer),
        (_, None) => return Next::Measure(most.rate * 2.0),
        (None, Some(_)) if least.rate <= 1.0 => return Next::Found(answer),
        (None, Some(_)) => return Next::Measure((least.rate / 2.0).max(1.0)),
        (Some(low), Some(high)) => (low, high),
    };
    let between: Vec<f64> = between(&known, low, high).collect();
    let near_low = between.first().copied().unwrap_or(high);
    let near_high = between.last().copied().unwrap_or(low);
    let (from, to) = if near_low / low >= high / near_high {
        (low, near_low)
    } else {
        (near_high, high)
    };
    if to > from * (1.0 + width) {
        return Next::Measure((from * to).sqrt());
    }
    let once = |bound: f64| {
        known
            .iter()
            .any(|known| known.rate == bound && known.trials < 2)
    };
    match [low, high].into_iter().find(|bound| once(*bound)) {
        Some(bound) => Next::Measure(bound),
        None => Next::Found(guessed(answer, &known)),
    }
}

/// Rates between two bounds, whose results are too near the target to conclude.
fn between(known: &[RateTrials], low: f64, high: f64) -> impl DoubleEndedIterator<Item = f64> {
    known
        .iter()
        .map(|known| known.rate)
        .filter(move |rate| low < *rate && *rate < high)
}

/// The answer with its best estimate: the middle of the undecided rates, or else of the bounds.
fn guessed(answer: CurveResult, known: &[RateTrials]) -> CurveResult {
    let (Some(low), Some(high)) = (answer.low, answer.high) else {
        return answer;
    };
    let mut between = between(known, low, high);
    let nearest = between.next().unwrap_or(low);
    let farthest = between.next_back().unwrap_or(match nearest == low {
        true => high,
        false => nearest,
    });
    CurveResult {
        rate: Some((nearest * farthest).sqrt()),
        ..answer
    }
}

/// Result of `trials`, possibly of an unfinished search.
pub fn so_far(trials: &[Trial]) -> CurveResult {
    let known = known(trials);
    guessed(bounds(&known), &known)
}

/// The lowest rate that misses the target, and the highest rate below it that meets it.
fn bounds(known: &[RateTrials]) -> CurveResult {
    let high = known.iter().find(|known| known.kept == TargetMet::No);
    let below = |known: &&RateTrials| high.is_none_or(|high| known.rate < high.rate);
    let low = known
        .iter()
        .filter(below)
        .rfind(|known| known.kept == TargetMet::Yes);
    CurveResult {
        rate: None,
        low: low.map(|low| low.rate),
        high: high.map(|high| high.rate),
    }
}

/// Result of all trials at `rate` together; `None` if there are none.
pub fn kept_at(trials: &[Trial], rate: f64) -> Option<TargetMet> {
    let found = known(trials).into_iter().find(|known| known.rate == rate);
    found.map(|known| known.kept)
}

#[cfg(test)]
mod tests;
