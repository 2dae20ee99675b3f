//! The head of the page: the best layout, the conclusions and the doubts.

use super::view::PageView;
use crate::views::sentences;
use crate::views::units::FigureUnit;
use ui::format;

/// Verdict at the top.
pub(super) struct VerdictView {
    /// The winner's layout, or the reason why there is no winner.
    pub(super) title: String,
    /// The winner's value with its interval; empty without a winner.
    pub(super) value: String,
    /// The badge's word, sign and style.
    pub(super) badge: (&'static str, &'static str, &'static str),
    /// Names and values that identify the sweep.
    pub(super) identity: Vec<(&'static str, String)>,
    /// Layouts that are as good, as a sentence.
    pub(super) ties: Option<String>,
    pub(super) answers: Vec<String>,
    /// Reasons to doubt the result.
    pub(super) doubts: Vec<String>,
    pub(super) outs: Vec<String>,
    /// Command that resumes the sweep; `None` if it is over.
    pub(super) resume: Option<String>,
    /// The settings that all layouts have in common.
    pub(super) alike: String,
}

pub(super) fn of(view: PageView<'_>) -> VerdictView {
    let (record, decision) = (view.record, view.decision);
    let unit = FigureUnit::of_objective(&record.settings.objective);
    let value = decision
        .winner
        .and_then(|winner| sentences::row(decision, winner)?.value);
    VerdictView {
        title: match decision.winner {
            Some(winner) => sentences::layout(record, winner),
            None => sentences::winner(record, decision),
        },
        value: value.map_or_else(String::new, |value| {
            let so_far = if decision.over { "" } else { "Best so far: " };
            format!("{so_far}{}", unit.show_value(value))
        }),
        badge: badge(view),
        identity: vec![
            ("Wanted", sentences::goal(&record.settings)),
            ("Devices", sentences::devices(&record.settings)),
            ("Layouts", record.layouts.len().to_string()),
            ("Measured", sentences::effort(record)),
            ("Host", sentences::place(record)),
            ("Date", format::date(record.started)),
            ("Sweep", record.id.to_string()),
        ],
        ties: sentences::ties(record, decision),
        answers: sentences::survivors(record, decision)
            .into_iter()
            .chain(decision.answers.iter().cloned())
            .collect(),
        doubts: decision.doubts.clone(),
        outs: sentences::exclusions(decision),
        resume: sentences::resume(record, decision),
        alike: sentences::alike(record),
    }
}

fn badge(view: PageView<'_>) -> (&'static str, &'static str, &'static str) {
    let decision = view.decision;
    match (decision.over, decision.winner) {
        (false, _) => ("not over", "…", "doubtful"),
        (true, None) => ("no winner", "✕", "invalid"),
        (true, Some(_)) if decision.ties.is_empty() => ("best", "✓", "trusted"),
        (true, Some(_)) => ("best, with ties", "✓", "trusted"),
    }
}
