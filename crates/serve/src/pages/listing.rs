//! Pages of runs, of two runs compared, and of markers.

use askama::Template;
use serde::Deserialize;

use super::address::address;
use super::frame::FrameView;
use super::text;
use super::text::Ratio;
use crate::documents::{Marker, Markers, RoundedFigure, Runs};

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsView<'a> {
    frame: FrameView<'a>,
    runs: &'a Runs,
    /// Key, label and value.
    filters: [(&'static str, &'static str, String); 3],
    json: String,
    csv: String,
}

pub(super) fn runs(frame: FrameView<'_>, runs: &Runs) -> Result<String, askama::Error> {
    let filters = [("host", "Host"), ("target", "Target"), ("suite", "Suite")];
    RunsView {
        runs,
        filters: filters.map(|(key, label)| (key, label, frame.query.get(key).to_owned())),
        json: frame.query.at("/api/v1/runs"),
        csv: frame.query.at("/api/v1/runs.csv"),
        frame,
    }
    .render()
}

/// The fields of the document of `compare --json` that the page shows.
#[derive(Deserialize)]
struct Comparison {
    a: String,
    b: String,
    remarks: Vec<String>,
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    name: String,
    direction: String,
    a: RunFigures,
    b: RunFigures,
    /// `None` if the phases cannot be compared.
    ratio: Option<Interval>,
    slower: bool,
    /// `None` if there is no interval.
    difference_shown: Option<bool>,
}

#[derive(Deserialize)]
struct RunFigures {
    iops: Option<f64>,
    p99_ns: Option<f64>,
}

#[derive(Deserialize)]
struct Interval {
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct CompareView<'a> {
    frame: FrameView<'a>,
    of: Comparison,
    rows: Vec<PhaseRow>,
    report: String,
    json: String,
}

struct PhaseRow {
    name: String,
    direction: String,
    iops: [String; 2],
    p99: [String; 2],
    ratio: Ratio,
    shows: bool,
    is_slower: bool,
}

pub(super) fn compare(frame: FrameView<'_>, document: &str) -> Result<String, askama::Error> {
    let of: Comparison = serde_json::from_str(document).map_err(askama::Error::custom)?;
    let figure = |value: Option<f64>| RoundedFigure(value.unwrap_or(f64::NAN));
    let row = |phase: &Phase| PhaseRow {
        name: phase.name.clone(),
        direction: phase.direction.clone(),
        iops: [&phase.a, &phase.b].map(|side| text::number(&figure(side.iops))),
        p99: [&phase.a, &phase.b]
            .map(|side| text::duration(&figure(side.p99_ns.map(|nanos| nanos / 1e6)))),
        ratio: phase
            .ratio
            .as_ref()
            .map_or(Ratio::alone(figure(None)), |ratio| Ratio {
                mean: figure(ratio.mean),
                low: figure(ratio.low),
                high: figure(ratio.high),
            }),
        shows: phase.difference_shown == Some(true),
        is_slower: phase.slower,
    };
    CompareView {
        rows: of.phases.iter().map(row).collect(),
        report: address(
            "/report",
            [("run", of.a.as_str()), ("run", of.b.as_str())].into_iter(),
        ),
        json: frame.query.at("/api/v1/compare"),
        frame,
        of,
    }
    .render()
}

#[derive(Template)]
#[template(path = "markers.html")]
struct MarkersView<'a> {
    frame: FrameView<'a>,
    /// The latest first, with the addresses of response times and verdicts around it.
    rows: Vec<(&'a Marker, String, String)>,
}

/// Time before and after a marker that its links show, in seconds.
const LINK_MARGIN_S: i64 = 3600;

pub(super) fn markers(frame: FrameView<'_>, markers: &Markers) -> Result<String, askama::Error> {
    let around = |path: &str, marker: &Marker| {
        let at = marker.time.as_second();
        let range = [
            ("from", (at - LINK_MARGIN_S).to_string()),
            ("to", (at + LINK_MARGIN_S).to_string()),
        ];
        address(
            path,
            range.iter().map(|(key, value)| (*key, value.as_str())),
        )
    };
    let rows = markers.markers.iter().rev();
    MarkersView {
        rows: rows
            .map(|marker| {
                (
                    marker,
                    around("/response-times", marker),
                    around("/verdicts", marker),
                )
            })
            .collect(),
        frame,
    }
    .render()
}
