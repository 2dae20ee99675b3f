//! Findings of the tests of Bonnie++, which go through the page cache.

use record::{Bytes, Finding, FindingCode, Phase, Run, Severity, Workload};

use super::finding::finding;
use ui::format::percent;

/// Minimum size of the file as a multiple of the memory: with a smaller file the tests measure memory more than the
/// disk.
const TIMES_MEMORY: u64 = 2;
/// Maximum distance of a period without completions from the slice in which the last call began, in seconds.
const SLICE_S: f64 = 0.2;

/// The finding that reads and writes went through the page cache, as Bonnie++ makes them: the figures depend on how
/// much of them it can hold.
pub(super) fn through_cache(run: &Run) -> Option<Finding> {
    if run.suite != "bonnie" || run.target.in_memory {
        return None;
    }
    let of = |wanted: fn(&Workload) -> bool| {
        let mut all = run.phases.iter().map(|phase| &phase.workload);
        all.find(|workload| wanted(workload))
    };
    let large = of(|work| !work.is_metadata_work() && work.block.0 > 1);
    let bytes = of(|work| !work.is_metadata_work() && work.block.0 == 1);
    let (mut severity, mut parts) = (Severity::Warn, Vec::new());
    match large.or(bytes).and_then(|work| work.span) {
        Some(span) if span.0 < TIMES_MEMORY * run.machine.memory.0 => {
            severity = Severity::Invalid;
            parts.push(too_small(span, run.machine.memory, large.is_some()));
        }
        Some(span) => parts.push(large_enough(span, run.machine.memory)),
        None => {}
    }
    if of(Workload::is_metadata_work).is_some() {
        let files =
            "Small files are created, read and removed in memory, and reach the disk later.";
        parts.push(files.to_owned());
    }
    let text = format!(
        "Bonnie++'s tests go through the page cache. {}",
        parts.join(" ")
    );
    (!parts.is_empty()).then(|| finding(FindingCode::Cached, severity, None, text))
}

/// Text of the finding that the data, or much of it, fits into memory. Only the size of the large file can be chosen
/// by the user.
fn too_small(span: Bytes, memory: Bytes, large: bool) -> String {
    let (what, advice) = match large {
        true => ("file", "Give a larger --size."),
        false => (
            "file of single bytes",
            "Measure block-write for the disk's.",
        ),
    };
    format!(
        "The {what}, {span}, is less than twice this machine's memory ({memory}), and the data read or written may have stayed there: the figures are the memory's as much as the disk's. \
         {advice}"
    )
}

fn large_enough(span: Bytes, memory: Bytes) -> String {
    format!(
        "Of the file of {span} it can hold up to {} ({memory}), which is in the figures.",
        percent(memory.0 as f64 / span.0.max(1) as f64)
    )
}

/// Share of a test's reads that memory may serve without a finding: the share of a sufficiently large file that memory
/// can hold. 0 for all other suites.
pub(super) fn share_in_memory(run: &Run, phase: &Phase) -> f64 {
    let (span, memory) = (phase.workload.span.unwrap_or_default(), run.machine.memory);
    if run.suite != "bonnie" || span.0 < TIMES_MEMORY * memory.0 {
        return 0.0;
    }
    memory.0 as f64 / span.0.max(1) as f64
}

/// True if completions stopped only because of the one fsync that ends the work: that is no stall, and it has its own
/// row.
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
    use record::{CallKind, JobOptions, Verdict};

    use super::super::test_run::{self, TestRun};
    use super::*;

    /// A run of the suite that read a file of `times` the memory, where the memory is no whole number of MiB.
    fn reading(times: f64, device_share: f64) -> Run {
        let mut run = TestRun::steady(1000.0).device_share(device_share).run();
        run.suite = "bonnie".to_owned();
        run.target.direct = false;
        run.machine.memory = Bytes::kib(24_684_084);
        let workload = &mut run.phases[0].workload;
        workload.block = Bytes::kib(8);
        workload.span = Some(Bytes((run.machine.memory.0 as f64 * times) as u64));
        of_calls(workload, CallKind::Data);
        run
    }

    fn of_calls(workload: &mut record::Workload, calls: CallKind) {
        workload.details = Some(Box::new(JobOptions {
            calls: Some(calls),
            ..JobOptions::default()
        }));
    }

    #[test]
    fn a_file_of_twice_the_memory_is_doubtful_and_no_more() {
        for device_share in [1.0, 0.55] {
            let run = reading(2.0, device_share);
            let conclusion = test_run::conclude(&run);
            assert_eq!(
                conclusion.verdict,
                Verdict::Doubtful,
                "{:?}",
                conclusion.findings
            );
        }
        // More than memory can have served.
        let conclusion = test_run::conclude(&reading(2.0, 0.3));
        assert_eq!(conclusion.verdict, Verdict::Invalid);
    }

    #[test]
    fn a_smaller_file_is_invalid() {
        let conclusion = test_run::conclude(&reading(1.9, 1.0));
        assert_eq!(conclusion.verdict, Verdict::Invalid);
        let text = &conclusion.findings[0].text;
        assert!(text.contains("Give a larger --size"), "{text}");
    }

    fn with(run: &mut Run, block: u64, span: Bytes, calls: CallKind) {
        let mut phase = run.phases[0].clone();
        phase.workload.block = Bytes(block);
        phase.workload.span = Some(span);
        of_calls(&mut phase.workload, calls);
        run.phases.push(phase);
    }

    #[test]
    fn each_kind_of_test_has_its_words() {
        let conclusion = |data: bool, bytes: bool, files: bool| {
            let mut run = reading(2.0, 1.0);
            if bytes {
                with(&mut run, 1, Bytes::mib(3), CallKind::Data);
            }
            if files {
                with(&mut run, 0, Bytes(0), CallKind::Create);
            }
            if !data {
                run.phases.remove(0);
            }
            let finding = through_cache(&run).unwrap();
            let has = |words: &str| finding.text.contains(words);
            (
                finding.severity,
                [has("file of 47"), has("single bytes"), has("Small files")],
            )
        };
        let (warn, invalid) = (Severity::Warn, Severity::Invalid);
        assert_eq!(conclusion(true, true, true), (warn, [true, false, true]));
        assert_eq!(conclusion(true, false, false), (warn, [true, false, false]));
        assert_eq!(
            conclusion(false, true, false),
            (invalid, [false, true, false])
        );
        assert_eq!(
            conclusion(false, true, true),
            (invalid, [false, true, true])
        );
        assert_eq!(conclusion(false, false, true), (warn, [false, false, true]));
    }
}
