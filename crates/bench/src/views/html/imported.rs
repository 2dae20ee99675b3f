//! The runs of other tools in a report: a separate table of their totals, since there is nothing to plot.

use record::ImportedRun;

use super::header::{FindingLine, finding_line};
use crate::judged::ImportConclusion;
use crate::views::imported::{ImportedRow, rows};
use ui::format;

/// View of one imported run.
pub(super) struct ImportedView {
    pub(super) tool: String,
    /// Name and value of each fact that identifies the run, in the order in which it is shown.
    pub(super) identity: Vec<(&'static str, String)>,
    pub(super) verdict: &'static str,
    pub(super) sign: &'static str,
    pub(super) findings: Vec<FindingLine>,
    pub(super) rows: Vec<ImportedRow>,
}

pub(super) fn view((run, judged): &(ImportedRun, ImportConclusion)) -> ImportedView {
    let summary = &run.summary;
    let known = [
        ("Target", summary.target.clone()),
        ("Host", summary.host.clone()),
        ("Date", summary.ran.map(format::date)),
        ("From", Some(run.source.clone())),
        ("Run", Some(run.id.to_string())),
    ];
    ImportedView {
        tool: summary.tool.clone(),
        identity: known
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        verdict: judged.verdict.name(),
        sign: format::verdict_sign(judged.verdict),
        findings: judged.findings.iter().map(finding_line).collect(),
        rows: rows(run),
    }
}
