//! Findings about a trace.

use record::{Severity, Verdict};
use serde::Serialize;

use crate::figures::Figures;
use crate::io::{Caveats, Header, WriteCache};
use crate::tracepoints::{MAX_READ_INTERVAL, option_for};

/// A reason to doubt a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TraceFinding {
    /// Code of the finding, which stays the same over versions.
    pub(crate) code: &'static str,
    /// Severity of the finding.
    pub(crate) severity: Severity,
    /// Text of the finding.
    pub(crate) text: String,
}

impl TraceFinding {
    /// Severity of the finding as a word.
    pub(crate) fn name(&self) -> &'static str {
        ui::format::severity(self.severity)
    }
}

/// The verdict of findings.
pub(crate) fn verdict(findings: &[TraceFinding]) -> Verdict {
    match findings.iter().map(|finding| finding.severity).max() {
        Some(Severity::Invalid) => Verdict::Invalid,
        Some(Severity::Warn) => Verdict::Doubtful,
        Some(Severity::Note) | None => Verdict::Trusted,
    }
}

/// The findings of a trace.
pub(crate) fn of(figures: &Figures, header: &Header, caveats: Caveats) -> Vec<TraceFinding> {
    let mut findings = Vec::new();
    let mut push = |code, severity, text| {
        findings.push(TraceFinding {
            code,
            severity,
            text,
        });
    };
    let ios = figures.ios();
    if ios == 0 {
        push(
            "no-ios",
            Severity::Invalid,
            "The trace has no I/O: nothing was issued while it was recorded, or the events of issue were left out. \
             Record longer, and blktrace without an action mask."
                .to_owned(),
        );
    }
    if let Some((severity, share)) = counted(caveats.lost, ios) {
        push(
            "lost-events",
            severity,
            format!(
                "{} lost, {share} of the I/Os: rates are too low, and some completions belong to other \
                 I/Os. Record again with a larger buffer than before, as far as the memory has room for one of each \
                 processor: {} or more, which holds {MAX_READ_INTERVAL} of the highest rate here.",
                ui::format::count(caveats.lost as usize, "event"),
                option_for(figures.peak_iops()),
            ),
        );
    }
    if let Some((severity, share)) = counted(caveats.ambiguous, ios) {
        push(
            "ambiguous-pairs",
            severity,
            format!(
                "{} ({share}) may be of several requests of one place, or of none: their latencies are uncertain.",
                ui::format::count(caveats.ambiguous as usize, "completion")
            ),
        );
    }
    if caveats.cut_off {
        push(
            "cut-off",
            Severity::Warn,
            "The recorder was ended before it closed the file: the trace ends with its last whole block.".to_owned(),
        );
    }
    if caveats.skipped > 0 {
        push(
            "skipped-records",
            Severity::Note,
            format!(
                "Passed over {} of other operations.",
                ui::format::count(caveats.skipped as usize, "record")
            ),
        );
    }
    let through = header
        .devices
        .iter()
        .filter(|device| device.write_cache == Some(WriteCache::Through));
    let through: Vec<&str> = through.map(|device| device.name.as_str()).collect();
    if !through.is_empty() {
        push(
            "no-flushes-reach-the-device",
            Severity::Note,
            format!(
                "{}: the write cache is \"write through\", so the block layer sends neither flushes nor FUA. `replay` \
                 takes writes of log files for commits, where the trace has names of files (--dataset).",
                through.join(", ")
            ),
        );
    }
    findings
}

/// Severity of a count of lost or ambiguous events, and their share as text.
fn counted(count: u64, ios: u64) -> Option<(Severity, String)> {
    let share = count as f64 / ios.max(1) as f64;
    Some((
        Caveats::severity_of(count, ios)?,
        ui::format::percent(share),
    ))
}
