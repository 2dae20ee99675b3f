//! Limit of a job: the bytes and requests after which it ends.

use fiojob::{Amount, FioError, Job, ZoneMode};
use record::{Bytes, Stride};

use super::blocks::{Blocks, read_fraction};
use super::workload::stride;

/// The part of a target that a job uses.
pub(super) struct UsedPart {
    /// Size of the target, if it is a file or a device.
    pub target: Option<Bytes>,
    /// Start of the part in each file, in bytes.
    pub offset: u64,
    /// Number of files.
    pub files: u64,
    /// Size of the job.
    pub total: Bytes,
    /// Bytes of each file that blocks cover.
    pub span: Bytes,
}

impl UsedPart {
    /// Bytes of all files that blocks cover.
    pub(super) fn covered(&self) -> Bytes {
        Bytes(self.span.0 * self.files)
    }

    /// Bytes that the job uses of each file, including a rest that is smaller than a block.
    fn length(&self) -> u64 {
        self.total.0 / self.files
    }

    /// Size of each file; a file in a directory ends where the used part ends.
    fn file_size(&self) -> u64 {
        self.target
            .map_or(self.offset + self.length(), |target| target.0)
    }
}

/// Limit of the job, in bytes and in requests.
pub(super) fn limit(
    job: &Job,
    blocks: &Blocks,
    part: &UsedPart,
) -> Result<(Option<Bytes>, Option<u64>), FioError> {
    if job.number_ios.is_some() && job.loops > 1 {
        return Err(job.error(
            "number_ios",
            "together with loops it is not supported; multiply it",
        ));
    }
    if job.time_based {
        return Ok((None, job.number_ios));
    }
    let bytes = |amount: Amount| match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => share(part.total, percent),
    };
    let pass = pass(job, blocks, part);
    let (pass, size) = match job.size {
        // Possibly less than the size of the files, but not more.
        Some(size) if job.filesize.is_some() => {
            let size = bytes(size).min(part.covered().0);
            (pass.min(size), size)
        }
        _ => (pass, part.total.0),
    };
    let bytes = match job.io_size {
        Some(given) => by_io_size(job, blocks, pass, bytes(given)),
        // As in fio, a job that reads back its writes continues until the data written and read back reaches its size.
        None if read_back(job) > 0.0 => by_io_size(job, blocks, pass, size),
        None => pass.checked_mul(job.passes()),
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
/// has transferred as much, as in fio. One with the rules of zoned disks transfers less, and so does one with holes
/// that only reads or only writes, unless its next block would lie beyond the target.
fn pass(job: &Job, blocks: &Blocks, part: &UsedPart) -> u64 {
    let covered = part.covered();
    let mixed = job.pattern.reads && job.pattern.writes;
    match stride(job) {
        Some(Stride::Zones { size, range, skip }) if job.zones.mode == ZoneMode::Zoned => {
            let moved = u128::from(covered.0) * u128::from(size.0);
            (moved / u128::from(range.0 + skip.0)) as u64
        }
        Some(Stride::Add(add)) if add > 0 && !mixed => {
            let step = blocks.mean + add.unsigned_abs();
            // The number is fio's (`fill_io_u`), where blocks of one size begin in the used part and may end beyond it
            // within the file. Here the last block is moved to the start of the part if it would end beyond the part.
            // With several sizes the smallest block ends in the part, as in fio, but the number is estimated by the
            // mean.
            let last = match blocks.differ() {
                true => part.length() - blocks.grain,
                false => (part.length() - 1).min(part.file_size() - part.offset - blocks.mean),
            };
            let count = 1 + last / step;
            match count * step < part.file_size() {
                true => part.files * count * blocks.mean,
                false => covered.0,
            }
        }
        _ => covered.0,
    }
}

/// Share of the data transferred by a job that is read back for verification, 0 to 1.
fn read_back(job: &Job) -> f64 {
    match job.rules.verify.is_some() && job.rules.reads_back {
        true => 1.0 - read_fraction(job),
        false => 0.0,
    }
}

/// Bytes that a job transfers with an `io_size` of `given`: one pass for each loop. As in fio, more are added until
/// the data written and read back reaches `io_size`, but never more than `given` for each pass.
fn by_io_size(job: &Job, blocks: &Blocks, pass: u64, given: u64) -> Option<u64> {
    let pattern = job.pattern;
    // A pass of these patterns does not end with the span.
    let continues = match pattern.random {
        true => job.with_replacement,
        false => pattern.reads && pattern.writes,
    };
    let pass = if continues { pass.max(given) } else { pass };
    // A rest of less than a block is not transferred.
    let least = given.saturating_sub(blocks.largest - 1) as f64;
    let passes = (least / (pass as f64 * (1.0 + read_back(job)))).ceil() as u64;
    let moved = pass.checked_mul(passes.max(job.passes()))?;
    Some(moved.min(given.checked_mul(job.passes())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::tests::jobs;

    /// Bytes of a pass over `span` bytes of each file, starting at `offset`.
    fn moved(lines: &str, target: Option<u64>, (offset, span, files): (u64, u64, u64)) -> u64 {
        let job = jobs(&format!("[j]\n{lines}\n")).remove(0);
        let part = UsedPart {
            target: target.map(Bytes::kib),
            offset: offset << 10,
            files,
            total: Bytes::kib(span * files),
            span: Bytes::kib(span).round_down(Bytes(Blocks::of(&job).grain)),
        };
        pass(&job, &Blocks::of(&job), &part) >> 10
    }

    #[test]
    fn blocks_with_holes_begin_in_the_part_and_end_in_the_file() {
        // In steps of 124 KiB the ninth block would begin at 992 KiB, and end beyond the end of the file.
        let large = "rw=write:60k\nbs=64k";
        assert_eq!(moved(large, Some(1024), (0, 1024, 1)), 8 * 64);
        // In a larger file it ends within the file.
        assert_eq!(moved(large, Some(2048), (0, 1024, 1)), 9 * 64);
        assert_eq!(moved(large, Some(1088), (64, 1024, 1)), 8 * 64);
        // A block may begin in a rest that is smaller than a block.
        let rest = "rw=write:12k\nbs=16k";
        assert_eq!(moved(rest, Some(1024), (0, 200, 1)), 8 * 16);
        // In a directory files have the size of the part.
        assert_eq!(moved(large, None, (0, 1024, 1)), 8 * 64);
        assert_eq!(moved(large, None, (0, 1024, 3)), 3 * 8 * 64);
    }

    #[test]
    fn a_job_whose_next_block_lies_behind_the_file_begins_anew() {
        let small = "rw=write:12k\nbs=4k";
        assert_eq!(moved(small, Some(1024), (0, 1024, 1)), 1024);
        assert_eq!(moved(small, None, (0, 256, 2)), 512);
        assert_eq!(moved(small, Some(1024), (0, 256, 1)), 16 * 4);
    }

    #[test]
    fn of_several_sizes_the_smallest_ends_in_the_part() {
        let split = "rw=read:16k\nbssplit=4k/50:12k/50";
        // Steps of 24 KiB on average: the last block begins at 240 KiB of 252.
        assert_eq!(moved(split, Some(1024), (0, 256, 1)), 11 * 8);
    }
}
