//! Limit of a job: the bytes and requests after which it ends.

use fiojob::{Amount, FioError, Job, ZoneMode};
use record::{Bytes, Stride};

use super::blocks::{Blocks, read_fraction};
use super::workload::stride;

/// Limit of the job, in bytes and in requests. Its target, if it is a file or device, has `target` bytes; the job's
/// size is `total`, of which blocks cover `covered`.
pub(super) fn limit(
    job: &Job,
    blocks: &Blocks,
    target: Option<Bytes>,
    total: Bytes,
    covered: Bytes,
) -> Result<(Option<Bytes>, Option<u64>), FioError> {
    if job.number_ios.is_some() && job.loops > 1 {
        return Err(job.error(
            "number_ios",
            "together with loops it is not done; multiply it",
        ));
    }
    if job.time_based {
        return Ok((None, job.number_ios));
    }
    let bytes = |amount: Amount| match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => share(total, percent),
    };
    let pass = match job.size {
        // Less than the files have, but not more.
        Some(size) if job.filesize.is_some() => bytes(size).min(covered.0),
        _ => pass(job, blocks, target, covered),
    };
    let bytes = match job.io_size {
        None => pass.checked_mul(job.passes()),
        Some(given) => by_io_size(job, blocks, pass, bytes(given)),
    };
    let bytes = bytes.ok_or_else(|| {
        job.error(
            "loops",
            "so many times the size is more than can be counted",
        )
    })?;
    Ok((Some(Bytes(bytes)), job.number_ios))
}

/// A percentage of a size, in bytes.
pub(super) fn share(size: Bytes, percent: u64) -> u64 {
    (u128::from(size.0) * u128::from(percent) / 100) as u64
}

/// Bytes of one pass: those of the span. A job that skips the space between its zones begins the span anew until it
/// has transferred as much, as in fio. One with the rules of zoned disks transfers less, and so does one with holes,
/// unless its next block would lie beyond the target.
fn pass(job: &Job, blocks: &Blocks, target: Option<Bytes>, covered: Bytes) -> u64 {
    let mixed = job.pattern.reads && job.pattern.writes;
    match stride(job) {
        Some(Stride::Zones { size, range, skip }) if job.zones.mode == ZoneMode::Zoned => {
            let moved = u128::from(covered.0) * u128::from(size.0);
            (moved / u128::from(range.0 + skip.0)) as u64
        }
        Some(Stride::Add(add)) if add > 0 && !mixed => {
            let step = blocks.mean + add.unsigned_abs();
            let count = covered.0.div_ceil(step);
            match target {
                Some(target) if count * step < target.0 => count * blocks.mean,
                _ => covered.0,
            }
        }
        _ => covered.0,
    }
}

/// Bytes that a job transfers by an `io_size` of `given`: as many passes as there are loops, and as in fio more until
/// the data written and read back comes to it; but never more than `given` for each pass.
fn by_io_size(job: &Job, blocks: &Blocks, pass: u64, given: u64) -> Option<u64> {
    let pattern = job.pattern;
    // A pass of these does not end with the span.
    let continues = match pattern.random {
        true => job.with_replacement,
        false => pattern.reads && pattern.writes,
    };
    let pass = if continues { pass.max(given) } else { pass };
    let read_back = match job.rules.verify.is_some() && job.rules.reads_back {
        true => 1.0 - read_fraction(job),
        false => 0.0,
    };
    // A rest of less than a block is not moved.
    let least = given.saturating_sub(blocks.largest - 1) as f64;
    let passes = (least / (pass as f64 * (1.0 + read_back))).ceil() as u64;
    let moved = pass.checked_mul(passes.max(job.passes()))?;
    Some(moved.min(given.checked_mul(job.passes())?))
}
