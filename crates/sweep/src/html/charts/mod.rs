//! The charts of a sweep.

mod cost;
mod drift;
mod effects;
mod maps;
mod scaling;
mod speed;

use record::Run;

use super::view::PageView;
use crate::views::units::figure;
use bench::conclusion::Conclusion;
use bench::views::html::{Subject, distribution, groups};
use page::charts::Chart;

pub(super) use maps::all as maps;

/// Growth of the rate with the members, and with the cost.
pub(super) fn growth(view: PageView<'_>) -> Vec<Chart> {
    scaling::chart(view)
        .into_iter()
        .chain(cost::chart(view))
        .collect()
}

/// Effects of the settings.
pub(super) fn effects(view: PageView<'_>) -> Vec<Chart> {
    effects::chart(view).into_iter().collect()
}

/// The baseline over time.
pub(super) fn drift(view: PageView<'_>) -> Vec<Chart> {
    drift::chart(view).into_iter().collect()
}

/// Latency distributions of the finalists, in the phases of the objective and the requirements.
pub(super) fn finalists(view: PageView<'_>) -> Vec<Chart> {
    let studied: Vec<(&str, &Run, Conclusion)> = view
        .finalists
        .iter()
        .map(|(label, run)| (label.as_str(), run, Conclusion::of(run)))
        .collect();
    let subjects: Vec<Subject<'_>> = studied
        .iter()
        .enumerate()
        .map(|(slot, (label, run, conclusion))| Subject {
            slot,
            run,
            conclusion,
            short: (*label).to_owned(),
            label: (*label).to_owned(),
        })
        .collect();
    let wanted = phases(view);
    let mut charts = Vec::new();
    for group in groups(&subjects) {
        if !wanted.contains(&group.name) {
            continue;
        }
        for direction in group.directions() {
            let chart = distribution(&group, direction, subjects.len());
            charts.extend(chart.map(|chart| Chart {
                title: match &subjects[..] {
                    // A single line has no legend.
                    [only] => format!("{}, {}: {}", group.name, direction.name(), only.label),
                    _ => format!("{}, {}", group.name, direction.name()),
                },
                caption: format!(
                    "{}; the further left a line lies, the faster",
                    chart.caption
                ),
                ..chart
            }));
        }
    }
    charts
}

/// The phases of the objective and the requirements.
fn phases(view: PageView<'_>) -> Vec<&str> {
    let settings = &view.record.settings;
    let required = settings.requires.iter().map(|one| &one.figure);
    figure(&settings.objective)
        .into_iter()
        .chain(required)
        .map(|figure| figure.phase.as_str())
        .collect()
}
