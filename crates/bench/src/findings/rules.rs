//! Findings about rules of a job file: data that differs from the data written, and rates that were missed.

use record::{Finding, FindingCode, Phase, Severity};

use super::finding::finding;
use ui::format::count;

/// The finding that data was read which differs from the data written.
pub(super) fn corrupt(phase: &Phase) -> Option<Finding> {
    let verified = phase.outcome.verified.as_ref()?;
    let first = verified.first.as_ref().filter(|_| verified.failed > 0)?;
    let text = format!(
        "{} of {} blocks that were read are not as they were written, the first {first}. The target, or \
         another program, has changed data: do not trust it with any, and look at the kernel's log.",
        verified.failed, verified.requests,
    );
    Some(finding(
        FindingCode::Corrupt,
        Severity::Invalid,
        Some(phase),
        text,
    ))
}

/// The finding that a required rate was missed, which ended the job.
pub(super) fn floor_missed(phase: &Phase) -> Option<Finding> {
    let missed = phase.outcome.floor_missed.as_ref()?;
    let text = format!("The job ended since its rate was too low: {missed}.");
    Some(finding(
        FindingCode::FloorMissed,
        Severity::Warn,
        Some(phase),
        text,
    ))
}

/// The finding that requests failed and the job continued.
pub(super) fn io_errors(phase: &Phase) -> Option<Finding> {
    let failed = phase.outcome.failed.as_ref()?;
    let kinds = [
        ("read", failed.reads),
        ("write", failed.writes),
        ("trim", failed.trims),
        ("sync", failed.syncs),
    ];
    let kinds: Vec<String> = kinds
        .into_iter()
        .filter(|(_, requests)| *requests > 0)
        .map(|(kind, requests)| count(requests as usize, kind))
        .collect();
    let text = format!(
        "{} failed, of which the first was: {}. The job went on, as it was to; the figures are of the other \
         requests. Look at the kernel's log, and replace the disk if it is the disk that fails.",
        kinds.join(", "),
        failed.first,
    );
    Some(finding(
        FindingCode::IoErrors,
        Severity::Warn,
        Some(phase),
        text,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, TestRun};
    use super::*;
    use record::{FailedRequests, Run, Verdict, Verified};

    fn run(change: impl FnOnce(&mut Phase)) -> Run {
        let mut run = TestRun::steady(1000.0).run();
        change(&mut run.phases[0]);
        run
    }

    #[test]
    fn a_failed_verification_makes_a_run_invalid() {
        let verified = |failed| Verified {
            requests: 1000,
            failed,
            unjudged: 0,
            first: Some("at byte 4096: its checksum does not match".to_owned()),
        };
        let made = run(|phase| phase.outcome.verified = Some(verified(2)));
        let conclusion = test_run::conclude(&made);
        assert_eq!(conclusion.verdict, Verdict::Invalid);
        let text = &conclusion.findings[0].text;
        assert!(
            text.contains("2 of 1000 blocks") && text.contains("byte 4096"),
            "{text}"
        );
        let sound = run(|phase| phase.outcome.verified = Some(verified(0)));
        assert_eq!(test_run::codes(&sound), []);
    }

    #[test]
    fn requests_that_failed_are_counted_and_the_first_is_told() {
        let made = run(|phase| {
            phase.outcome.failed = Some(FailedRequests {
                reads: 1200,
                syncs: 2,
                first: "a read at byte 4096 failed: Input/output error".to_owned(),
                ..FailedRequests::default()
            });
        });
        assert_eq!(
            test_run::codes(&made),
            [(FindingCode::IoErrors, Severity::Warn)]
        );
        let text = &test_run::conclude(&made).findings[0].text;
        assert!(text.starts_with("1,200 reads, 2 syncs failed"), "{text}");
        assert!(text.contains("a read at byte 4096 failed"), "{text}");
    }

    #[test]
    fn a_phase_in_which_most_failed_did_not_stall() {
        let stalled = |failed| {
            let mut made = TestRun::steady(1000.0).stalled(3..5).run();
            made.phases[0].outcome.failed = failed;
            let codes = test_run::codes(&made);
            codes.iter().any(|(code, _)| *code == FindingCode::Stall)
        };
        assert!(stalled(None));
        let failed = |reads| FailedRequests {
            reads,
            ..FailedRequests::default()
        };
        assert!(stalled(Some(failed(5))));
        assert!(!stalled(Some(failed(1_000_000))));
    }

    #[test]
    fn a_rate_that_was_missed_is_named() {
        let made = run(|phase| phase.outcome.floor_missed = Some("900 reads a second".to_owned()));
        assert_eq!(
            test_run::codes(&made),
            [(FindingCode::FloorMissed, Severity::Warn)]
        );
    }
}
