//! Sizes of a job's requests.

use fiojob::{Job, PerDirection, SizeSplit};
use record::{Bytes, OneSidedRate, SizeShare};

/// The sizes of a job's requests.
pub(super) struct Blocks {
    /// Sizes of reads.
    pub read: Vec<SizeShare>,
    /// Sizes of writes.
    pub write: Vec<SizeShare>,
    /// The mean size, in bytes.
    pub mean: u64,
    /// The smallest size, in bytes; the span is a multiple of it.
    pub grain: u64,
    /// The largest size, in bytes.
    pub largest: u64,
}

impl Blocks {
    /// The sizes that `bs` and `bssplit` give.
    pub(super) fn of(job: &Job) -> Blocks {
        let pattern = job.pattern;
        // A direction that is not used does not affect the alignment of requests.
        let (read, write) = match (pattern.reads, pattern.writes) {
            (true, false) => (&job.sizes.read, &job.sizes.read),
            (false, true) => (&job.sizes.write, &job.sizes.write),
            _ => (&job.sizes.read, &job.sizes.write),
        };
        let fraction = read_fraction(job);
        let mean = mean(read) * fraction + mean(write) * (1.0 - fraction);
        let all = || read.iter().chain(write).map(|share| share.bytes);
        Blocks {
            mean: mean.round() as u64,
            grain: all().min().unwrap_or(4096),
            largest: all().max().unwrap_or(4096),
            read: shares(read),
            write: shares(write),
        }
    }

    /// True if there is more than one size.
    pub(super) fn differ(&self) -> bool {
        self.grain != self.largest
    }
}

fn mean(shares: &[SizeSplit]) -> f64 {
    shares
        .iter()
        .map(|share| share.bytes as f64 * share.percent / 100.0)
        .sum()
}

fn shares(shares: &[SizeSplit]) -> Vec<SizeShare> {
    let share = |share: &SizeSplit| SizeShare {
        size: Bytes(share.bytes),
        share: share.percent / 100.0,
    };
    shares.iter().map(share).collect()
}

/// The rate of a job that reads and writes and has a rate for only one of the two.
pub(super) fn one_sided_rate(job: &Job) -> Option<OneSidedRate> {
    let rates = rates(job);
    let is_one_sided = (rates.read > 0.0) != (rates.write > 0.0);
    (job.pattern.reads && job.pattern.writes && is_one_sided).then(|| OneSidedRate {
        writes: rates.write > 0.0,
        per_s: rates.read.max(rates.write),
    })
}

/// Requests a second of a clone; 0 where there is no limit. A limit in bytes is converted by the mean size of
/// requests.
pub(super) fn rates(job: &Job) -> PerDirection<f64> {
    let rate = |iops: u64, bytes: u64, sizes: &[SizeSplit]| match iops {
        0 => bytes as f64 / mean(sizes),
        iops => iops as f64,
    };
    PerDirection {
        read: rate(job.rate_iops.read, job.rate.read, &job.sizes.read),
        write: rate(job.rate_iops.write, job.rate.write, &job.sizes.write),
    }
}

/// The share of requests that read, 0 to 1.
pub(super) fn read_fraction(job: &Job) -> f64 {
    match (job.pattern.reads, job.pattern.writes) {
        // The rates of the directions decide the mix, whatever `rwmixread` says.
        (true, true) => match rates(job) {
            PerDirection { read, write } if read > 0.0 && write > 0.0 => read / (read + write),
            _ => job.read_percent as f64 / 100.0,
        },
        (true, false) => 1.0,
        _ => 0.0,
    }
}
