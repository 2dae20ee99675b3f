//! The classic suites: what each measures, and in which order. Their results are in `answer`.

pub(crate) mod bonnie;
pub(crate) mod curve;
pub(crate) mod seek;
pub(crate) mod sysbench;
#[cfg(test)]
mod tests;
pub(crate) mod zones;

use record::Bytes;

use crate::args::BenchArgs;
use crate::phase_plan::PhasePlan;
use crate::schedule::{FixedSchedule, Schedule};
use crate::suite_kind::Suite;

/// The schedule of the suite that `args` request, on a target of `size` bytes whose disks take requests of up to
/// `whole` without a split. `phases` are those that the suite plans before it measures.
///
/// # Errors
/// When the target is too small for the suite.
pub(crate) fn schedule(
    args: &BenchArgs,
    phases: Vec<PhasePlan>,
    size: Bytes,
    whole: Option<Bytes>,
) -> Result<Box<dyn Schedule>, String> {
    let suite = match args.workload {
        Some(_) => Suite::Database,
        None => args.suite,
    };
    let pattern = phases.first().cloned();
    Ok(match (suite, pattern) {
        (Suite::Zones, Some(pattern)) => {
            let asked = zones::GivenOptions {
                block: args.block.is_some(),
                depth: args.depth.is_some(),
            };
            Box::new(zones::Zones::of(pattern, size, asked, whole)?)
        }
        (Suite::Curve, Some(pattern)) => Box::new(curve::Search::of(pattern, args)),
        _ => Box::new(FixedSchedule(phases)),
    })
}
