//! Findings from the result of a suite, and the selection of findings that apply to its phases.

use std::collections::BTreeSet;

use record::{Finding, FindingCode, Phase, Run, Severity};

use super::finding::finding;
use crate::answer::{CurveAnswer, SuiteResult, ZonesAnswer};
use ui::format::number;

/// True if findings about the level of a phase are meaningful. A zone is read for 2 s at most, and a rate above the
/// target falls behind on purpose: there the suite's answer has the conclusion.
pub(super) fn has_level(answer: Option<&SuiteResult>, phase: &Phase) -> bool {
    match answer {
        Some(SuiteResult::Zones(_) | SuiteResult::Curve(_)) => phase.windows.is_empty(),
        // A replay does what the trace did at each moment.
        Some(SuiteResult::Replay(_)) => false,
        _ => true,
    }
}

/// Findings from the answer of a suite.
pub(super) fn of_answer(answer: Option<&SuiteResult>) -> Vec<Finding> {
    match answer {
        Some(SuiteResult::Zones(zones)) => {
            [uneven(zones), cold(zones)].into_iter().flatten().collect()
        }
        Some(SuiteResult::Curve(curve)) => open_ended(curve).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn mib(bytes: f64) -> String {
    number(bytes / f64::from(1 << 20))
}

fn uneven(zones: &ZonesAnswer) -> Option<Finding> {
    let ends = zones.ends.filter(|ends| ends.differ)?;
    Some(finding(
        FindingCode::Zones,
        Severity::Warn,
        None,
        format!(
            "The first eighth of the zones gives {} MiB/s and the last {} MiB/s, {:.2} times as \
             much ({:.2} to {:.2}): the speed of a scan depends on the position of the data.",
            mib(ends.first),
            mib(ends.last),
            ends.ratio,
            ends.low,
            ends.high
        ),
    ))
}

fn cold(zones: &ZonesAnswer) -> Option<Finding> {
    let cold: Vec<_> = zones.zones.iter().filter(|zone| zone.cold).collect();
    let count = cold.len();
    let mean = |rates: Vec<f64>| rates.iter().sum::<f64>() / count as f64;
    (count > 0).then(|| {
        finding(
            FindingCode::Zones,
            Severity::Warn,
            None,
            format!(
                "{count} of {} zones were cold: their first read gave {} MiB/s and the second of \
                 the same place {}. Blocks of a volume that was made from a snapshot are fetched \
                 when they are first read, or a cache between held the second. Their second read \
                 stands for them.",
                zones.zones.len(),
                mib(mean(cold.iter().map(|zone| zone.first.mean).collect())),
                mib(mean(cold.iter().map(|zone| zone.warm()).collect())),
            ),
        )
    })
}

fn open_ended(curve: &CurveAnswer) -> Option<Finding> {
    let text = match (curve.low, curve.high) {
        (Some(_), Some(_)) => return None,
        (None, None) => {
            "No rate was measured for long enough to decide whether it meets the target."
        }
        (None, Some(_)) => "No rate was seen to keep the target: give a higher --p99.",
        (Some(_), None) => "No rate was seen to miss the target: the highest is a lower bound.",
    };
    let text = text.to_owned();
    Some(finding(FindingCode::Short, Severity::Warn, None, text))
}

/// Keeps the first finding of each kind for the whole suite: a suite with many phases of one kind has many similar
/// findings.
pub(super) fn condense(
    run: &Run,
    answer: Option<&SuiteResult>,
    findings: Vec<Finding>,
) -> Vec<Finding> {
    if !matches!(answer, Some(SuiteResult::Zones(_) | SuiteResult::Curve(_))) {
        return findings;
    }
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for mut one in findings.iter().cloned() {
        let same = |other: &&Finding| {
            other.code == one.code && other.severity == one.severity && other.phase.is_some()
        };
        let count = findings.iter().filter(same).count();
        if one.phase.is_some() && count > 1 {
            if !seen.insert((one.code, one.severity)) {
                continue;
            }
            let all = run.phases.len();
            one.text = format!("{} So it is in {count} of {all} phases.", one.text);
        }
        kept.push(one);
    }
    kept
}
