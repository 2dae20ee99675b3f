//! Answer of a run's suite: its sentences, and a chart of its figures.

use super::names::Subject;
use crate::answer::{CurveAnswer, SeekPoint, SuiteResult, ZonesAnswer};
use crate::views::answer::sentences;
use page::charts::{Chart, Figure, rounded};
use page::plot::{Line, Mode, Scale, Trace};
use page::{ChartView, Figures, charts};

/// A run's answer.
pub(super) struct AnswerView {
    pub(super) short: String,
    pub(super) colour: usize,
    pub(super) sentences: Vec<String>,
    pub(super) charts: Vec<ChartView>,
    /// Column titles of a table; without rows there is no table.
    pub(super) titles: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
}

/// The answer of a run, if its suite has one.
pub(super) fn view(subject: &Subject<'_>, figures: &mut Figures) -> Option<AnswerView> {
    let answer = subject.conclusion.answer.as_ref()?;
    let colour = charts::colour_index(subject.slot);
    let charts = match answer {
        SuiteResult::Sysbench { .. } | SuiteResult::Bonnie { .. } => return None,
        SuiteResult::Seek { points } => vec![seek(points, colour)],
        SuiteResult::Zones(zones) => vec![by_position(zones, colour)],
        SuiteResult::Curve(curve) => vec![by_rate(curve, colour)],
        SuiteResult::Replay(answer) => replay::views::charts(answer, colour),
    };
    let (titles, rows): (&[&str], _) = match answer {
        SuiteResult::Replay(answer) => (&replay::views::TITLES, replay::views::rows(answer)),
        _ => (&[], Vec::new()),
    };
    let charts = charts.into_iter().map(|chart| figures.add(chart));
    Some(AnswerView {
        short: subject.short.clone(),
        colour,
        sentences: sentences(answer),
        charts: charts.collect(),
        titles,
        rows,
    })
}

/// A line through points.
fn line(name: &str, colour: usize, points: impl Iterator<Item = (f64, f64)>) -> Trace {
    let (x, y): (Vec<f64>, Vec<f64>) = points.map(|(x, y)| (rounded(x), rounded(y))).unzip();
    Trace::points(x, y)
        .name(name)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(format!("var(--run-{colour})")).width(2.0))
}

fn seek(points: &[SeekPoint], colour: usize) -> Chart {
    let points = points
        .iter()
        .map(|point| (point.in_flight as f64, point.seeks_per_s.mean));
    Chart {
        title: "Seeks by how many are in flight".to_owned(),
        caption: "Random reads a second".to_owned(),
        figure: Figure {
            data: vec![line("seeks/s", colour, points)],
            layout: charts::layout(
                charts::axis("in flight").scale(Scale::Log),
                charts::axis("seeks/s"),
                false,
            ),
        },
    }
}

fn by_position(answer: &ZonesAnswer, colour: usize) -> Chart {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let zones = &answer.zones;
    let first = zones
        .iter()
        .map(|zone| (gib(zone.position_bytes), mib(zone.first.mean)));
    let again = zones
        .iter()
        .filter_map(|zone| Some((gib(zone.position_bytes), mib(zone.again?.mean))));
    Chart {
        title: "Throughput by position".to_owned(),
        caption: "Sequential reads; a first read far below the second met a cold zone".to_owned(),
        figure: Figure {
            data: vec![
                line("first read", colour, first),
                line("second read", colour + 1, again),
            ],
            layout: charts::layout(charts::axis("position, GiB"), charts::axis("MiB/s"), true),
        },
    }
}

fn by_rate(answer: &CurveAnswer, colour: usize) -> Chart {
    let points = answer
        .points
        .iter()
        .map(|point| (point.rate_per_s, point.p99_ns as f64 / 1e6));
    let ends = [answer.points.first(), answer.points.last()];
    let target = ends
        .into_iter()
        .flatten()
        .map(|point| (point.rate_per_s, answer.p99_target_ns as f64 / 1e6));
    Chart {
        title: "Latency by rate".to_owned(),
        caption: "The 99th percentile of each trial, and the target".to_owned(),
        figure: Figure {
            data: vec![
                line("p99", colour, points),
                line("target", colour + 1, target),
            ],
            layout: charts::layout(
                charts::axis("requests due a second").scale(Scale::Log),
                charts::axis("p99, ms").scale(Scale::Log),
                true,
            ),
        },
    }
}
