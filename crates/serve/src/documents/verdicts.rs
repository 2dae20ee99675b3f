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
    /// Tag with labels.
    pub(crate) selection: Option<String>,
    /// Tags, the busiest first.
    pub(crate) tags: Vec<String>,
    /// Sources.
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
    /// Start.
    pub(crate) from: Timestamp,
    /// End.
    pub(crate) to: Timestamp,
}

/// A verdict with the figures that led to it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Verdict {
    /// The moment.
    pub(crate) time: Timestamp,
    /// Its marker; `None` of a change that was found without one.
    pub(crate) marker: Option<Marker>,
    /// `code`, `load`, `system`, `several`, `nothing-changed` or `not-enough-data`.
    pub(crate) conclusion: &'static str,
    /// `low`, `medium` or `high`.
    pub(crate) certainty: &'static str,
    /// The conclusion in a sentence.
    pub(crate) sentence: String,
    /// The evidence in sentences.
    pub(crate) why: Vec<String>,
    /// Slots before that are compared.
    pub(crate) before: TimeSpan,
    /// Slots after that are compared.
    pub(crate) after: TimeSpan,
    /// Earlier days that were compared too.
    pub(crate) earlier_days: usize,
    /// Causes.
    pub(crate) causes: Vec<NamedCause>,
    /// Changes of response times, the one that decided first.
    pub(crate) changes: Vec<Change>,
    /// Change of the load.
    pub(crate) load: Option<LoadChange>,
    /// Changes of disks.
    pub(crate) disks: Vec<DiskChange>,
    /// Changes of other series.
    pub(crate) series: Vec<SeriesChange>,
}

/// A cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NamedCause {
    /// `code`, `load`, `disk` or `series`.
    pub(crate) kind: &'static str,
    /// Name of the disk or series.
    pub(crate) name: Option<String>,
}

/// Change of a figure of response times.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Change {
    /// `p50_ms`, `p95_ms`, `p99_ms`, or `above_500_ms`: the share of slower requests.
    pub(crate) metric: String,
    /// Geometric mean before.
    pub(crate) before: RoundedFigure,
    /// Geometric mean after.
    pub(crate) after: RoundedFigure,
    /// Mean after over mean before.
    pub(crate) ratio: RoundedFigure,
    /// Lower end of its 95 % interval.
    pub(crate) ratio_low: RoundedFigure,
    /// Upper end.
    pub(crate) ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) p: RoundedFigure,
    /// Probability that a slot after exceeds one before.
    pub(crate) superiority: RoundedFigure,
    /// True if it counts as a change.
    pub(crate) shows: bool,
}

/// Change of the load.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LoadChange {
    /// Requests after over requests before.
    pub(crate) rate_ratio: RoundedFigure,
    /// Lower end of its 95 % interval.
    pub(crate) rate_ratio_low: RoundedFigure,
    /// Upper end.
    pub(crate) rate_ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) rate_p: RoundedFigure,
    /// Response time after over that before, at equal rate; `null` where rates do not overlap.
    pub(crate) at_equal_rate_ratio: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) at_equal_rate_p: RoundedFigure,
}

/// Change of a disk.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskChange {
    /// Host and name.
    pub(crate) name: String,
    /// Latency after over that before.
    pub(crate) latency_ratio: RoundedFigure,
    /// Lower end of its 95 % interval.
    pub(crate) latency_ratio_low: RoundedFigure,
    /// Upper end.
    pub(crate) latency_ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) latency_p: RoundedFigure,
    /// IOPS after over those before.
    pub(crate) iops_ratio: RoundedFigure,
    /// I/Os of a request after over those before.
    pub(crate) per_request_ratio: RoundedFigure,
    /// Latency after over that before, at equal IOPS; `null` where IOPS do not overlap.
    pub(crate) at_equal_iops_ratio: RoundedFigure,
    /// Share of the time in which it was busy, after.
    pub(crate) busy_fraction: RoundedFigure,
    /// Codes of findings that began.
    pub(crate) findings: Vec<String>,
}

/// Change of another series.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SeriesChange {
    /// Its name.
    pub(crate) name: String,
    /// Mean after over mean before.
    pub(crate) ratio: RoundedFigure,
    /// Lower end of its 95 % interval.
    pub(crate) ratio_low: RoundedFigure,
    /// Upper end.
    pub(crate) ratio_high: RoundedFigure,
    /// Probability of as large a difference where there is none.
    pub(crate) p: RoundedFigure,
}
