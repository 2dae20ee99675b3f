//! The page of response times: a document for the charts, and tables of it.

use askama::Template;
use jiff::Timestamp;

use super::controls::Controls;
use super::frame::FrameView;
use super::text;
use crate::documents::{Document as _, Line, ResponseTimes, RoundedFigure};

#[derive(Template)]
#[template(path = "response_times.html")]
struct View<'a> {
    frame: FrameView<'a>,
    view: &'a ResponseTimes,
    controls: Controls<'a>,
    has_charts: bool,
    bounds: Vec<String>,
    rows: Vec<Row>,
    summaries: Vec<Summary>,
    verdicts: String,
    json: String,
    csv: String,
    document: String,
}

/// Maximum number of rows of the table of response times.
const ROWS: usize = 24;

pub(super) fn page(frame: FrameView<'_>, view: &ResponseTimes) -> Result<String, askama::Error> {
    let (rows, summaries) = (rows(view), summaries(view));
    let query = &frame.query;
    View {
        controls: Controls::of_view(&frame, view),
        has_charts: !(rows.is_empty() && summaries.is_empty()),
        bounds: view
            .bounds_ms
            .iter()
            .map(|bound| text::duration(&RoundedFigure(*bound)))
            .collect(),
        rows,
        summaries,
        verdicts: query.between("/verdicts", view.from.as_second(), view.to.as_second()),
        json: query.at("/api/v1/response-times"),
        csv: query.at("/api/v1/response-times.csv"),
        document: for_script(&view.json()),
        frame,
        view,
    }
    .render()
}

/// JSON with `<` escaped, so that it cannot close the script element around it.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Response times of some slots.
struct Row {
    from: Timestamp,
    requests: String,
    percentiles: [String; 3],
    above: Vec<String>,
}

fn rows(view: &ResponseTimes) -> Vec<Row> {
    let is_known = |figure: &RoundedFigure| figure.0.is_finite();
    if !view.p50_ms.mean.iter().any(is_known) && !view.requests_per_s.mean.iter().any(is_known) {
        return Vec::new();
    }
    let step = view.time_s.len().div_ceil(ROWS).max(1);
    let row = |(number, times): (usize, &[i64])| {
        let slots = number * step..number * step + times.len();
        let highest = |line: &Line| {
            maximum(
                line.max
                    .as_ref()
                    .unwrap_or(&line.mean)
                    .get(slots.clone())
                    .unwrap_or_default(),
            )
        };
        let classes = view.shares.get(1..).unwrap_or_default();
        let above = (0..classes.len()).map(|first| {
            let sums = slots.clone().map(|slot| {
                classes[first..]
                    .iter()
                    .filter_map(|class| class.get(slot))
                    .map(|share| share.0)
                    .sum()
            });
            text::percent(&most_of(sums))
        });
        Some(Row {
            from: Timestamp::from_second(*times.first()?).ok()?,
            requests: text::number(&mean(
                view.requests_per_s
                    .mean
                    .get(slots.clone())
                    .unwrap_or_default(),
            )),
            percentiles: [&view.p50_ms, &view.p95_ms, &view.p99_ms]
                .map(|line| text::duration(&highest(line))),
            above: above.collect(),
        })
    };
    view.time_s
        .chunks(step)
        .enumerate()
        .filter_map(row)
        .collect()
}

/// A figure of a disk, a host or a series in the whole view.
struct Summary {
    name: String,
    figure: &'static str,
    cells: [String; 3],
}

fn summaries(view: &ResponseTimes) -> Vec<Summary> {
    let summary = |name: &str, figure, line: &Line, word: fn(&RoundedFigure) -> String| {
        let has_figures = line.mean.iter().any(|value| value.0.is_finite());
        let least = line
            .min
            .as_ref()
            .unwrap_or(&line.mean)
            .iter()
            .map(|value| -value.0);
        let cells = [
            mean(&line.mean),
            RoundedFigure(-most_of(least).0),
            maximum(line.max.as_ref().unwrap_or(&line.mean)),
        ];
        has_figures.then(|| Summary {
            name: name.to_owned(),
            figure,
            cells: cells.map(|cell| word(&cell)),
        })
    };
    let disks = view.disks.iter().flat_map(|disk| {
        let name = format!("{}/{}", disk.disk.hostname, disk.disk.name);
        [
            summary(&name, "await", &disk.await_ms, text::duration),
            summary(&name, "utilization", &disk.busy_fraction, text::percent),
            summary(&name, "queue", &disk.queue, text::number),
            summary(&name, "IOPS", &disk.iops, text::number),
        ]
    });
    let hosts = view.hosts.iter().flat_map(|host| {
        [
            summary(
                &host.hostname,
                "CPU busy",
                &host.cpu_busy_fraction,
                text::percent,
            ),
            summary(
                &host.hostname,
                "I/O pressure",
                &host.io_pressure_fraction,
                text::percent,
            ),
        ]
    });
    let series = view
        .series
        .iter()
        .map(|series| summary(&series.name, "value", &series.values, text::number));
    disks.chain(hosts).chain(series).flatten().collect()
}

fn maximum(values: &[RoundedFigure]) -> RoundedFigure {
    most_of(values.iter().map(|value| value.0))
}

fn most_of(values: impl Iterator<Item = f64>) -> RoundedFigure {
    RoundedFigure(values.fold(f64::NAN, f64::max))
}

fn mean(values: &[RoundedFigure]) -> RoundedFigure {
    let known = values
        .iter()
        .map(|value| value.0)
        .filter(|value| value.is_finite());
    let (count, sum) = known.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    RoundedFigure(sum / count)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_name_ends_the_element_of_the_document() {
        let written = super::for_script(r#"{"tag":"</script><script>"}"#);
        assert!(!written.contains('<'));
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["tag"], "</script><script>");
    }
}
