//! Values for trims, which follow those for reads and writes.

use crate::assign::set;
use crate::error::FioError;
use crate::job::Job;

/// Options whose third value is for trims.
const OF_THREE: [&str; 10] = [
    "bs",
    "bsrange",
    "bssplit",
    "blockalign",
    "rate",
    "rate_min",
    "rate_iops",
    "rate_iops_min",
    "max_latency",
    "percentage_random",
];

/// Uses the third values of the options of a job that trims in place of those for writes: its writes are trims. Sizes
/// by the order of requests have no third value, as in fio.
///
/// # Errors
/// The first option whose third value cannot be used for trims.
pub(crate) fn put(job: &mut Job) -> Result<(), FioError> {
    if !job.pattern.trims && !job.pattern.trims_first {
        return Ok(());
    }
    for option in OF_THREE {
        if job.sizes_by_order && matches!(option, "bs" | "bsrange" | "bssplit") {
            continue;
        }
        let parts: Vec<String> = match job.given.get(option) {
            Some(value) => value.split(',').map(str::to_owned).collect(),
            None => continue,
        };
        let [_, of_writes, of_trims] = &parts[..] else {
            continue;
        };
        if of_writes == of_trims {
            continue;
        }
        if job.pattern.trims_first {
            let why = "each trim is of the block that is written then; give both the same value";
            return Err(job.error(option, why));
        }
        if of_trims.is_empty() {
            return Err(job.error(
                option,
                "the value for trims, behind the second comma, is missing",
            ));
        }
        set(job, option, Some(&format!(",{of_trims}")), true)
            .map_err(|why| job.error(option, why))?;
    }
    Ok(())
}
