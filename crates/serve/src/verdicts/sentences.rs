//! Sentences of a verdict.

use study::shift::{MIN_SLOTS, Shift};
use study::verdict::{
    Cause, CauseVerdict, Conclusion, DiskEvidence, LoadEvidence, Observations, ResponseFigure,
    Windows,
};
use ui::format;

use crate::documents::Marker;

/// Largest p of a change that counts, and its least ratio: as [`study::verdict`] has them.
const LEVEL: f64 = 0.01;
const MIN_CHANGE_RATIO: f64 = 1.1;

/// True if a change of response times counts.
pub(crate) fn shows(shift: &Shift) -> bool {
    shift.shows(LEVEL, MIN_CHANGE_RATIO)
}

/// Key of a figure of response times.
pub(crate) fn metric_key(metric: ResponseFigure) -> String {
    match metric {
        ResponseFigure::P50 => "p50_ms".to_owned(),
        ResponseFigure::P95 => "p95_ms".to_owned(),
        ResponseFigure::P99 => "p99_ms".to_owned(),
        ResponseFigure::Above(bound) => format!("above_{bound}_ms"),
    }
}

fn metric_name(metric: ResponseFigure) -> String {
    match metric {
        ResponseFigure::P50 => "The median response time".to_owned(),
        ResponseFigure::P95 => "p95".to_owned(),
        ResponseFigure::P99 => "p99".to_owned(),
        ResponseFigure::Above(bound) => format!("The share of requests over {bound} ms"),
    }
}

/// A name within a sentence.
fn lower(name: &str) -> String {
    name.replacen("The ", "the ", 1)
}

/// A change as a clause: `rose 2.1 times (95 %: 1.8 to 2.4)`.
fn change(shift: &Shift) -> String {
    let ratio = &shift.ratio;
    let verb = match shift.size() >= 0.0 {
        true => "rose",
        false => "fell",
    };
    let interval = format!("(95 %: {:.2} to {:.2})", ratio.low, ratio.high);
    match shift.upper.ln().abs() > ratio.ratio.ln().abs() {
        true => format!(
            "{verb} to {:.2} times {interval}, its 90th percentile to {:.2} times",
            ratio.ratio, shift.upper
        ),
        false => format!("{verb} to {:.2} times {interval}", ratio.ratio),
    }
}

/// A change of a figure of response times that counts, with its level before and after: `p99 rose to 2.1 times …`. Of a
/// share, which may rise from nothing, the levels tell more than their ratio.
pub(crate) fn clause(metric: ResponseFigure, shift: &Shift, levels: (f64, f64)) -> String {
    match metric {
        ResponseFigure::Above(_) => format!("{} {}", metric_name(metric), between(levels)),
        _ => format!("{} {}", metric_name(metric), change(shift)),
    }
}

/// Sentence on a figure without a significant change.
pub(crate) fn no_change(metric: ResponseFigure, shift: &Shift, levels: (f64, f64)) -> String {
    let seen = match metric {
        ResponseFigure::Above(_) => format!("it {}", between(levels)),
        _ => format!(
            "{:.2} times (95 %: {:.2} to {:.2})",
            shift.ratio.ratio, shift.ratio.low, shift.ratio.high
        ),
    };
    format!(
        "{} did not change beyond chance: {seen}",
        metric_name(metric)
    )
}

fn between((before, after): (f64, f64)) -> String {
    format!(
        "went from {:.2} % to {:.2} %",
        100.0 * before,
        100.0 * after
    )
}

/// The conclusion in a sentence; `seen` is the clause of the change that decided.
pub(crate) fn sentence(
    verdict: &CauseVerdict,
    seen: Option<&String>,
    marker: Option<&Marker>,
) -> String {
    let (Some((_, shift)), Some(seen)) = (verdict.changes.first(), seen) else {
        return format!(
            "Too little is recorded: fewer than {MIN_SLOTS} slots with requests before or after."
        );
    };
    match verdict.conclusion {
        Conclusion::NothingChanged => "Response times did not change.".to_owned(),
        Conclusion::NotEnoughData if !shows(shift) => {
            "Response times scatter too widely to tell whether they changed.".to_owned()
        }
        Conclusion::NotEnoughData => format!("{seen}, and nothing that is recorded explains it."),
        Conclusion::Code => format!("{seen}: {}.", code(marker)),
        Conclusion::Load => format!("{seen}: the load changed."),
        Conclusion::System | Conclusion::Several => {
            let causes: Vec<String> = verdict
                .causes
                .iter()
                .map(|cause| cause_clause(cause, verdict, marker))
                .collect();
            format!("{seen}: {}.", causes.join("; "))
        }
    }
}

fn code(marker: Option<&Marker>) -> String {
    let name = marker.map_or_else(String::new, |marker| format!(" ({})", marker.text));
    format!("the release{name} changed it")
}

fn cause_clause(cause: &Cause, verdict: &CauseVerdict, marker: Option<&Marker>) -> String {
    match cause {
        Cause::Code => code(marker),
        Cause::Load => "the load changed".to_owned(),
        Cause::Series(name) => format!("{name} changed"),
        Cause::Disk(name) => {
            let disk = verdict.disks.iter().find(|disk| disk.name == *name);
            let codes: Vec<&str> = disk
                .iter()
                .flat_map(|disk| disk.began.iter().map(|code| code.name()))
                .collect();
            match codes.is_empty() {
                true => format!("the disk {name} is slower at the same load"),
                false => format!("the disk {name} ({})", codes.join(", ")),
            }
        }
    }
}

/// The evidence in sentences.
pub(crate) fn why(
    verdict: &CauseVerdict,
    clauses: &[String],
    windows: &Windows,
    observed: &Observations,
) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} slots before are compared with {} after, and with the same hours of {}.",
        windows.before.len(),
        windows.after.len(),
        format::count(windows.days.len(), "earlier day")
    )];
    let pairs = verdict.changes.iter().zip(clauses);
    sentences.extend(pairs.map(|((_, shift), clause)| match shows(shift) {
        true => format!("{clause} ({}).", PValue(shift.p)),
        false => format!("{clause}."),
    }));
    if let (Some(evidence), Some((metric, _))) = (&verdict.load, verdict.changes.first()) {
        sentences.push(load(evidence, *metric));
    }
    sentences.extend(verdict.disks.iter().map(disk));
    if observed.disks.is_empty() {
        sentences.push(
            "No disk is recorded, so the disks cannot be examined: run 'disksmith watch --record', or name --prometheus."
                .to_owned(),
        );
    }
    for (name, shift) in &verdict.series {
        sentences.push(format!("{name} {} ({}).", change(shift), PValue(shift.p)));
    }
    sentences
}

fn load(load: &LoadEvidence, metric: ResponseFigure) -> String {
    let rate = format!(
        "Requests went to {:.2} times (95 %: {:.2} to {:.2})",
        load.rate.ratio.ratio, load.rate.ratio.low, load.rate.ratio.high
    );
    match load.at_equal_rate {
        Some(effect) => format!(
            "{rate}; {} at equal rate went to {:.2} times ({}).",
            lower(&metric_name(metric)),
            effect.size.exp(),
            PValue(effect.p)
        ),
        None => format!(
            "{rate}; the rates before and after do not overlap, so response times cannot be compared at equal rate."
        ),
    }
}

fn disk(disk: &DiskEvidence) -> String {
    let latency = format!(
        "{}: latency went to {:.2} times (95 %: {:.2} to {:.2}), IOPS to {:.2} times",
        disk.name,
        disk.latency.ratio.ratio,
        disk.latency.ratio.low,
        disk.latency.ratio.high,
        disk.iops.ratio.ratio
    );
    let equal = match disk.at_equal_iops {
        Some(effect) => format!(
            ", latency at equal IOPS to {:.2} times ({})",
            effect.size.exp(),
            PValue(effect.p)
        ),
        None => String::new(),
    };
    let began: Vec<&str> = disk.began.iter().map(|code| code.name()).collect();
    let began = match began.is_empty() {
        true => String::new(),
        false => format!("; it began to show {}", began.join(", ")),
    };
    format!("{latency}{equal}{began}.")
}

/// A probability as text: with three decimals, or `p < 0.001`.
struct PValue(f64);

impl std::fmt::Display for PValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            p if p < 1e-3 => write!(f, "p < 0.001"),
            p => write!(f, "p = {p:.3}"),
        }
    }
}
