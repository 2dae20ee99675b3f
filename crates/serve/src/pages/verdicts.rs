//! The page of verdicts.

use askama::Template;

use super::address::address;
use super::controls::Controls;
use super::frame::FrameView;
use super::text;
use super::text::Ratio;
use crate::documents::{Change, RoundedFigure, Verdict, Verdicts};

#[derive(Template)]
#[template(path = "verdicts.html")]
struct View<'a> {
    frame: FrameView<'a>,
    view: &'a Verdicts,
    controls: Controls<'a>,
    verdicts: Vec<VerdictView<'a>>,
    /// True if a source did not answer, so that verdicts may be missing.
    is_partial: bool,
    json: String,
    csv: String,
}

struct VerdictView<'a> {
    of: &'a Verdict,
    word: &'static str,
    sign: &'static str,
    rows: Vec<Row>,
    /// Address of the response times around the verdict.
    href: String,
}

/// A figure before and after.
struct Row {
    name: String,
    before: String,
    after: String,
    ratio: Ratio,
    p: String,
    shows: bool,
    note: String,
}

pub(super) fn page(frame: FrameView<'_>, view: &Verdicts) -> Result<String, askama::Error> {
    let verdicts = view.verdicts.iter();
    let verdict = |of| VerdictView {
        of,
        word: label(of).0,
        sign: label(of).1,
        rows: rows(of),
        href: around(view, of),
    };
    View {
        controls: Controls::of_verdicts(&frame, view),
        verdicts: verdicts.map(verdict).collect(),
        json: frame.query.at("/api/v1/verdicts"),
        csv: frame.query.at("/api/v1/verdicts.csv"),
        is_partial: view.sources.iter().any(|source| source.error.is_some()),
        frame,
        view,
    }
    .render()
}

/// The conclusion as a word, and a sign that is recognized by its shape.
fn label(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict.conclusion {
        "code" => ("Code", "C"),
        "load" => ("Load", "L"),
        "system" => ("System", "S"),
        "several" => ("Several", "+"),
        "nothing-changed" => ("Nothing changed", "="),
        _ => ("Not enough data", "?"),
    }
}

fn around(view: &Verdicts, verdict: &Verdict) -> String {
    let width = verdict.after.to.as_second() - verdict.before.from.as_second();
    let (from, to) = (
        verdict.before.from.as_second() - width / 4,
        verdict.after.to.as_second() + width / 4,
    );
    let range = [("from", from.to_string()), ("to", to.to_string())];
    let tag = view.selection.as_deref().map(|tag| ("tag", tag.to_owned()));
    address(
        "/response-times",
        tag.iter()
            .chain(&range)
            .map(|(key, value)| (*key, value.as_str())),
    )
}

fn rows(verdict: &Verdict) -> Vec<Row> {
    let changes = verdict.changes.iter().map(change);
    let load = verdict.load.iter().flat_map(|load| {
        let rate = Ratio {
            mean: load.rate_ratio,
            low: load.rate_ratio_low,
            high: load.rate_ratio_high,
        };
        [
            row("requests".to_owned(), rate, load.rate_p, String::new()),
            row(
                "response time at equal request rate".to_owned(),
                Ratio::alone(load.at_equal_rate_ratio),
                load.at_equal_rate_p,
                String::new(),
            ),
        ]
    });
    let disks = verdict.disks.iter().flat_map(|disk| {
        let latency = Ratio {
            mean: disk.latency_ratio,
            low: disk.latency_ratio_low,
            high: disk.latency_ratio_high,
        };
        let unknown = RoundedFigure(f64::NAN);
        let other = |what: &str, ratio| {
            row(
                format!("{}: {what}", disk.name),
                Ratio::alone(ratio),
                unknown,
                String::new(),
            )
        };
        let busy = match disk.busy_fraction.0.is_finite() {
            true => format!("busy {} ", text::percent(&disk.busy_fraction)),
            false => String::new(),
        };
        [
            row(
                format!("{}: latency", disk.name),
                latency,
                disk.latency_p,
                busy + &disk.findings.join(", "),
            ),
            other("latency at equal IOPS", disk.at_equal_iops_ratio),
            other("IOPS", disk.iops_ratio),
            other("I/Os per request", disk.per_request_ratio),
        ]
    });
    let series = verdict.series.iter().map(|series| {
        let ratio = Ratio {
            mean: series.ratio,
            low: series.ratio_low,
            high: series.ratio_high,
        };
        row(series.name.clone(), ratio, series.p, String::new())
    });
    let all = changes.chain(load).chain(disks).chain(series);
    all.filter(|row| row.ratio.mean.0.is_finite()).collect()
}

fn change(change: &Change) -> Row {
    let (name, word): (String, fn(&RoundedFigure) -> String) =
        match change.metric.strip_prefix("above_") {
            Some(bound) => (
                format!("share above {}", bound.replace("_ms", " ms")),
                text::percent,
            ),
            None => (change.metric.replace("_ms", ""), text::duration),
        };
    let ratio = Ratio {
        mean: change.ratio,
        low: change.ratio_low,
        high: change.ratio_high,
    };
    Row {
        before: word(&change.before),
        after: word(&change.after),
        shows: change.shows,
        ..row(
            name,
            ratio,
            change.p,
            if change.shows {
                "changed".to_owned()
            } else {
                String::new()
            },
        )
    }
}

fn row(name: String, ratio: Ratio, p: RoundedFigure, note: String) -> Row {
    Row {
        name,
        before: String::new(),
        after: String::new(),
        ratio,
        p: text::probability(p),
        shows: false,
        note,
    }
}
