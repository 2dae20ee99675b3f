//! Findings about rules of a job file: data that is not what was written, and rates that were missed.

use record::{Code, Finding, Phase, Severity};

use super::finding::finding;

/// Data that was read and is not what was written.
pub(super) fn corrupt(phase: &Phase) -> Option<Finding> {
    let verified = phase.outcome.verified.as_ref()?;
    let first = verified.first.as_ref().filter(|_| verified.failed > 0)?;
    let text = format!(
        "{} of {} blocks that were read are not as they were written, the first {first}. The target, or \
         another program, has changed data: do not trust it with any, and look at the kernel's log.",
        verified.failed, verified.requests,
    );
    Some(finding(Code::Corrupt, Severity::Invalid, Some(phase), text))
}

/// A rate that the job had to have was missed, which ended it.
pub(super) fn floor_missed(phase: &Phase) -> Option<Finding> {
    let missed = phase.outcome.floor_missed.as_ref()?;
    let text = format!("The job ended since its rate was too low: {missed}.");
    Some(finding(
        Code::FloorMissed,
        Severity::Warn,
        Some(phase),
        text,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::made::{self, Made};
    use super::*;
    use record::{Run, Verdict, Verified};

    fn run(change: impl FnOnce(&mut Phase)) -> Run {
        let mut run = Made::steady(1000.0).run();
        change(&mut run.phases[0]);
        run
    }

    #[test]
    fn a_failed_verification_makes_a_run_invalid() {
        let verified = |failed| Verified {
            requests: 1000,
            failed,
            unjudged: 0,
            first: Some("at byte 4096: its sum does not match".to_owned()),
        };
        let made = run(|phase| phase.outcome.verified = Some(verified(2)));
        let conclusion = made::conclude(&made);
        assert_eq!(conclusion.verdict, Verdict::Invalid);
        let text = &conclusion.findings[0].text;
        assert!(
            text.contains("2 of 1000 blocks") && text.contains("byte 4096"),
            "{text}"
        );
        let sound = run(|phase| phase.outcome.verified = Some(verified(0)));
        assert_eq!(made::codes(&sound), []);
    }

    #[test]
    fn a_rate_that_was_missed_is_named() {
        let made = run(|phase| phase.outcome.floor_missed = Some("900 reads a second".to_owned()));
        assert_eq!(made::codes(&made), [(Code::FloorMissed, Severity::Warn)]);
    }
}
