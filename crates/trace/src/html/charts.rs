//! Charts of a trace.

use page::charts::{Chart, Figure, axis, latency_axis, layout};
use page::plot::{Axis, ColorBar, Hover, Layout, Line, Mode, Trace};

use crate::class::Class;
use crate::figures::{Figures, Group, HeatMap, Series, Slice};
use crate::io::DeviceIndex;

/// Maximum number of devices with a heat map.
const MAX_MAPS: usize = 4;
/// Maximum number of lines in a chart.
const MAX_LINES: usize = 7;

/// Draws all charts that the trace has figures for.
pub(super) fn all(
    figures: &Figures,
    has_flushes: bool,
    name: impl Fn(DeviceIndex) -> String,
) -> Vec<Chart> {
    let time = &figures.over_time;
    let rates: [Figured<'_>; 3] = [
        ("reads", &|slice, width| slice.reads as f64 / width),
        ("writes", &|slice, width| slice.writes as f64 / width),
        ("flushes", &|slice, width| slice.flushes as f64 / width),
    ];
    let rates = &rates[..if has_flushes { 3 } else { 2 }];
    let mut charts = vec![
        over_time("Rate", "I/Os a second", time, rates),
        over_time(
            "Throughput",
            "MiB/s",
            time,
            &[("reads and writes", &|slice, width| {
                slice.bytes as f64 / f64::from(1 << 20) / width
            })],
        ),
        over_time(
            "Working set",
            "GiB touched so far",
            time,
            &[("distinct", &|slice, _| {
                slice.distinct as f64 / f64::from(1 << 30)
            })],
        ),
    ];
    charts.extend(latency_over_time(time));
    charts.extend(depth_over_time(time));
    charts.extend(distributions(figures));
    let mut maps: Vec<_> = figures.heat.iter().collect();
    let ios = |device: &DeviceIndex| figures.devices.get(device).map_or(0, |group| group.ios);
    maps.sort_by_key(|(device, _)| (std::cmp::Reverse(ios(device)), **device));
    charts.extend(
        maps.into_iter()
            .take(MAX_MAPS)
            .map(|(device, map)| heat(&name(*device), map)),
    );
    charts
}

fn seconds_axis() -> Axis {
    axis("s since the start")
}

fn line(name: &str, colour: usize, x: Vec<f64>, y: Vec<Option<f64>>) -> Trace {
    let style = Line::new().color(format!("var(--run-{colour})")).width(1.5);
    Trace::points(x, y).name(name).mode(Mode::Lines).line(style)
}

fn chart(title: &str, caption: &str, data: Vec<Trace>, layout: Layout) -> Chart {
    Chart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        figure: Figure { data, layout },
    }
}

/// The middles of the slices.
fn slice_middles(series: &Series<Slice>) -> Vec<f64> {
    let width = series.width().as_secs_f64();
    (0..series.slices().len())
        .map(|at| (at as f64 + 0.5) * width)
        .collect()
}

type Figured<'a> = (&'a str, &'a dyn Fn(&Slice, f64) -> f64);

fn over_time(title: &str, unit: &str, series: &Series<Slice>, lines: &[Figured<'_>]) -> Chart {
    let width = series.width().as_secs_f64();
    let drawn = lines.iter().enumerate().map(|(colour, (name, figure))| {
        let values = series
            .slices()
            .iter()
            .map(|slice| Some(figure(slice, width)));
        line(name, colour, slice_middles(series), values.collect())
    });
    let axes = layout(seconds_axis(), axis(unit).from_zero(true), lines.len() > 1);
    chart(title, "", drawn.collect(), axes)
}

fn latency_over_time(series: &Series<Slice>) -> Option<Chart> {
    let all = || {
        series
            .slices()
            .iter()
            .filter(|slice| !slice.latency.is_empty())
    };
    let low = all().map(|slice| slice.latency.quantile(0.5)).min()?;
    let high = all().map(|slice| slice.latency.max()).max()?;
    let lines = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
    let drawn = lines.iter().enumerate().map(|(colour, (name, quantile))| {
        let value = |slice: &Slice| {
            let latency = &slice.latency;
            (!latency.is_empty()).then(|| latency.quantile(*quantile).max(1) as f64 / 1e9)
        };
        line(
            name,
            colour,
            slice_middles(series),
            series.slices().iter().map(value).collect(),
        )
    });
    let axes = layout(seconds_axis(), latency_axis(low, high), true);
    Some(chart(
        "Latency",
        "From issue to completion",
        drawn.collect(),
        axes,
    ))
}

fn depth_over_time(series: &Series<Slice>) -> Option<Chart> {
    series
        .slices()
        .iter()
        .any(|slice| slice.deepest > 0)
        .then(|| {
            over_time(
                "Queue depth",
                "most of each slice",
                series,
                &[("depth", &|slice, _| slice.deepest as f64)],
            )
        })
}

/// Cumulative distributions of latency for the classes with most I/Os.
fn distributions(figures: &Figures) -> Option<Chart> {
    let mut classes: Vec<(&Class, &Group)> = figures
        .classes
        .iter()
        .filter(|(_, group)| !group.latency.is_empty())
        .collect();
    classes.sort_by_key(|(class, group)| (std::cmp::Reverse(group.ios), **class));
    classes.truncate(MAX_LINES);
    let low = classes.iter().map(|(_, group)| group.latency.min()).min()?;
    let high = classes.iter().map(|(_, group)| group.latency.max()).max()?;
    let drawn = classes.iter().enumerate().map(|(colour, (class, group))| {
        let (mut x, mut y, mut sum) = (Vec::new(), Vec::new(), 0);
        for (_, end, count) in group.latency.buckets() {
            sum += count;
            x.push(end.clamp(1, group.latency.max().max(1)) as f64 / 1e9);
            y.push(Some(100.0 * sum as f64 / group.latency.count() as f64));
        }
        line(&class.name(), colour, x, y)
    });
    let shares = axis("% of the I/Os").range(vec![0.0, 100.0]);
    let axes = layout(latency_axis(low, high), shares, true);
    Some(chart(
        "Distribution of latency",
        "By class",
        drawn.collect(),
        axes,
    ))
}

fn heat(device: &str, map: &HeatMap) -> Chart {
    let columns = map.columns();
    let width = columns.width().as_secs_f64();
    let rows = columns.slices().iter().flat_map(|column| {
        column
            .0
            .iter()
            .rposition(|count| *count > 0)
            .map(|row| row + 1)
    });
    let rows = rows.max().unwrap_or(1);
    let cell = |row: usize| {
        let counts = columns.slices().iter().map(move |column| column.0[row]);
        counts
            .map(|count| (count > 0).then(|| f64::from(count).log10()))
            .collect::<Vec<_>>()
    };
    let values: Vec<Vec<Option<f64>>> = (0..rows).map(cell).collect();
    let most = values
        .iter()
        .flatten()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    let ticks: Vec<f64> = (0..=most as i32).map(f64::from).collect();
    let bar = ColorBar::new()
        .title("I/Os")
        .tick_text(
            ticks
                .iter()
                .map(|tick| format!("{:.0}", 10_f64.powf(*tick)))
                .collect(),
        )
        .tick_values(ticks);
    let gib = |row: usize| row as f64 * map.row as f64 / f64::from(1 << 30);
    let x: Vec<f64> = (0..=columns.slices().len())
        .map(|at| at as f64 * width)
        .collect();
    let y: Vec<f64> = (0..=rows).map(gib).collect();
    let trace = Trace::heat_map(x, y, values)
        .zmin(0.0)
        .zmax(if most > 0.0 { most } else { 1.0 })
        .color_bar(bar)
        .nameless(true);
    let axes = layout(seconds_axis(), axis("GiB"), false).hover(Hover::Closest);
    chart(
        &format!("Places on {device}"),
        "Reads and writes by offset and time",
        vec![trace],
        axes,
    )
}
