//! What can be concluded of an imported run: that little can.

use record::{Code, Finding, ImportedRun, Severity, Verdict};

/// What was concluded of an imported run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// Reasons to doubt its figures, the heaviest first.
    pub findings: Vec<Finding>,
    /// What they add up to. Never `trusted`: what is looked for in a run of our own cannot be seen
    /// in totals.
    pub verdict: Verdict,
}

impl Judged {
    /// Judges a run.
    pub(crate) fn of(run: &ImportedRun) -> Judged {
        let tool = &run.summary.tool;
        let failed = run.summary.phases.iter().filter_map(|phase| {
            let failure = phase.failure.as_ref()?;
            Some(Finding {
                code: Code::Failed,
                severity: Severity::Invalid,
                phase: Some(phase.name.clone()),
                text: format!("{tool} says: {failure}. Its figures end where it failed."),
            })
        });
        let mut findings: Vec<Finding> = failed.collect();
        findings.push(Finding {
            code: Code::Imported,
            severity: Severity::Warn,
            phase: None,
            text: format!(
                "{tool} measured, and gave totals without windows: no interval can be had, and \
                 whether a cache, spent credit, a cap, a stall or somebody else's I/O is in the \
                 figures cannot be seen."
            ),
        });
        Judged {
            verdict: Verdict::of(&findings),
            findings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::imported::sample;

    #[test]
    fn an_imported_run_is_never_trusted() {
        let run = sample::fio();
        assert_eq!(Judged::of(&run).verdict, Verdict::Doubtful);
    }

    #[test]
    fn what_the_tool_calls_failed_is_invalid() {
        let mut run = sample::fio();
        run.summary.phases[0].failure = Some("the job ended with error 28".to_owned());
        let judged = Judged::of(&run);
        assert_eq!(judged.verdict, Verdict::Invalid);
        assert_eq!(judged.findings[0].phase.as_deref(), Some("page-read"));
    }
}
