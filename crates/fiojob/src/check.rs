//! Checks of rules that fit other options of a job only in part.

use crate::error::FioError;
use crate::job::{IoEngine, Job};
use crate::pair::Pair;
use crate::rules::Sum;

/// Checks the rules of a job.
///
/// # Errors
/// The first rule that does not fit.
pub(crate) fn rules(job: &Job) -> Result<(), FioError> {
    let rules = &job.rules;
    if rules.steady.is_some() && rules.steady_us == 0 {
        return Err(job.error(
            "steadystate",
            "there is no steadystate_duration, without which fio judges nothing; give one",
        ));
    }
    let is_limited = job.rate != Pair::default() || job.rate_iops != Pair::default();
    if rules.latency_us > 0 {
        let why = match (rules.latency_window_us, is_limited || job.think_us > 0) {
            (0, _) => Some("there is no latency_window, for which each depth is tried; give one"),
            (_, true) => Some("together with a rate or thinktime it is not done; keep one"),
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
    if rules.verify == Some(Sum::Pattern) && rules.verify_pattern.is_empty() {
        return Err(job.error("verify", "there is no verify_pattern; give one"));
    }
    Ok(())
}
