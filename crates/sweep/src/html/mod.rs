//! The page of a sweep: the verdict, the effects of the factors, the table, and the commands that build the winner. It
//! shares style and script with the report of a run, and needs no network.

mod charts;
mod table;
mod verdict;
mod view;

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod tests;

use askama::Template;
use record::Run;

use crate::views::sentences;
use crate::{ExcludedSetting, SweepDecision, SweepRecord};
use page::charts::Chart;
use page::{ChartView, Figures};
use ui::format;
use view::PageView;

/// A section of charts.
struct Section {
    anchor: &'static str,
    title: &'static str,
    charts: Vec<ChartView>,
}

/// The whole page.
#[derive(Template)]
#[template(path = "sweep.html")]
struct Page<'a> {
    verdict: verdict::VerdictView,
    commands: &'a [String],
    sections: Vec<Section>,
    table: table::LayoutTable,
    left_out: &'a [ExcludedSetting],
    effects: Vec<&'a str>,
    facts: Vec<(&'static str, String)>,
}

/// The page of a sweep. `finalists` are the runs of the winner and its ties, each with its label; `commands` build
/// the winner.
///
/// # Errors
/// When a template fails.
pub(crate) fn of(
    record: &SweepRecord,
    decision: &SweepDecision,
    finalists: &[(String, Run)],
    commands: &[String],
) -> anyhow::Result<Vec<u8>> {
    let view = PageView {
        record,
        decision,
        finalists,
    };
    page(view, commands)
}

fn page(view: PageView<'_>, commands: &[String]) -> anyhow::Result<Vec<u8>> {
    let PageView {
        record, decision, ..
    } = view;
    let mut figures = Figures::default();
    let title = format!(
        "{} of {} on {} – disksmith",
        format::count(record.layouts.len(), "layout"),
        format::count(record.settings.devices.len(), "device"),
        record.machine.hostname
    );
    let main = Page {
        verdict: verdict::of(view),
        commands: if decision.winner.is_some() {
            commands
        } else {
            &[]
        },
        sections: sections(view, &mut figures),
        table: table::of(view),
        left_out: &record.left_out,
        effects: decision
            .effects
            .iter()
            .map(|effect| effect.text.as_str())
            .collect(),
        facts: facts(record),
    };
    page::page(&title, Some(page::TABLE_STYLE), &main, &figures)
}

/// The sections that have a chart.
fn sections(view: PageView<'_>, figures: &mut Figures) -> Vec<Section> {
    let mut add = |anchor, title, charts: Vec<Chart>| Section {
        anchor,
        title,
        charts: charts.into_iter().map(|chart| figures.add(chart)).collect(),
    };
    let sections = vec![
        add("maps", "Chunk and members", charts::maps(view)),
        add("growth", "Growth and cost", charts::growth(view)),
        add("factors", "What each setting did", charts::effects(view)),
        add(
            "finalists",
            "The finalists' latency",
            charts::finalists(view),
        ),
        add("drift", "The baseline over time", charts::drift(view)),
    ];
    sections
        .into_iter()
        .filter(|section| !section.charts.is_empty())
        .collect()
}

/// The machine and the method.
fn facts(record: &SweepRecord) -> Vec<(&'static str, String)> {
    let (machine, settings) = (&record.machine, &record.settings);
    let mut facts: Vec<(&'static str, String)> = settings
        .devices
        .iter()
        .map(|device| {
            let known = [&device.model, &device.serial];
            let mut parts = vec![device.path.display().to_string(), device.size.to_string()];
            parts.extend(known.into_iter().flatten().cloned());
            ("Device", parts.join(", "))
        })
        .collect();
    facts.extend([
        ("Phases", settings.phases.join(", ")),
        (
            "A phase ends",
            format!(
                "after {}, or when IOPS are known to ±{}",
                settings.seconds,
                format::percent(settings.precision)
            ),
        ),
        ("Test file", settings.size.to_string()),
        ("Blocks at most", settings.blocks.to_string()),
        (
            "As good as the best",
            format!("within {}", format::percent(settings.tie)),
        ),
        (
            "Order",
            format!(
                "random, of seed {}; {}",
                settings.seed,
                if settings.full {
                    "every layout in every block"
                } else {
                    "layouts that are worse beyond doubt are dropped"
                }
            ),
        ),
        ("Host", sentences::place(record)),
        ("CPU", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("Memory", machine.memory.to_string()),
        ("Kernel", machine.kernel.clone()),
        ("Measured by", format!("disksmith {}", record.disksmith)),
        ("Command", bench::views::html::command_line(&record.command)),
    ]);
    facts.extend(
        settings
            .workload
            .iter()
            .map(|workload| ("Workload", workload.clone())),
    );
    facts
}
