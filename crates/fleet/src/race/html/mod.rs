//! The page of a race: the kept hosts, the distribution over zones and types, and the table.

mod charts;
#[cfg(test)]
mod tests;

use askama::Template;

use crate::race::conclude::{Decision, RaceConclusion};
use crate::race::report::{HostCells, HostReport, RaceReport};
use crate::race::view;
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use charts::RaceView;
use page::{ChartView, Figures};
use ui::format;

/// A host in the table.
struct Line {
    cells: HostCells,
    /// CSS class of its row and its decision.
    class: &'static str,
    /// Reason of the decision.
    why: String,
}

/// The whole page.
#[derive(Template)]
#[template(path = "race.html")]
struct Page {
    heading: String,
    /// The badge's text, symbol and style.
    badge: (&'static str, &'static str, &'static str),
    identity: Vec<(&'static str, String)>,
    sentences: Vec<String>,
    charts: Vec<ChartView>,
    figure: String,
    lines: Vec<Line>,
}

/// The page of a race.
///
/// # Errors
/// When a template fails.
pub(crate) fn of(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
) -> anyhow::Result<Vec<u8>> {
    page(RaceView {
        run,
        record,
        concluded,
    })
}

fn page(view: RaceView<'_>) -> anyhow::Result<Vec<u8>> {
    let RaceView {
        run,
        record,
        concluded,
    } = view;
    let mut figures = Figures::default();
    let charts = charts::all(view)
        .into_iter()
        .map(|chart| figures.add(chart))
        .collect();
    let kept = concluded
        .groups
        .iter()
        .map(|group| group.kept)
        .sum::<usize>();
    let report = RaceReport::of(run, record, concluded);
    let heading = format!("{kept} of {} hosts are kept", run.hosts.len());
    let title = format!("{heading} – disksmith");
    let main = Page {
        heading,
        badge: badge(view),
        identity: vec![
            ("Ranked by", report.figure.clone()),
            ("Kept of each group", record.keep.to_string()),
            ("Rounds", record.rounds.len().to_string()),
            ("A round", format::seconds(record.round_s)),
            ("Date", format::date(run.began)),
            ("Race", run.id.clone()),
        ],
        sentences: [
            view::sentences(record, concluded),
            view::remarks(run, record, concluded),
        ]
        .concat(),
        charts,
        figure: report.figure.clone(),
        lines: report.hosts.iter().map(line).collect(),
    };
    page::page(&title, Some(page::TABLE_STYLE), &main, &figures)
}

fn badge(view: RaceView<'_>) -> (&'static str, &'static str, &'static str) {
    let groups = &view.concluded.groups;
    if view.record.interrupted || groups.iter().any(|group| group.end.is_none()) {
        ("not over", "…", "doubtful")
    } else if groups.iter().all(|group| group.kept == 0) {
        ("none kept", "✕", "invalid")
    } else if groups.iter().any(|group| group.tied > 0) {
        ("decided, with ties", "✓", "trusted")
    } else {
        ("decided", "✓", "trusted")
    }
}

fn line(host: &HostReport<'_>) -> Line {
    Line {
        cells: host.cells(),
        class: match host.decision {
            Decision::Keep => "best",
            Decision::Tie => "tie",
            Decision::Open => "open",
            Decision::Cull => "dropped",
            Decision::HostFloor => "missed",
            Decision::Failed | Decision::Unreachable | Decision::Busy => "failed",
        },
        why: host.reason.to_owned(),
    }
}
