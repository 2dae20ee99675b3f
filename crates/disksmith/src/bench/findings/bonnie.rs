//! What it means that the tests of Bonnie++ go through the page cache.

use record::{Code, Finding, Phase, Run, Severity};

use super::finding;
use crate::render::words::percent;

/// The file is so many times the memory, or its tests say more of memory than of the disk.
const TIMES_MEMORY: u64 = 2;
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
    let small = span.is_some_and(|span| span.0 < TIMES_MEMORY * memory.0);
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

/// How much of what a test reads memory may answer without a word against the run: what it can hold
/// of a file that is large enough. 0 is nothing, as for all other suites.
pub(super) fn share_in_memory(run: &Run, phase: &Phase) -> f64 {
    let (span, memory) = (phase.workload.span.unwrap_or_default(), run.machine.memory);
    if run.suite != "bonnie" || span.0 < TIMES_MEMORY * memory.0 {
        return 0.0;
    }
    memory.0 as f64 / span.0.max(1) as f64
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

#[cfg(test)]
mod tests {
    use record::{Bytes, Calls, Details, Verdict};

    use super::super::made::{self, Made};
    use super::*;

    /// A run of the suite that read a file of `times` the memory, on this machine's odd KiB.
    fn reading(times: f64, device_share: f64) -> Run {
        let mut run = Made::steady(1000.0).device_share(device_share).run();
        run.suite = "bonnie".to_owned();
        run.target.direct = false;
        run.machine.memory = Bytes::kib(24_684_084);
        let workload = &mut run.phases[0].workload;
        workload.block = Bytes::kib(8);
        workload.span = Some(Bytes((run.machine.memory.0 as f64 * times) as u64));
        of_calls(workload, Calls::Data);
        run
    }

    fn of_calls(workload: &mut record::Workload, calls: Calls) {
        workload.details = Some(Box::new(Details {
            calls: Some(calls),
            ..Details::default()
        }));
    }

    #[test]
    fn a_file_of_twice_the_memory_is_doubtful_and_no_more() {
        for device_share in [1.0, 0.55] {
            let run = reading(2.0, device_share);
            let said = made::conclude(&run);
            assert_eq!(said.verdict, Verdict::Doubtful, "{:?}", said.findings);
        }
        // Memory cannot have answered so much.
        let said = made::conclude(&reading(2.0, 0.3));
        assert_eq!(said.verdict, Verdict::Invalid);
    }

    #[test]
    fn a_smaller_file_is_invalid() {
        let said = made::conclude(&reading(1.9, 1.0));
        assert_eq!(said.verdict, Verdict::Invalid);
        let text = &said.findings[0].text;
        assert!(text.contains("Give a larger --size"), "{text}");
    }
}
