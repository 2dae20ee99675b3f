//! Conversion of a verdict to its JSON document.

use std::ops::Range;

use study::shift::{Shift, StepEffect};
use study::verdict::{
    Cause, CauseVerdict, Certainty, DiskEvidence, LoadEvidence, Observations, ResponseFigure,
    Windows,
};

use super::sentences::{self, shows};
use crate::axis::{Axis, Seconds, timestamp};
use crate::documents::{
    self, Change, DiskChange, LoadChange, Marker, NamedCause, RoundedFigure, SeriesChange, TimeSpan,
};

/// Input of a verdict's document.
pub(crate) struct View<'a> {
    /// The series.
    pub(crate) observed: &'a Observations,
    /// Slots that were compared, before and after the moment.
    pub(crate) windows: &'a Windows,
    /// Times of the slots.
    pub(crate) axis: &'a Axis,
    /// Marker of the moment; `None` if the moment was found without a marker.
    pub(crate) marker: Option<&'a Marker>,
    /// Start of the first slot after the moment.
    pub(crate) at: Seconds,
}

impl View<'_> {
    /// The document of a verdict.
    pub(crate) fn document(&self, verdict: &CauseVerdict) -> documents::Verdict {
        let changes = verdict.changes.iter();
        let clause = |(metric, shift): &(ResponseFigure, Shift)| match shows(shift) {
            true => sentences::clause(*metric, shift, self.levels(*metric)),
            false => sentences::no_change(*metric, shift, self.levels(*metric)),
        };
        let clauses: Vec<String> = changes.clone().map(clause).collect();
        let series = verdict.series.iter();
        documents::Verdict {
            time: self.marker.map_or(timestamp(self.at), |marker| marker.time),
            marker: self.marker.cloned(),
            conclusion: verdict.conclusion.name(),
            certainty: certainty(verdict.certainty),
            sentence: sentences::sentence(verdict, clauses.first(), self.marker),
            why: sentences::why(verdict, &clauses, self.windows, self.observed),
            before: self.span(&self.windows.before),
            after: self.span(&self.windows.after),
            earlier_days: self.windows.days.len(),
            causes: verdict.causes.iter().map(cause).collect(),
            changes: changes
                .map(|(metric, shift)| self.change(*metric, shift))
                .collect(),
            load: verdict.load.as_ref().map(load),
            disks: verdict.disks.iter().map(disk).collect(),
            series: series
                .map(|(name, shift)| one_series(name, shift))
                .collect(),
        }
    }

    fn span(&self, slots: &Range<usize>) -> TimeSpan {
        let start = |slot: usize| {
            let start = self.axis.starts().get(slot).copied();
            timestamp(start.unwrap_or(self.axis.to()))
        };
        TimeSpan {
            from: start(slots.start),
            to: start(slots.end.max(slots.start)),
        }
    }

    /// Typical value of a figure before and after the moment.
    fn levels(&self, metric: ResponseFigure) -> (f64, f64) {
        let service = &self.observed.service;
        let values = match metric {
            ResponseFigure::P50 => Some(&service.p50_ms),
            ResponseFigure::P95 => Some(&service.p95_ms),
            ResponseFigure::P99 => Some(&service.p99_ms),
            ResponseFigure::Above(bound) => service
                .above
                .iter()
                .find(|(other, _)| *other == bound)
                .map(|(_, shares)| shares),
        };
        let mean = |slots: &Range<usize>| {
            let part = values.and_then(|values| values.get(slots.clone()));
            typical(
                part.unwrap_or_default(),
                matches!(metric, ResponseFigure::Above(_)),
            )
        };
        (mean(&self.windows.before), mean(&self.windows.after))
    }

    fn change(&self, metric: ResponseFigure, shift: &Shift) -> Change {
        let (before, after) = self.levels(metric);
        Change {
            metric: sentences::metric_key(metric),
            before: RoundedFigure(before),
            after: RoundedFigure(after),
            ratio: RoundedFigure(shift.ratio.ratio),
            ratio_low: RoundedFigure(shift.ratio.low),
            ratio_high: RoundedFigure(shift.ratio.high),
            p: RoundedFigure(shift.p),
            superiority: RoundedFigure(shift.superiority),
            shows: shows(shift),
        }
    }
}

/// Arithmetic mean of a share, geometric mean of a response time; values that are not finite are left out.
fn typical(values: &[f64], is_share: bool) -> f64 {
    let known = values.iter().copied().filter(|value| value.is_finite());
    let (sum, count) = known
        .filter(|value| is_share || *value > 0.0)
        .fold((0.0, 0.0), |(sum, count), value| {
            (sum + if is_share { value } else { value.ln() }, count + 1.0)
        });
    match is_share {
        true => sum / count,
        false => (sum / count).exp(),
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Low => "low",
        Certainty::Medium => "medium",
        Certainty::High => "high",
    }
}

fn cause(cause: &Cause) -> NamedCause {
    let (kind, name) = match cause {
        Cause::Code => ("code", None),
        Cause::Load => ("load", None),
        Cause::Disk(name) => ("disk", Some(name)),
        Cause::Series(name) => ("series", Some(name)),
    };
    NamedCause {
        kind,
        name: name.cloned(),
    }
}

fn load(load: &LoadEvidence) -> LoadChange {
    LoadChange {
        rate_ratio: RoundedFigure(load.rate.ratio.ratio),
        rate_ratio_low: RoundedFigure(load.rate.ratio.low),
        rate_ratio_high: RoundedFigure(load.rate.ratio.high),
        rate_p: RoundedFigure(load.rate.p),
        at_equal_rate_ratio: RoundedFigure(of_effect(load.at_equal_rate.as_ref())),
        at_equal_rate_p: RoundedFigure(load.at_equal_rate.map_or(f64::NAN, |effect| effect.p)),
    }
}

fn of_effect(effect: Option<&StepEffect>) -> f64 {
    effect.map_or(f64::NAN, |effect| effect.size.exp())
}

fn disk(disk: &DiskEvidence) -> DiskChange {
    let per_request = disk.per_request.as_ref();
    DiskChange {
        name: disk.name.clone(),
        latency_ratio: RoundedFigure(disk.latency.ratio.ratio),
        latency_ratio_low: RoundedFigure(disk.latency.ratio.low),
        latency_ratio_high: RoundedFigure(disk.latency.ratio.high),
        latency_p: RoundedFigure(disk.latency.p),
        iops_ratio: RoundedFigure(disk.iops.ratio.ratio),
        per_request_ratio: RoundedFigure(per_request.map_or(f64::NAN, |shift| shift.ratio.ratio)),
        at_equal_iops_ratio: RoundedFigure(of_effect(disk.at_equal_iops.as_ref())),
        busy_fraction: RoundedFigure(disk.busy),
        findings: disk
            .began
            .iter()
            .map(|code| code.name().to_owned())
            .collect(),
    }
}

fn one_series(name: &str, shift: &Shift) -> SeriesChange {
    SeriesChange {
        name: name.to_owned(),
        ratio: RoundedFigure(shift.ratio.ratio),
        ratio_low: RoundedFigure(shift.ratio.low),
        ratio_high: RoundedFigure(shift.ratio.high),
        p: RoundedFigure(shift.p),
    }
}
