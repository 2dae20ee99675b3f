//! A percentile with its confidence interval, for autocorrelated latencies.
//!
//! Slow requests come in clusters, so that the plain interval of order statistics is far too narrow. The share of
//! requests above the percentile is estimated from parts of the run, each a cluster (Woodruff, 1952, with the variance
//! of a ratio of cluster totals): the range of this share, as ranks, gives the bounds.

use record::Histogram;

/// Two-sided 95 % quantile of Student's t for the degrees of freedom of 5 to 30 parts; more use that of 30.
const STUDENT: [f64; 26] = [
    2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
];
/// Minimum number of parts with requests for an interval.
const MIN_PARTS: usize = 5;
/// Minimum number of requests above a percentile for an interval.
const MIN_REQUESTS_ABOVE: f64 = 5.0;

/// A percentile and the bounds of its 95 % interval, in the unit of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// The percentile.
    pub value: u64,
    /// The lower and the upper bound; `None` if too few requests are above the percentile, or in too few parts.
    pub bounds: Option<(u64, u64)>,
}

/// The `quantile` (0 to 1) of all parts together, with its interval.
pub fn percentile(parts: &[Histogram], quantile: f64) -> Percentile {
    let all = Histogram::merged(parts);
    let value = all.quantile(quantile);
    let bounds = bounds(parts, &all, quantile, value);
    Percentile { value, bounds }
}

fn bounds(parts: &[Histogram], all: &Histogram, quantile: f64, value: u64) -> Option<(u64, u64)> {
    let total = all.count() as f64;
    let clusters: Vec<(f64, f64)> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| (part.count() as f64, part.count_at_most(value) as f64))
        .collect();
    if clusters.len() < MIN_PARTS || total * (1.0 - quantile) < MIN_REQUESTS_ABOVE {
        return None;
    }
    let share = clusters.iter().map(|(_, below)| below).sum::<f64>() / total;
    let count = clusters.len() as f64;
    let squares: f64 = clusters
        .iter()
        .map(|(all, below)| (below - share * all).powi(2))
        .sum();
    let clustered = count / (count - 1.0) * squares / total.powi(2);
    let independent = quantile * (1.0 - quantile) / total;
    let student = STUDENT[(clusters.len() - MIN_PARTS).min(STUDENT.len() - 1)];
    let half = student * clustered.max(independent).sqrt();
    // At least one request is above a percentile.
    let highest = (quantile + half).min(1.0);
    Some((
        all.quantile((quantile - half).max(0.0)),
        all.quantile(highest),
    ))
}
