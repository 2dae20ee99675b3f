//! Checks of rules that are not compatible with all other options of a job.

use crate::error::FioError;
use crate::job::{Distribution, IoEngine, Job};
use crate::pair::PerDirection;
use crate::rules::VerifyMethod;
use crate::zones;

/// Checks the rules of a job.
///
/// # Errors
/// The first rule that is not compatible.
pub(crate) fn rules(job: &Job) -> Result<(), FioError> {
    let rules = &job.rules;
    if rules.steady.is_some() && rules.steady_us == 0 {
        return Err(job.error(
            "steadystate",
            "there is no steadystate_duration, without which fio judges nothing; give one",
        ));
    }
    let is_limited =
        job.rate != PerDirection::default() || job.rate_iops != PerDirection::default();
    if rules.latency_us > 0 {
        let why = match (rules.latency_window_us, is_limited || job.think_us > 0) {
            (0, _) => Some("there is no latency_window, for which each depth is tried; give one"),
            (_, true) => Some("together with a rate or thinktime it is not supported; keep one"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(job.error("latency_target", why));
        }
    }
    let has_own = !rules.priorities.read.is_empty() || !rules.priorities.write.is_empty();
    if has_own && job.engine == IoEngine::Blocking {
        return Err(job.error(
            "cmdprio_percentage",
            "requests have priorities of their own only with io_uring and libaio",
        ));
    }
    if rules.verify == Some(VerifyMethod::Pattern) && rules.verify_pattern.is_empty() {
        return Err(job.error("verify", "there is no verify_pattern; give one"));
    }
    let mixes = job.pattern.reads && job.pattern.writes;
    if job.think_stops_rate && job.think_us > 0 && is_limited && mixes {
        return Err(job.error(
            "rate_ignore_thinktime",
            "it is not supported for a job that reads and writes: in fio a pause stops the rate of only one direction",
        ));
    }
    let problem = problem_of_aging(job)
        .or_else(|| problem_of_runs(job))
        .or_else(|| problem_of_order(job))
        .or_else(|| zones::problem(job));
    match problem {
        None => Ok(()),
        Some((option, why)) => Err(job.error(option, why)),
    }
}

/// An option for sequential requests in a random job that is not compatible with the other options, and the reason.
fn problem_of_runs(job: &Job) -> Option<(&'static str, &'static str)> {
    let option = match job.every {
        1 => "percentage_random",
        _ => "rw",
    };
    let continues = job.pattern.random && !job.draws_all();
    (continues && !job.has_one_file()).then_some((
        option,
        "sequential requests of a random job over several files are not supported",
    ))
}

/// An option that is not compatible with `bs_is_seq_rand`, and the reason.
fn problem_of_order(job: &Job) -> Option<(&'static str, &'static str)> {
    let continues = job.pattern.random && !job.draws_all();
    (job.sizes_by_order && continues).then_some((
        "bs_is_seq_rand",
        "it is not supported for a job with partly random requests: here a request gets its size before its position",
    ))
}

/// An option that is not compatible with `sprandom`, and the reason.
fn problem_of_aging(job: &Job) -> Option<(&'static str, &'static str)> {
    if !job.rules.ages {
        return None;
    }
    let pattern = job.pattern;
    let is_plain_write = pattern.writes && !pattern.reads && !pattern.trims && !pattern.trims_first;
    if !pattern.random || !is_plain_write {
        return Some(("sprandom", "only a job of rw=randwrite ages an SSD"));
    }
    if job.sizes.write.len() > 1 {
        return Some(("sprandom", "it needs blocks of one size"));
    }
    if job.io_size.is_some() || job.number_ios.is_some() || job.time_based {
        return Some((
            "sprandom",
            "it writes the whole target, without io_size, number_ios or time_based",
        ));
    }
    if !job.draws_all() {
        return Some(("sprandom", "it needs places that are all drawn"));
    }
    (job.distribution != Distribution::Uniform).then_some((
        "random_distribution",
        "together with sprandom it is not supported",
    ))
}
