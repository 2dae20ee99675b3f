//! Makes a finding, and a clause that several findings end with.

use record::{CallKind, Finding, FindingCode, Phase, Severity, StopReason};

/// Option that would make a phase last longer, as a clause.
pub(super) fn longer(phase: &Phase) -> &'static str {
    let details = phase.workload.details.as_deref();
    let is_job = details.is_some_and(|details| details.mixed || !details.options.is_empty());
    match phase.workload.calls() {
        None if is_job && phase.stopped == StopReason::Ops => {
            "give the job a larger size, or runtime and time_based"
        }
        None if is_job => "give the job a longer runtime",
        None => "give more --seconds",
        // The tests of single bytes have one size.
        Some(CallKind::Data) if phase.workload.block.0 == 1 => "measure several times",
        Some(CallKind::Data) => "give a larger --size",
        Some(CallKind::Create | CallKind::Stat | CallKind::Delete) => "give more --files",
    }
}

pub(super) fn finding(
    code: FindingCode,
    severity: Severity,
    phase: Option<&Phase>,
    text: String,
) -> Finding {
    Finding {
        code,
        severity,
        phase: phase.map(|phase| phase.name.clone()),
        text,
    }
}
