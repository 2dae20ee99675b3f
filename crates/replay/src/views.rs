//! A replay's answer as text, and as charts of a page.

use page::charts::{self, Chart, Figure as Drawing, rounded};
use page::plot::{Line, Mode, Scale, Trace};
use record::{OffsetMap, Pace};
use ui::format::{latency, number, percent};
use ui::table::{Column, layout};

use crate::answer::{Counts, Latencies, PercentileEstimate, ReplayAnswer};

/// Titles of the table of classes.
pub const TITLES: [&str; 8] = ["class", "I/Os", "", "p50", "p99", "p99.9", "max", "failed"];

/// Name of the rows that hold intervals.
const INTERVAL: &str = "95 %";

/// The table of classes, in at most `columns` columns.
pub fn table(answer: &ReplayAnswer, columns: usize) -> String {
    let titles = [
        Column::text(TITLES[0]),
        Column::numbers(TITLES[1], 3),
        Column::text(TITLES[2]),
        Column::numbers(TITLES[3], 1),
        Column::numbers(TITLES[4], 0),
        Column::numbers(TITLES[5], 4),
        Column::numbers(TITLES[6], 5),
        Column::numbers(TITLES[7], 6),
    ];
    layout(&titles, &rows(answer), columns)
}

/// Rows of the table of classes: recorded above replayed, each followed by the intervals of its percentiles.
pub fn rows(answer: &ReplayAnswer) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for class in answer.totals.iter().chain(&answer.classes) {
        let (name, ios) = (class.name.clone(), whole(class.ios));
        let failed = |count: u64| match count {
            0 => String::new(),
            count => whole(count),
        };
        let mut first = [name, ios];
        if let Some(recorded) = &class.recorded {
            let failed = failed(class.failed_recorded);
            rows.push(row(
                std::mem::take(&mut first),
                cells("recorded", recorded, failed),
            ));
            rows.extend(intervals(recorded));
        }
        let failed = failed(class.failed);
        rows.push(row(first, cells("replayed", &class.replayed, failed)));
        rows.extend(intervals(&class.replayed));
    }
    if answer.pace != Pace::Asap {
        let late = whole(answer.lateness_count());
        let name = ["lateness".to_owned(), late];
        rows.push(row(name, cells("", &answer.lateness, String::new())));
    }
    rows
}

fn row(first: [String; 2], rest: [String; 6]) -> Vec<String> {
    first.into_iter().chain(rest).collect()
}

fn cells(word: &str, latencies: &Latencies, failed: String) -> [String; 6] {
    [
        word.to_owned(),
        latency(latencies.p50.ns),
        latency(latencies.p99.ns),
        latency(latencies.p999.ns),
        latency(latencies.max_ns),
        failed,
    ]
}

/// The row of the percentiles' intervals; `None` if no interval is known.
fn intervals(latencies: &Latencies) -> Option<Vec<String>> {
    let all = [&latencies.p50, &latencies.p99, &latencies.p999].map(interval);
    let [p50, p99, p999] = all;
    let is_known = !(p50.is_empty() && p99.is_empty() && p999.is_empty());
    let word = INTERVAL.to_owned();
    let cells = [word, p50, p99, p999, String::new(), String::new()];
    is_known.then(|| row(Default::default(), cells))
}

/// The bounds of the interval relative to the percentile, as `-8/+12 %`, short enough for three columns.
fn interval(figure: &PercentileEstimate) -> String {
    let share = |distance: u64| (distance as f64 * 100.0 / figure.ns.max(1) as f64).round();
    match figure.low_ns.zip(figure.high_ns) {
        Some((low, high)) => format!(
            "-{}/+{} %",
            share(figure.ns.saturating_sub(low)),
            share(high.saturating_sub(figure.ns))
        ),
        None => String::new(),
    }
}

/// Summary in sentences.
pub fn sentences(answer: &ReplayAnswer) -> Vec<String> {
    let pace = match answer.pace {
        Pace::Recorded => "each I/O at its recorded time",
        Pace::Dependencies => "each I/O after those that it had waited for",
        Pace::Asap => "in the recorded order, as fast as it goes",
    };
    let map = match answer.map {
        OffsetMap::Exact => "",
        OffsetMap::Wrap => ", offsets modulo the target's size",
        OffsetMap::Compact => ", the touched parts side by side",
    };
    let mut sentences = vec![format!(
        "Trace: {} ({}), {} I/Os in {} s; {pace}{}, at most {} in flight{map}.",
        answer.trace,
        answer.format,
        whole(answer.trace_ios),
        number(answer.trace_seconds),
        match (answer.pace, answer.speed) {
            // `asap` does not use times.
            (Pace::Asap, _) | (_, 1.0) => String::new(),
            (_, speed) => format!(", {speed} times as fast"),
        },
        answer.depth,
    )];
    if answer.devices.len() > 1 {
        let pairs = answer.devices.iter();
        let pairs: Vec<String> = pairs
            .map(|device| format!("{} on {}", device.name, device.target))
            .collect();
        sentences.push(format!("Devices: {}.", pairs.join(", ")));
    }
    if !answer.has_completions {
        sentences.push(
            "The trace holds no completion times: there is no recorded latency to compare with."
                .to_owned(),
        );
    }
    let mut classes = answer.totals.iter();
    if classes.any(|class| intervals(&class.replayed).is_some()) {
        sentences.push(
            "95 %: bounds of the 95 % interval of the percentile above, by how much they lie below and above it."
                .to_owned(),
        );
    }
    sentences.extend(differences(&answer.counts));
    if answer.pace != Pace::Asap {
        sentences.push(format!(
            "Issued more than 1 ms after they were due: {} ({}). Latencies count from when an I/O was due.",
            whole(answer.late),
            percent(answer.late as f64 / (answer.counts.replayed.issued as f64).max(1.0)),
        ));
    }
    sentences
}

/// Counts of differences from the trace, as a sentence.
fn differences(counts: &Counts) -> Option<String> {
    let all = [
        (counts.replayed.clipped, "beyond the target's end"),
        (counts.replayed.shortened, "cut short"),
        (counts.replayed.remapped, "remapped"),
        (counts.replayed.widened, "widened to the target's blocks"),
        (counts.replayed.left_out, "writes and flushes left out"),
        (counts.replayed.discards_left_out, "discards left out"),
        (counts.failed, "failed"),
    ];
    let some: Vec<String> = all
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", whole(*count)))
        .collect();
    (!some.is_empty()).then(|| {
        format!(
            "Of {} I/Os, {} were issued: {}.",
            whole(counts.replayed.ios),
            whole(counts.replayed.issued),
            some.join(", ")
        )
    })
}

/// A count, formatted without decimals.
fn whole(count: u64) -> String {
    number(count as f64).trim_end_matches(".0").to_owned()
}

impl ReplayAnswer {
    /// Number of I/Os whose delay was counted.
    fn lateness_count(&self) -> u64 {
        self.counts.replayed.issued
    }
}

/// Charts of the answer, in the colour of the run.
pub fn charts(answer: &ReplayAnswer, colour: usize) -> Vec<Chart> {
    vec![in_flight(answer, colour), by_class(answer, colour)]
}

fn line(name: &str, colour: usize, points: impl Iterator<Item = (f64, f64)>) -> Trace {
    let (x, y): (Vec<f64>, Vec<f64>) = points.map(|(x, y)| (rounded(x), rounded(y))).unzip();
    Trace::points(x, y)
        .name(name)
        .mode(Mode::Lines)
        .line(Line::new().color(format!("var(--run-{colour})")).width(1.5))
}

fn in_flight(answer: &ReplayAnswer, colour: usize) -> Chart {
    let curve = &answer.in_flight;
    let points = |values: &[f64]| {
        let at = |(slice, value): (usize, &f64)| (slice as f64 * curve.slice_seconds, *value);
        values
            .iter()
            .enumerate()
            .map(at)
            .collect::<Vec<_>>()
            .into_iter()
    };
    let mut data = vec![line("replayed", colour, points(&curve.replayed))];
    if !curve.recorded.is_empty() {
        data.push(line("recorded", colour + 1, points(&curve.recorded)));
    }
    Chart {
        title: "In flight".to_owned(),
        caption: "I/Os in flight or due, recorded and replayed".to_owned(),
        figure: Drawing {
            data,
            layout: charts::layout(
                charts::axis("s"),
                charts::axis("I/Os in flight").from_zero(true),
                true,
            ),
        },
    }
}

fn by_class(answer: &ReplayAnswer, colour: usize) -> Chart {
    let names: Vec<String> = answer
        .classes
        .iter()
        .map(|class| class.name.clone())
        .collect();
    let points = |word: &str, slot: usize, of: &dyn Fn(usize) -> Option<u64>| {
        let found = (0..names.len()).filter_map(|index| Some((names[index].clone(), of(index)?)));
        let (x, y): (Vec<String>, Vec<f64>) = found
            .map(|(name, ns)| (name, rounded(ns as f64 / 1e6)))
            .unzip();
        Trace::points(x, y)
            .name(word)
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(format!("var(--run-{slot})")).width(1.0))
    };
    let classes = &answer.classes;
    let replayed = |index: usize| Some(classes[index].replayed.p99.ns);
    let recorded = |index: usize| Some(classes[index].recorded.as_ref()?.p99.ns);
    let mut data = vec![points("replayed", colour, &replayed)];
    if classes.iter().any(|class| class.recorded.is_some()) {
        data.push(points("recorded", colour + 1, &recorded));
    }
    Chart {
        title: "Latency by class".to_owned(),
        caption: "The 99th percentile, recorded and replayed".to_owned(),
        figure: Drawing {
            data,
            layout: charts::layout(
                charts::axis("").scale(Scale::Category),
                charts::axis("p99, ms").scale(Scale::Log),
                true,
            ),
        },
    }
}
