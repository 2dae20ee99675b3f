//! The charts of a race: the hosts of each zone and of each type, and the best ones by round.

use page::plot::{Hover, Line, Marker, Mode, Trace};
use std::collections::BTreeMap;

use crate::race::conclude::{Decision, RaceConclusion, RankedHost};
use crate::race::ranked_by::RankedBy;
use crate::race::report::RankedFigure;
use crate::store::race::RaceRecord;
use crate::store::{FleetRun, HostRun};
use page::charts::{Chart, Figure, axis, colour_index, layout, rounded};
use page::escape::plain;

/// Data of the page.
#[derive(Clone, Copy)]
pub(super) struct RaceView<'a> {
    pub run: &'a FleetRun,
    pub record: &'a RaceRecord,
    pub concluded: &'a RaceConclusion,
}

/// Maximum horizontal offset of the hosts of a column, to each side.
const COLUMN_SPREAD: f64 = 0.32;
/// Number of hosts that are shown by round: the number of colours.
const MAX_HOST_LINES: usize = 7;
/// Group of a host without a zone or type.
const UNKNOWN: &str = "unknown";

/// The charts with any content: a single zone or type has no distribution.
pub(super) fn all(view: RaceView<'_>) -> Vec<Chart> {
    let zones = columns(view, |host| host.zone.as_ref());
    let kinds = columns(view, |host| host.kind.as_ref());
    let mut charts = Vec::new();
    charts.extend(strip(view, "zone", &zones));
    if kinds.len() > 1 || !kinds.contains_key(UNKNOWN) {
        charts.extend(strip(view, "type", &kinds));
    }
    charts.extend(rounds(view));
    charts
}

/// The hosts with a figure, by the property that they share.
fn columns<'a>(
    view: RaceView<'a>,
    of: fn(&HostRun) -> Option<&String>,
) -> BTreeMap<&'a str, Vec<&'a RankedHost>> {
    let mut columns: BTreeMap<&str, Vec<&RankedHost>> = BTreeMap::new();
    for one in view
        .concluded
        .ranked
        .iter()
        .filter(|one| one.known.is_some())
    {
        let host = view.run.hosts.get(one.place);
        let name = host.and_then(of).map_or(UNKNOWN, String::as_str);
        columns.entry(name).or_default().push(one);
    }
    columns
}

/// A point for each host above the property that it shares with others.
fn strip(
    view: RaceView<'_>,
    what: &str,
    columns: &BTreeMap<&str, Vec<&RankedHost>>,
) -> Option<Chart> {
    if columns.is_empty() {
        return None;
    }
    let by = RankedBy::of(&view.record.figures);
    // The position of each host: beside the others of its column, ordered by figure.
    let mut points: BTreeMap<Decision, Vec<(f64, f64, String)>> = BTreeMap::new();
    for (at, ranked) in columns.values().enumerate() {
        let step = 2.0 * COLUMN_SPREAD / (ranked.len() as f64).max(2.0);
        for (nth, one) in ranked.iter().enumerate() {
            let Some(known) = one.known else { continue };
            let figure = RankedFigure::of(&known, by);
            let beside = (nth as f64 - (ranked.len() - 1) as f64 / 2.0) * step;
            let name = view.run.name(one.place);
            let text = format!("{}: {}, {}", plain(name), figure.text(), one.decided.name());
            let point = (at as f64 + beside, rounded(figure.value), text);
            points.entry(one.decided).or_default().push(point);
        }
    }
    let data: Vec<Trace> = points
        .into_iter()
        .map(|(decided, points)| trace(decided, points))
        .collect();
    let names = columns
        .iter()
        .map(|(name, hosts)| plain(&format!("{name} ({})", hosts.len())));
    let x = axis(what)
        .tick_values((0..columns.len()).map(|at| at as f64).collect())
        .tick_text(names.collect())
        .range(vec![-0.6, columns.len() as f64 - 0.4]);
    let y = axis(&crate::race::report::figure_name(view.record));
    Some(Chart {
        title: format!("By {what}"),
        caption: format!(
            "Each point is a host that was measured, with the figure that it was ranked by; the \
             number of hosts is behind the {what}"
        ),
        figure: Figure {
            layout: layout(x, y, true).hover(Hover::Closest),
            data,
        },
    })
}

fn trace(decided: Decision, points: Vec<(f64, f64, String)>) -> Trace {
    let colour = match decided {
        Decision::Keep => "var(--run-2)",
        Decision::Tie => "var(--run-0)",
        Decision::Open => "var(--run-3)",
        Decision::Cull => "var(--run-6)",
        Decision::HostFloor => "var(--run-1)",
        Decision::Failed | Decision::Unreachable | Decision::Busy => "var(--invalid)",
    };
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(x, y, _)| (*x, *y)).unzip();
    Trace::points(x, y)
        .name(decided.name())
        .mode(Mode::Markers)
        .marker(Marker::new().color(colour).size(9))
        .text_array(points.into_iter().map(|(_, _, text)| text).collect())
        .hover_template("%{text}")
        .nameless(true)
}

/// The worst disk of the best hosts in each round in which they were measured.
fn rounds(view: RaceView<'_>) -> Option<Chart> {
    let followed: Vec<&RankedHost> = view
        .concluded
        .ranked
        .iter()
        .filter(|one| matches!(one.decided, Decision::Keep | Decision::Tie | Decision::Open))
        .take(MAX_HOST_LINES)
        .collect();
    let data: Vec<Trace> = followed
        .iter()
        .enumerate()
        .map(|(slot, one)| course(view, one, slot))
        .collect();
    if data.is_empty() || view.record.rounds.len() < 2 {
        return None;
    }
    let y = axis(&crate::race::report::figure_name(view.record));
    Some(Chart {
        title: "Round by round".to_owned(),
        caption: format!(
            "The slowest disk of each of the first {} hosts that are kept or tie, in every round in which \
             they were measured; a change that all have in common is an effect of the time",
            followed.len()
        ),
        figure: Figure {
            layout: layout(axis("round"), y, true),
            data,
        },
    })
}

fn course(view: RaceView<'_>, one: &RankedHost, slot: usize) -> Trace {
    let by = RankedBy::of(&view.record.figures);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (number, round) in view.record.rounds.iter().enumerate() {
        let measurement = round
            .measured
            .iter()
            .find(|measurement| measurement.host == one.place);
        let figures = measurement
            .into_iter()
            .flat_map(|measurement| &measurement.targets);
        let worst = figures
            .filter_map(|target| target.figures.first().copied().flatten())
            .reduce(|one, other| by.worse(one, other));
        if let Some(worst) = worst {
            x.push(number + 1);
            y.push(rounded(worst));
        }
    }
    let name = view.run.name(one.place);
    let colour = format!("var(--run-{})", colour_index(slot));
    Trace::points(x, y)
        .name(plain(name))
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(colour.clone()).width(1.5))
        .marker(Marker::new().color(colour).size(5))
}
