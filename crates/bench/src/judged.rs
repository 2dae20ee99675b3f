//! Conclusions from an imported run.

use record::{Finding, FindingCode, ImportedRun, PhaseSummary, Severity, Verdict};

/// Conclusions from an imported run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImportConclusion {
    /// Reasons to doubt its figures, the most severe first.
    pub findings: Vec<Finding>,
    /// Verdict of the findings together. Never `trusted`: totals do not show what a run of this program is examined
    /// for.
    pub verdict: Verdict,
}

impl ImportConclusion {
    /// Judges a run.
    pub(crate) fn of(run: &ImportedRun) -> ImportConclusion {
        let tool = &run.summary.tool;
        let failed = run.summary.phases.iter().filter_map(|phase| {
            let failure = phase.failure.as_ref()?;
            Some(Finding {
                code: FindingCode::Failed,
                severity: Severity::Invalid,
                phase: Some(phase.name.clone()),
                text: format!("{tool} reports: {failure}. Its figures end where it failed."),
            })
        });
        let mut findings: Vec<Finding> = failed.collect();
        findings.extend(
            run.summary
                .phases
                .iter()
                .filter_map(|phase| buffered(tool, phase)),
        );
        findings.push(Finding {
            code: FindingCode::Imported,
            severity: Severity::Warn,
            phase: None,
            text: format!(
                "{tool} measured, and reported totals without windows: there is no interval, and \
                 it is unknown whether a cache, used-up credit, a cap, a stall or other programs' \
                 I/O affected the figures."
            ),
        });
        ImportConclusion {
            verdict: Verdict::of(&findings),
            findings,
        }
    }
}

/// The finding that a phase went through the page cache, as for a run of this program. Writes that are synced one by
/// one reach the disk in any case.
fn buffered(tool: &str, phase: &PhaseSummary) -> Option<Finding> {
    let work = &phase.work;
    let synced = work.read_fraction == Some(0.0) && work.sync_every == Some(1);
    (work.direct == Some(false) && !synced).then(|| Finding {
        code: FindingCode::Cached,
        severity: Severity::Invalid,
        phase: Some(phase.name.clone()),
        text: format!(
            "{tool} did not use direct I/O (O_DIRECT), so requests went through the page cache: the figures are those of memory as much as of the disk. Measure again with \
             direct I/O."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::imported::sample;

    #[test]
    fn an_imported_run_is_never_trusted() {
        let run = sample::fio();
        assert_eq!(ImportConclusion::of(&run).verdict, Verdict::Doubtful);
    }

    #[test]
    fn what_the_tool_calls_failed_is_invalid() {
        let mut run = sample::fio();
        run.summary.phases[0].failure = Some("the job ended with error 28".to_owned());
        let judged = ImportConclusion::of(&run);
        assert_eq!(judged.verdict, Verdict::Invalid);
        assert_eq!(judged.findings[0].phase.as_deref(), Some("page-read"));
    }

    #[test]
    fn what_went_through_the_page_cache_is_invalid_as_our_own_is() {
        let mut run = sample::fio();
        run.summary.phases[0].work.direct = Some(false);
        let judged = ImportConclusion::of(&run);
        assert_eq!(judged.verdict, Verdict::Invalid);
        assert_eq!(judged.findings[0].code, FindingCode::Cached);
        run.summary.phases[0].work.direct = None;
        assert_eq!(
            ImportConclusion::of(&run).verdict,
            Verdict::Doubtful,
            "not known"
        );
        let work = &mut run.summary.phases[0].work;
        (work.direct, work.read_fraction, work.sync_every) = (Some(false), Some(0.0), Some(1));
        assert_eq!(
            ImportConclusion::of(&run).verdict,
            Verdict::Doubtful,
            "a log"
        );
    }
}
