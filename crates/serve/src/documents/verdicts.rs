//! Verdicts on response times.

use jiff::Timestamp;
use serde::Serialize;

use super::{Document, Marker, RoundedFigure, SourceDocument};

/// The document `verdicts`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Verdicts {
    /// Start of the span.
    pub(crate) from: Timestamp,
    /// End of the span.
    pub(crate) to: Timestamp,
    /// Length of a slot in seconds.
    pub(crate) slot_s: i64,
    /// Selected tag with labels; null where there is none.
    pub(crate) selection: Option<String>,
    /// Tags, the busiest first.
    pub(crate) tags: Vec<String>,
    /// Sources of the document, and whether they answer.
    pub(crate) sources: Vec<SourceDocument>,
    /// Verdicts, the latest first.
    pub(crate) verdicts: Vec<Verdict>,
}

impl Document for Verdicts {
    const KIND: &'static str = "verdicts";
}

/// A span of time.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TimeSpan {
    /// Start of the span.
    pub(crate) from: Timestamp,
    /// End of the span.
    pub(crate) to: Timestamp,
}

/// A verdict with the figures that led to it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Verdict {
    /// The moment at which things may have changed.
    pub(crate) time: Timestamp,
    /// Marker of the moment; null of a change that was found without one.
    pub(crate) marker: Option<Marker>,
    /// Conclusion: `code`, `load`, `system`, `several`, `nothing-changed` or `not-enough-data`.
    pub(crate) conclusion: &'static str,
    /// Certainty of the conclusion: `low`, `medium` or `high`.
    pub(crate) certainty: &'static str,
    /// The conclusion in a sentence.
    pub(crate) sentence: String,
    /// The evidence in sentences.
    pub(crate) why: Vec<String>,
    /// Span of the slots before the moment that are compared.
    pub(crate) before: TimeSpan,
    /// Span of the slots after the moment that are compared.
    pub(crate) after: TimeSpan,
    /// Number of earlier days that were compared too.
    pub(crate) earlier_days: usize,
    /// Causes of the change.
    pub(crate) causes: Vec<NamedCause>,
    /// Changes of response times, the one that decided first.
    pub(crate) changes: Vec<Change>,
    /// Change of the load; null where it is not known.
    pub(crate) load: Option<LoadChange>,
    /// Changes of disks.
    pub(crate) disks: Vec<DiskChange>,
    /// Changes of other series.
    pub(crate) series: Vec<SeriesChange>,
}

/// A cause of changed response times, by its kind and name.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NamedCause {
    /// Kind of the cause: `code`, `load`, `disk` or `series`.
    pub(crate) kind: &'static str,
    /// Name of the disk or series; null of other causes.
    pub(crate) name: Option<String>,
}

/// Change of a figure of response times.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Change {
    /// The figure: `p50_ms`, `p95_ms`, `p99_ms`, or `above_500_ms`, the share of requests slower than that.
    pub(crate) metric: String,
    /// Geometric mean of the figure before.
    pub(crate) before: RoundedFigure,
    /// Geometric mean of the figure after.
    pub(crate) after: RoundedFigure,
    /// Mean after divided by mean before.
    pub(crate) ratio: RoundedFigure,
    /// Lower bound of the ratio's 95 % interval.
    pub(crate) ratio_low: RoundedFigure,
    /// Upper bound of the ratio's 95 % interval.
    pub(crate) ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) p: RoundedFigure,
    /// Probability that a slot after exceeds one before.
    pub(crate) superiority: RoundedFigure,
    /// True if it counts as a change.
    pub(crate) shows: bool,
}

/// Change of the request rate, and of response times at an equal rate.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LoadChange {
    /// Requests a second after divided by those before.
    pub(crate) rate_ratio: RoundedFigure,
    /// Lower bound of the 95 % interval of `rate_ratio`.
    pub(crate) rate_ratio_low: RoundedFigure,
    /// Upper bound of the 95 % interval of `rate_ratio`.
    pub(crate) rate_ratio_high: RoundedFigure,
    /// Probability of as large a difference of the rate where there is none.
    pub(crate) rate_p: RoundedFigure,
    /// Response time after divided by that before, at equal rate; null where rates do not overlap.
    pub(crate) at_equal_rate_ratio: RoundedFigure,
    /// Probability of as large a difference at equal rate where there is none.
    pub(crate) at_equal_rate_p: RoundedFigure,
}

/// Change of a disk's figures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskChange {
    /// Host and name of the disk.
    pub(crate) name: String,
    /// Latency after divided by that before.
    pub(crate) latency_ratio: RoundedFigure,
    /// Lower bound of the 95 % interval of `latency_ratio`.
    pub(crate) latency_ratio_low: RoundedFigure,
    /// Upper bound of the 95 % interval of `latency_ratio`.
    pub(crate) latency_ratio_high: RoundedFigure,
    /// Probability of as large a difference of the latency where there is none.
    pub(crate) latency_p: RoundedFigure,
    /// IOPS after divided by those before.
    pub(crate) iops_ratio: RoundedFigure,
    /// I/Os of a request after divided by those before.
    pub(crate) per_request_ratio: RoundedFigure,
    /// Latency after divided by that before, at equal IOPS; null where IOPS do not overlap.
    pub(crate) at_equal_iops_ratio: RoundedFigure,
    /// Share of the time after in which the disk was busy, from 0 to 1.
    pub(crate) busy_fraction: RoundedFigure,
    /// Codes of findings that began.
    pub(crate) findings: Vec<String>,
}

/// Change of another series.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesChange {
    /// Name of the series.
    pub(crate) name: String,
    /// Mean after divided by mean before.
    pub(crate) ratio: RoundedFigure,
    /// Lower bound of the ratio's 95 % interval.
    pub(crate) ratio_low: RoundedFigure,
    /// Upper bound of the ratio's 95 % interval.
    pub(crate) ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) p: RoundedFigure,
}
