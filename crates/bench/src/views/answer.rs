//! Answer of a suite as plain text: a plot of its figures, and a sentence.

use std::fmt::Write as _;

use crate::answer::{
    Cell, CurveAnswer, CurvePoint, SeekPoint, SuiteResult, Test, Zone, ZonesAnswer,
};
use crate::figures::Estimate;
use ui::format::{latency, number, percent};
use ui::table::{Column, layout, wrap};

/// Length of the longest bar.
const BAR: usize = 30;

/// The answer, in at most `columns` columns.
pub(crate) fn text(answer: &SuiteResult, columns: usize) -> String {
    let plot = match answer {
        SuiteResult::Sysbench { cells } => grid(cells, columns),
        SuiteResult::Bonnie { tests } => bonnie(tests, columns),
        SuiteResult::Seek { points } => seek_plot(points, columns),
        SuiteResult::Zones(zones) => zones_plot(zones, columns),
        SuiteResult::Curve(curve) => curve_plot(curve, columns),
        SuiteResult::Replay(answer) => replay::views::table(answer, columns),
    };
    let mut text = format!("{plot}\n");
    for sentence in sentences(answer) {
        let _ = writeln!(text, "{}", wrap(&sentence, columns, "  "));
    }
    text
}

/// True if the plot shows all that the table of the phases would.
pub(crate) fn replaces_table(answer: Option<&SuiteResult>) -> bool {
    matches!(answer, Some(SuiteResult::Zones(_)))
}

/// Summary in sentences.
pub(crate) fn sentences(answer: &SuiteResult) -> Vec<String> {
    match answer {
        SuiteResult::Sysbench { .. } | SuiteResult::Bonnie { .. } => Vec::new(),
        SuiteResult::Seek { points } => {
            points
                .iter()
                .find(|p| p.in_flight == 1)
                .map_or_else(Vec::new, |alone| {
                    vec![format!(
                        "Seeks: {} a second, {} random access time.",
                        number(alone.seeks_per_s.mean),
                        latency(alone.access_ns as u64)
                    )]
                })
        }
        SuiteResult::Zones(zones) => zones_sentences(zones),
        SuiteResult::Curve(curve) => vec![curve_sentence(curve)],
        SuiteResult::Replay(answer) => replay::views::sentences(answer),
    }
}

/// sysbench's own figures, a line for each cell.
fn grid(cells: &[Cell], columns: usize) -> String {
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            vec![
                cell.name.clone(),
                number(cell.requests_per_s),
                number(cell.bytes_per_s / 1e6),
                latency(cell.min_ns),
                latency(cell.avg_ns as u64),
                latency(cell.max_ns),
                latency(cell.p95_ns),
                format!("{}/{}", number(cell.events.0), number(cell.events.1)),
                format!("{:.3}/{:.3}", cell.execution_s.0, cell.execution_s.1),
            ]
        })
        .collect();
    let titles = [
        Column::text("cell"),
        Column::numbers("requests/s", 0),
        Column::numbers("MB/s", 0),
        Column::numbers("min", 3),
        Column::numbers("avg", 2),
        Column::numbers("max", 4),
        Column::numbers("95 %", 1),
        Column::numbers("events", 5),
        Column::numbers("seconds", 6),
    ];
    layout(&titles, &rows, columns)
}

/// Bonnie++'s own figures, a line for each test.
fn bonnie(tests: &[Test], columns: usize) -> String {
    let rows: Vec<Vec<String>> = tests
        .iter()
        .map(|test| {
            let kib = |bytes: f64| number(bytes / 1024.0);
            vec![
                test.name.clone(),
                test.bytes_per_s.map_or(String::new(), kib),
                test.per_s.map_or(String::new(), number),
                percent(test.cpu),
                latency(test.max_ns),
                number(test.seconds),
            ]
        })
        .collect();
    let titles = [
        Column::text("test"),
        Column::numbers("KiB/s", 0),
        Column::numbers("/s", 0),
        Column::numbers("CPU", 0),
        Column::numbers("max", 1),
        Column::numbers("s", 2),
    ];
    layout(&titles, &rows, columns)
}

/// A bar for `value`; `most` has the maximum length.
fn bar(value: f64, most: f64) -> String {
    let share = if most > 0.0 { value / most } else { 0.0 };
    "█".repeat((share * BAR as f64).round().clamp(0.0, BAR as f64) as usize)
}

fn width(estimate: &Estimate) -> String {
    estimate.width(number).unwrap_or("?".to_owned())
}

fn seek_plot(points: &[SeekPoint], columns: usize) -> String {
    let most = points
        .iter()
        .map(|p| p.seeks_per_s.mean)
        .fold(0.0, f64::max);
    let rows: Vec<Vec<String>> = points
        .iter()
        .map(|point| {
            vec![
                point.in_flight.to_string(),
                number(point.seeks_per_s.mean),
                width(&point.seeks_per_s),
                latency(point.access_ns as u64),
                bar(point.seeks_per_s.mean, most),
            ]
        })
        .collect();
    let titles = [
        Column::numbers("in flight", 0),
        Column::numbers("seeks/s", 0),
        Column::numbers("95 %", 2),
        Column::numbers("access", 0),
        Column::text("").ranked(1),
    ];
    layout(&titles, &rows, columns)
}

/// A rate of `bytes` a second, in MiB.
fn mib(bytes: f64) -> String {
    number(bytes / f64::from(1 << 20))
}

fn zones_plot(answer: &ZonesAnswer, columns: usize) -> String {
    let most = answer.zones.iter().map(Zone::warm).fold(0.0, f64::max);
    let rows: Vec<Vec<String>> = answer
        .zones
        .iter()
        .map(|zone| {
            vec![
                record::Bytes(zone.position_bytes).to_string(),
                mib(zone.first.mean),
                width(&zone.first),
                zone.again
                    .as_ref()
                    .map_or(String::new(), |again| mib(again.mean)),
                if zone.cold { "cold" } else { "" }.to_owned(),
                bar(zone.warm(), most),
            ]
        })
        .collect();
    let titles = [
        Column::numbers("position", 0),
        Column::numbers("MiB/s", 0),
        Column::numbers("95 %", 3),
        Column::numbers("again", 2),
        Column::text(""),
        Column::text("").ranked(1),
    ];
    layout(&titles, &rows, columns)
}

fn zones_sentences(answer: &ZonesAnswer) -> Vec<String> {
    let Some(ends) = answer.ends else {
        return vec!["Too few zones were read to compare the ends.".to_owned()];
    };
    let said = if ends.differ {
        "They differ beyond the noise."
    } else {
        "No difference beyond the noise."
    };
    vec![format!(
        "Ends: {} MiB/s at the start and {} MiB/s at the end, {:.3} times as much ({:.3} to {:.3}). \
         {said}",
        mib(ends.first),
        mib(ends.last),
        ends.ratio,
        ends.low,
        ends.high
    )]
}

fn curve_plot(answer: &CurveAnswer, columns: usize) -> String {
    let most = answer.points.iter().map(|p| p.p99_ns).max().unwrap_or(1);
    let target = answer.p99_target_ns.max(1);
    // Latencies differ by orders of magnitude: the bar is logarithmic, starting at a hundredth of the target.
    let log = |nanos: u64| (nanos.max(1) as f64 / target as f64 * 100.0).ln().max(0.0);
    let row = |point: &CurvePoint| {
        vec![
            number(point.rate_per_s),
            latency(point.p99_ns),
            match point.kept {
                Some(true) => "kept",
                Some(false) => "missed",
                None => "near",
            }
            .to_owned(),
            bar(log(point.p99_ns), log(most)),
        ]
    };
    let rows: Vec<Vec<String>> = answer.points.iter().map(row).collect();
    let titles = [
        Column::numbers("due/s", 0),
        Column::numbers("p99", 0),
        Column::text("target"),
        Column::text("").ranked(1),
    ];
    layout(&titles, &rows, columns)
}

fn curve_sentence(answer: &CurveAnswer) -> String {
    let target = latency(answer.target().0);
    match (answer.iops, answer.low, answer.high) {
        (Some(iops), Some(low), Some(high)) => format!(
            "At p99 ≤ {target} you can have {} IOPS: {} were seen to keep it, {} were not.",
            number(iops),
            number(low),
            number(high)
        ),
        (_, Some(low), None) => format!(
            "At p99 ≤ {target} you can have {} IOPS at least.",
            number(low)
        ),
        (_, None, Some(high)) => format!(
            "No rate was seen to keep p99 ≤ {target}: {} a second did not.",
            number(high)
        ),
        _ => format!("It is not known which rate keeps p99 ≤ {target}."),
    }
}
