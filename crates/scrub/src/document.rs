//! Parts that the JSON documents of `scrub` share.

use reader::ForegroundReport;
use record::Ranges;
use serde::Serialize;

use super::drive::ScrubProgress;

/// Latency of the foreground, and its targets.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ForegroundDocument {
    /// Mean latency of the foreground, in nanoseconds; null where none was measured.
    mean_ns: Option<u64>,
    /// 99th percentile of the latency of the foreground, in nanoseconds; null where none was measured.
    p99_ns: Option<u64>,
    /// Target of the mean, in nanoseconds; null where there is none.
    keep_mean_ns: Option<u64>,
    /// Target of the 99th percentile, in nanoseconds; null where there is none.
    keep_p99_ns: Option<u64>,
    /// Alone and beside the scrub, once it has ended.
    #[serde(flatten)]
    whole: Option<ForegroundReport>,
}

impl ForegroundDocument {
    /// Latency of a scrub's foreground, during the scrub or at its end.
    pub(crate) fn of(at: &ScrubProgress, whole: Option<&ForegroundReport>) -> ForegroundDocument {
        let targets = at.targets.unwrap_or_default();
        let nanos = |seconds: Option<f64>| seconds.map(|seconds| (seconds * 1e9) as u64);
        ForegroundDocument {
            mean_ns: nanos(at.mean),
            p99_ns: nanos(at.p99),
            keep_mean_ns: nanos(targets.mean_s),
            keep_p99_ns: nanos(targets.p99_s),
            whole: whole.cloned(),
        }
    }
}

/// Ranges as pairs of start and exclusive end, in bytes.
pub(crate) fn pairs(ranges: &Ranges) -> Vec<[u64; 2]> {
    let pairs = ranges.iter().map(|range| [range.start, range.end]);
    pairs.collect()
}
