//! The head of the report: what was measured, when and where, with the verdict and the findings.

use record::{Finding, Origin};

use super::names::Subject;
use ui::format;

/// A finding as shown.
pub(super) struct FindingLine {
    pub(super) severity: &'static str,
    pub(super) code: &'static str,
    /// Name of its phase; empty for the whole run.
    pub(super) phase: String,
    pub(super) text: String,
}

/// Header of one run.
pub(super) struct RunCard {
    /// Number of this run's colour among the series' colours.
    pub(super) colour: usize,
    pub(super) short: String,
    pub(super) target: String,
    /// Name and value of each fact that identifies the run, in the order in which it is shown.
    pub(super) identity: Vec<(&'static str, String)>,
    pub(super) verdict: &'static str,
    pub(super) sign: &'static str,
    pub(super) findings: Vec<FindingLine>,
    pub(super) notes: Vec<String>,
    pub(super) interrupted: bool,
    /// The tool that measured, if it was not this program.
    pub(super) imported: Option<String>,
    pub(super) empty: bool,
}

pub(super) fn card(subject: &Subject<'_>) -> RunCard {
    let (run, conclusion) = (subject.run, subject.conclusion);
    let mut identity = vec![("Host", run.machine.hostname.clone())];
    let device: Vec<&str> = [&run.target.device, &run.target.model]
        .into_iter()
        .filter_map(|fact| fact.as_deref())
        .collect();
    if !device.is_empty() {
        identity.push(("Device", device.join(", ")));
    }
    identity.push(("Date", format::date(run.started)));
    identity.push(("Suite", run.suite.clone()));
    identity.push(("Run", run.id.to_string()));
    RunCard {
        colour: page::charts::colour_index(subject.slot),
        short: subject.short.clone(),
        target: run.target.path.clone(),
        identity,
        verdict: conclusion.verdict.name(),
        sign: format::verdict_sign(conclusion.verdict),
        findings: conclusion.findings.iter().map(finding_line).collect(),
        notes: run.notes.clone(),
        interrupted: run.interrupted,
        imported: match &run.origin {
            Origin::Measured => None,
            Origin::Imported { tool } => Some(tool.clone()),
        },
        empty: run.phases.is_empty(),
    }
}

pub(super) fn finding_line(finding: &Finding) -> FindingLine {
    FindingLine {
        severity: format::severity(finding.severity),
        code: finding.code.name(),
        phase: finding.phase.clone().unwrap_or_default(),
        text: finding.text.clone(),
    }
}
