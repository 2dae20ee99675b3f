//! The page of a trace: rate, latency and queue depth over time, a heat map of offsets, and the distribution of latency
//! by class.

mod charts;

use askama::Template;
use page::ChartView;
use ui::output::OutputFile;

use crate::figures::Figures;
use crate::io::DeviceIndex;
use crate::views::{self, COLUMNS, GroupShown, TraceDocument, TraceFinding};

/// A table of groups.
struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
}

/// The main part of the page.
#[derive(Template)]
#[template(path = "trace.html")]
struct Page<'a> {
    heading: String,
    verdict: String,
    sign: &'static str,
    facts: Vec<(&'static str, String)>,
    findings: &'a [TraceFinding],
    charts: Vec<ChartView>,
    heads: &'static [&'static str],
    tables: Vec<Table>,
}

/// Writes the page of a trace; `devices` are the names of its devices by their number.
pub(crate) fn write(
    output: &OutputFile,
    shown: &TraceDocument,
    figures: &Figures,
    devices: &[String],
) -> anyhow::Result<()> {
    output.write(&page(shown, figures, devices)?)
}

fn page(shown: &TraceDocument, figures: &Figures, devices: &[String]) -> anyhow::Result<Vec<u8>> {
    let name = |index: DeviceIndex| {
        let name = devices.get(usize::from(index.0));
        name.cloned().unwrap_or_default()
    };
    let mut drawn = page::Figures::default();
    let charts = charts::all(figures, shown.flushes_recorded, name);
    let main = Page {
        heading: views::title(shown),
        verdict: format!("{:?}", shown.verdict).to_lowercase(),
        sign: ui::format::verdict_sign(shown.verdict),
        facts: views::facts(shown),
        findings: &shown.findings,
        charts: charts.into_iter().map(|chart| drawn.add(chart)).collect(),
        heads: &COLUMNS,
        tables: tables(shown),
    };
    let file = std::path::Path::new(&shown.file);
    let name = file.file_name().unwrap_or(file.as_os_str());
    let title = format!("{} – disksmith", name.to_string_lossy());
    page::page(&title, None, &main, &drawn)
}

fn tables(shown: &TraceDocument) -> Vec<Table> {
    let rows = |groups: &Vec<GroupShown>| groups.iter().map(views::row).collect();
    let tables = [
        ("Classes", Some(rows(&shown.classes))),
        ("Devices", views::device_rows(shown)),
        ("Processes", shown.processes.as_ref().map(rows)),
        ("Files", shown.files.as_ref().map(rows)),
    ];
    let some = |(title, rows): (_, Option<_>)| Some(Table { title, rows: rows? });
    tables.into_iter().filter_map(some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::tests::read_at;
    use crate::io::{Io, Op};
    use record::Nanos;

    #[test]
    fn every_chart_is_drawn() {
        let mut figures = Figures::default();
        let mut random = record::random::SplitMix64::new(5);
        for n in 0..4000 {
            let issued = n * 2_000_000;
            figures.add(&Io {
                op: if n % 3 == 0 { Op::Write } else { Op::Read },
                completed: Some(Nanos(issued + 50_000 + random.below(5_000_000))),
                ..read_at(issued, random.below(1 << 20) * 4096)
            });
        }
        let shown = crate::views::tests::shown(&mut figures);
        let page = page(&shown, &figures, &["vd<a>".to_owned()]).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("vd<a>"));
        page::browser::assert_drawn("trace", &page);
        page::browser::assert_narrow("trace", &page);
    }
}
