//! The report: one HTML page that opens offline, for one run or several laid over each other.
//!
//! The content is prepared here as text (`header`, `results`, `phases`, `facts`) and as figures (`charts`); the
//! templates next to this file insert it and escape every string. Without its script the page lacks only the charts.

mod answer;
mod charts;
mod facts;
mod groups;
mod header;
mod imported;
mod names;
mod phases;
mod results;

pub use charts::distribution;
pub use facts::command_line;
pub use groups::groups;
pub use names::Subject;

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod tests;

use askama::Template;
use ledger::Mark;
use record::{ImportedRun, Run};

use crate::conclusion::Conclusion;
use crate::judged::ImportConclusion;
use page::Figures;
use ui::output::OutputFile;

/// The whole page.
#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    runs: Vec<header::RunCard>,
    imported: Vec<imported::ImportedView>,
    answers: Vec<answer::AnswerView>,
    results: results::ResultTable,
    phases: Vec<phases::Section>,
    facts: facts::FactTable,
}

/// Writes the report of `runs`, and of the `imported` runs of other tools, with the `marks` that were set while they
/// ran.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn write_file(
    output: &OutputFile,
    runs: &[(Run, Conclusion)],
    imported: &[(ImportedRun, ImportConclusion)],
    marks: &[Mark],
) -> anyhow::Result<()> {
    output.write(&page(runs, imported, marks)?)
}

/// The report of `runs`.
///
/// # Errors
/// When a template fails.
pub(crate) fn page(
    runs: &[(Run, Conclusion)],
    imported: &[(ImportedRun, ImportConclusion)],
    marks: &[Mark],
) -> anyhow::Result<Vec<u8>> {
    let subjects = names::subjects(runs);
    let mut groups = groups(&subjects);
    for group in &mut groups {
        group.mark(marks);
    }
    let mut figures = Figures::default();
    let main = Page {
        runs: subjects.iter().map(header::card).collect(),
        imported: imported.iter().map(imported::view).collect(),
        answers: subjects
            .iter()
            .filter_map(|subject| answer::view(subject, &mut figures))
            .collect(),
        results: results::table(&groups, subjects.len() > 1),
        phases: groups
            .iter()
            .map(|group| phases::section(group, subjects.len(), &mut figures))
            .collect(),
        facts: facts::table(&subjects),
    };
    page::page(&title(&subjects, imported), None, &main, &figures)
}

fn title(subjects: &[names::Subject<'_>], imported: &[(ImportedRun, ImportConclusion)]) -> String {
    match (subjects, imported) {
        ([], []) => "disksmith report".to_owned(),
        ([only], []) => format!(
            "{} on {} – disksmith",
            only.run.target.path, only.run.machine.hostname
        ),
        ([], [(only, _)]) => format!("{}, imported – disksmith", only.summary.tool),
        (several, others) => format!("{} runs compared – disksmith", several.len() + others.len()),
    }
}
