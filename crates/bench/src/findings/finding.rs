//! Construction of a finding, and the advice to measure for longer.

use record::{CallKind, Finding, FindingCode, Phase, Severity, StopReason};

/// Advice by which a phase would be measured for longer, as a clause: an option, or to measure several times where no option
/// does so.
pub(super) fn advice_for_longer_phase(phase: &Phase) -> &'static str {
    let details = phase.workload.details.as_deref();
    let is_job = details.is_some_and(|details| details.mixed || !details.options.is_empty());
    match phase.workload.calls() {
        None if is_job && phase.stopped == StopReason::Ops => {
            "give the job a larger size, or runtime and time_based"
        }
        None if is_job => "give the job a longer runtime",
        None => "give more --seconds",
        // No option sets the size of Bonnie++'s tests of single bytes.
        Some(CallKind::Data) if phase.workload.block.0 == 1 => "measure several times",
        Some(CallKind::Data) => "give a larger --size",
        Some(CallKind::Create | CallKind::Stat | CallKind::Delete) => "give more --files",
    }
}

/// A finding; of the whole run where `phase` is `None`.
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
