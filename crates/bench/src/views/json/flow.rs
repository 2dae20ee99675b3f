//! Requests of one kind: how many, how fast, and their latency.

use record::{Flow, FlowSummary, Histogram, LatencySummary};
use serde::Serialize;

use crate::figures::{Estimate, FlowFigures};

/// Requests of one kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct FlowDocument {
    /// Requests completed within the measured time.
    ops: u64,
    /// Bytes that they transferred.
    bytes: u64,
    /// Requests a second.
    iops: Estimate,
    /// Bytes a second.
    bytes_per_s: Estimate,
    latency_ns: LatencyDocument<u64, f64>,
    /// Latency from submission, of an open loop, whose `latency_ns` counts from the time at which a request was due;
    /// null for a closed loop.
    service_ns: Option<LatencyDocument<u64, f64>>,
}

impl FlowDocument {
    pub(super) fn of(flow: &Flow, figures: &FlowFigures) -> FlowDocument {
        FlowDocument {
            ops: flow.ops,
            bytes: flow.bytes,
            iops: figures.iops,
            bytes_per_s: figures.bytes_per_s,
            latency_ns: LatencyDocument::measured(&flow.latency),
            service_ns: flow.service.as_ref().map(LatencyDocument::measured),
        }
    }
}

/// Requests of one kind, of another tool.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ImportedFlow {
    /// Completed requests; null where the tool does not say.
    ops: Option<u64>,
    /// Bytes that they transferred; null where the tool does not say.
    bytes: Option<u64>,
    /// Requests a second.
    iops: MeanDocument,
    /// Bytes a second.
    bytes_per_s: MeanDocument,
    latency_ns: LatencyDocument<Option<f64>, Option<f64>>,
    /// Null: not reported for imported runs.
    service_ns: (),
    /// True if the tool says only that the test was too fast to measure (`+++++` of Bonnie++).
    too_fast: bool,
}

impl ImportedFlow {
    pub(super) fn of(flow: &FlowSummary) -> ImportedFlow {
        let mean = |mean| MeanDocument {
            mean,
            low: (),
            high: (),
        };
        ImportedFlow {
            ops: flow.ops,
            bytes: flow.bytes,
            iops: mean(flow.ops_per_s),
            bytes_per_s: mean(flow.bytes_per_s),
            latency_ns: LatencyDocument::imported(&flow.latency),
            service_ns: (),
            too_fast: flow.too_fast,
        }
    }
}

/// A mean without interval: other tools give none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MeanDocument {
    /// Mean; null where the tool does not say.
    mean: Option<f64>,
    /// Null: lower bound of the interval.
    low: (),
    /// Null: upper bound of the interval.
    high: (),
}

/// Latency of requests, in nanoseconds; of an imported run a figure is null where the tool does not give it.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "LatencyDocument")
)]
struct LatencyDocument<Ns, Mean> {
    /// Shortest latency.
    min: Ns,
    /// Mean latency.
    mean: Mean,
    /// Standard deviation of the latency.
    stddev: Mean,
    /// 50th percentile, the median.
    p50: Ns,
    /// 90th percentile.
    p90: Ns,
    /// 95th percentile.
    p95: Ns,
    /// 99th percentile.
    p99: Ns,
    /// 99.9th percentile.
    p99_9: Ns,
    /// 99.99th percentile.
    p99_99: Ns,
    /// Longest latency.
    max: Ns,
}

impl LatencyDocument<u64, f64> {
    fn measured(latency: &Histogram) -> Self {
        Self {
            min: latency.min(),
            mean: latency.mean(),
            stddev: latency.stddev(),
            p50: latency.quantile(0.50),
            p90: latency.quantile(0.90),
            p95: latency.quantile(0.95),
            p99: latency.quantile(0.99),
            p99_9: latency.quantile(0.999),
            p99_99: latency.quantile(0.9999),
            max: latency.max(),
        }
    }
}

impl LatencyDocument<Option<f64>, Option<f64>> {
    fn imported(latency: &LatencySummary) -> Self {
        Self {
            min: latency.min_ns,
            mean: latency.mean_ns,
            stddev: latency.stddev_ns,
            p50: latency.quantile(0.50),
            p90: latency.quantile(0.90),
            p95: latency.quantile(0.95),
            p99: latency.quantile(0.99),
            p99_9: latency.quantile(0.999),
            p99_99: latency.quantile(0.9999),
            max: latency.max_ns,
        }
    }
}
