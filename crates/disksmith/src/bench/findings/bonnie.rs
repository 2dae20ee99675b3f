//! What it means that the tests of Bonnie++ go through the page cache.

use record::{Code, Finding, Phase, Run, Severity};

use super::finding;
use crate::render::words::percent;

/// What a silence may lie off the slice in which the last call began, in seconds.
const SLICE_S: f64 = 0.2;

/// Reads and writes went through the page cache, as Bonnie++ makes them: how much of them it can
/// hold decides what the figures say.
pub(super) fn through_cache(run: &Run) -> Option<Finding> {
    if run.suite != "bonnie" || run.target.in_memory {
        return None;
    }
    let of_data = |phase: &&Phase| !phase.workload.is_of_files() && phase.workload.block.0 > 1;
    let large = run.phases.iter().find(of_data);
    let span = large.and_then(|phase| phase.workload.span);
    let memory = run.machine.memory;
    let small = span.is_some_and(|span| span.0 < 2 * memory.0);
    let (severity, what) = match span {
        Some(span) if small => (
            Severity::Invalid,
            format!(
                "the file of {span} is less than twice this machine's memory ({memory}), and what \
                 is read may have come from there: the figures are the memory's as much as the \
                 disk's. Give a larger --size."
            ),
        ),
        Some(span) => (
            Severity::Warn,
            format!(
                "of the file of {span} it can hold up to {} ({memory}), which is in the figures.",
                percent(memory.0 as f64 / span.0.max(1) as f64)
            ),
        ),
        None => (
            Severity::Warn,
            "small files are created, looked at and removed in memory, and reach the disk later."
                .to_owned(),
        ),
    };
    Some(finding(
        Code::Cached,
        severity,
        None,
        format!("Bonnie++'s tests go through the page cache: {what}"),
    ))
}

/// Whether nothing came back only because of the one fsync that ends the work: it is no stall, and
/// has a row of its own.
pub(super) fn waits_at_end_only(phase: &Phase) -> bool {
    let Some(sync) = phase
        .sync
        .as_ref()
        .filter(|_| phase.workload.calls().is_some())
    else {
        return false;
    };
    let last_s = sync.latency.max() as f64 / 1e9;
    let silent: f64 = super::trouble::silent_seconds(phase);
    phase.workload.sync_every == 0 && silent <= last_s + SLICE_S
}
