//! Latencies of single requests: percentiles and a heat map of each device, and a table of processes.

use std::collections::BTreeMap;

use page::charts::{Chart, Figure, axis, layout, rounded};
use page::plot::{ColorBar, Hover, Scale, Trace};
use record::Nanos;
use record::sample::{Latencies, ProcessSample};
use ui::format;

use super::charts::{ChartFrame, ChartSeries, TIME};
use super::course::{Band, DeviceSeries, FigureSeries};

/// Maximum number of processes in the table.
const MAX_PROCESSES: usize = 20;

/// A percentile: its name, and the function that returns it.
type Percentile = (&'static str, fn(&Latencies) -> Nanos);

const PERCENTILES: [Percentile; 4] = [
    ("p50", |times| times.p50),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p999),
    ("max", |times| times.max),
];

/// The charts of a device, where its requests were traced.
pub(super) fn charts(frame: &ChartFrame<'_>, device: &DeviceSeries) -> [Option<Chart>; 2] {
    let lines = PERCENTILES.iter().enumerate();
    let lines = lines.map(|(colour, (name, of))| ChartSeries {
        name: (*name).to_owned(),
        colour,
        bands: Box::new(move |step| {
            let times = device.latency.get(step)?.as_ref()?;
            Some(Band::exact(of(times).as_secs_f64()))
        }),
    });
    let title = "Time of requests, from issue to completion";
    let lines = frame.lines(title, TIME, lines.collect(), &[device.device.id]);
    [lines, map(frame, device)]
}

/// Heat map of requests by time and latency, with a row for each doubling of latency.
fn map(frame: &ChartFrame<'_>, device: &DeviceSeries) -> Option<Chart> {
    let (columns, times) = frame.map_columns()?;
    let counts: Vec<BTreeMap<u32, u64>> = columns
        .iter()
        .map(|steps| {
            let mut counts = BTreeMap::new();
            let steps = device.latency.get(steps.clone()).unwrap_or_default();
            for times in steps.iter().flatten() {
                for (low, _, count) in times.histogram().buckets() {
                    *counts.entry(low.max(1).ilog2()).or_default() += count;
                }
            }
            counts
        })
        .collect();
    let rows = || counts.iter().flat_map(BTreeMap::keys).copied();
    let (least, most) = (rows().min()?, rows().max()?);
    let names: Vec<String> = (least..=most)
        .map(|row| format!("from {}", format::latency(1 << row)))
        .collect();
    let values: Vec<Vec<Option<f64>>> = (least..=most)
        .map(|row| {
            let cell = |column: &BTreeMap<u32, u64>| {
                let count = column.get(&row)?;
                Some(rounded((*count as f64).log10()))
            };
            counts.iter().map(cell).collect()
        })
        .collect();
    let high = values
        .iter()
        .flatten()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    let ticks: Vec<f64> = (0..=high.floor() as i32).map(f64::from).collect();
    let word = |tick: &f64| format::number(10_f64.powf(*tick));
    let bar = ColorBar::new()
        .title("requests")
        .tick_text(ticks.iter().map(word).collect())
        .tick_values(ticks);
    let trace = Trace::heat_map(times, names, values)
        .zmin(0.0)
        .zmax(high.max(1.0))
        .color_bar(bar)
        .hover_template("%{y} at %{x}: %{text}")
        .nameless(true);
    let layout = layout(frame.time_axis(), axis("").scale(Scale::Category), false);
    Some(Chart {
        title: "Requests by their time".to_owned(),
        caption: String::new(),
        figure: Figure {
            layout: layout.hover(Hover::Closest),
            data: vec![trace],
        },
    })
}

/// The processes with the most I/O, with their cells: group, bytes read, bytes written, requests.
pub(super) fn processes(course: &FigureSeries) -> Vec<(String, [String; 4])> {
    let mut all: Vec<&ProcessSample> = course.processes.values().collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.weight()), one.pid));
    let row = |one: &ProcessSample| {
        let group = one.group.as_deref().unwrap_or("–").to_owned();
        let cells = [
            group,
            one.read.to_string(),
            one.written.to_string(),
            one.requests.to_string(),
        ];
        (format!("{} ({})", one.name, one.pid), cells)
    };
    all.into_iter().take(MAX_PROCESSES).map(row).collect()
}
