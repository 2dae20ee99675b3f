//! Heat map of latencies over time: one map for each run and direction.

use page::plot::{ColorBar, Hover, Trace};
use std::ops::RangeInclusive;

use record::Direction;

use super::super::groups::{Group, Member};
use super::over_time::columns;
use super::time::{marked, time_axis};
use page::charts::{Chart, Figure, latency_axis, layout, rounded};

/// Approximate number of rows of a map.
const ROWS: f64 = 64.0;
/// Maximum number of rows per decade: a histogram's own buckets are a third as wide.
const FINEST: f64 = 48.0;

/// Rows of the maps that are shown side by side: latencies from `low`, divided into equal parts of the logarithm.
struct Rows {
    fastest: u64,
    slowest: u64,
    /// The decimal logarithm of the first row's lower edge, in nanoseconds.
    low: f64,
    per_decade: f64,
    count: usize,
}

impl Rows {
    fn new(fastest: u64, slowest: u64) -> Rows {
        let (low, high) = (
            (fastest.max(1) as f64).log10(),
            (slowest.max(1) as f64).log10(),
        );
        let per_decade = (ROWS / (high - low).max(0.1)).min(FINEST);
        Rows {
            fastest,
            slowest,
            low,
            per_decade,
            count: ((high - low) * per_decade) as usize + 1,
        }
    }

    fn of(&self, nanos: f64) -> usize {
        let row = (nanos.max(1.0).log10() - self.low) * self.per_decade;
        (row.max(0.0) as usize).min(self.count - 1)
    }

    /// The edges of all rows, in seconds.
    fn edges(&self) -> Vec<f64> {
        let edge = |row: usize| 10_f64.powf(self.low + row as f64 / self.per_decade) / 1e9;
        (0..=self.count).map(edge).map(rounded).collect()
    }
}

/// A heat map: requests a second by row and column, as decimal logarithms; `None` for no requests.
struct Map {
    times: Vec<f64>,
    rates: Vec<Vec<Option<f64>>>,
}

impl Map {
    fn new(member: &Member<'_>, direction: Direction, rows: &Rows) -> Map {
        let mut times = Vec::new();
        let mut by_column = Vec::new();
        for column in columns(member.phase) {
            let time = column.time();
            if times.is_empty() {
                times.push(rounded(time.start));
            }
            times.push(rounded(time.end));
            let mut counts = vec![0_u64; rows.count];
            for (low, high, count) in column.latency(direction).buckets() {
                counts[rows.of(low as f64 + (high - low) as f64 / 2.0)] += count;
            }
            let seconds = (time.end - time.start).max(f64::EPSILON);
            by_column.push((seconds, counts));
        }
        let rate = |row: usize| {
            by_column
                .iter()
                .map(|(seconds, counts)| {
                    let rate = counts[row] as f64 / seconds;
                    (counts[row] > 0).then(|| rounded(rate.log10()))
                })
                .collect()
        };
        Map {
            rates: (0..rows.count).map(rate).collect(),
            times,
        }
    }

    fn highest(&self) -> f64 {
        self.values().fold(f64::NEG_INFINITY, f64::max)
    }

    fn lowest(&self) -> f64 {
        self.values().fold(f64::INFINITY, f64::min)
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.rates.iter().flatten().flatten().copied()
    }
}

/// The maps of a group, with the same rows and colours, so that they can be compared.
pub(super) fn all(group: &Group<'_>, directions: &[Direction], runs: usize) -> Vec<Chart> {
    let mut charts = Vec::new();
    for &direction in directions {
        let Some(rows) = rows(group, direction) else {
            continue;
        };
        let maps: Vec<(&Member<'_>, Map)> = group
            .members
            .iter()
            .filter(|member| member.phase.flow(direction).is_some())
            .filter(|member| !member.phase.windows.is_empty())
            .map(|member| (member, Map::new(member, direction, &rows)))
            .collect();
        let low = maps
            .iter()
            .map(|(_, map)| map.lowest())
            .fold(f64::INFINITY, f64::min);
        let high = maps
            .iter()
            .map(|(_, map)| map.highest())
            .fold(low, f64::max);
        for (member, map) in maps {
            let mut title = "Latency heatmap".to_owned();
            if directions.len() > 1 {
                title = format!("{title}, {}", direction.name());
            }
            if runs > 1 {
                title = format!("{title}, {}", member.subject.short);
            }
            charts.push(Chart {
                title,
                caption: "Requests per second by latency and time".to_owned(),
                figure: figure(group, map, &rows, low..=high),
            });
        }
    }
    charts
}

/// Rows that cover every latency of the direction, in any window of any member.
fn rows(group: &Group<'_>, direction: Direction) -> Option<Rows> {
    let flows = || {
        let windows = group
            .members
            .iter()
            .flat_map(|member| &member.phase.windows);
        windows
            .filter_map(|window| window.flow(direction))
            .filter(|flow| !flow.latency.is_empty())
    };
    let fastest = flows().map(|flow| flow.latency.min()).min()?;
    let slowest = flows().map(|flow| flow.latency.max()).max()?;
    Some(Rows::new(fastest, slowest))
}

fn figure(group: &Group<'_>, map: Map, rows: &Rows, rates: RangeInclusive<f64>) -> Figure {
    let (low, high) = rates.into_inner();
    let decades: Vec<i32> = (low.ceil() as i32..=high.floor() as i32).collect();
    let bar = ColorBar::new()
        .title("requests/s")
        .tick_values(decades.iter().copied().map(f64::from).collect())
        .tick_text(decades.iter().map(|&decade| power_of_ten(decade)).collect());
    let trace = Trace::heat_map(map.times, rows.edges(), map.rates)
        .zmin(low)
        .zmax(if high > low { high } else { low + 1.0 })
        .color_bar(bar)
        .hover_template("%{y:.3s}s at %{x:.1f} s: %{text}/s")
        .nameless(true);
    let layout = layout(
        time_axis(group),
        latency_axis(rows.fastest, rows.slowest),
        false,
    )
    .hover(Hover::Closest);
    Figure {
        data: vec![trace],
        layout: marked(layout, group, Vec::new()),
    }
}

/// `1`, `10`, `100`, `1k` and so on.
fn power_of_ten(power: i32) -> String {
    match power {
        ..0 => format!("{:.*}", power.unsigned_abs() as usize, 10_f64.powi(power)),
        0..3 => format!("{:.0}", 10_f64.powi(power)),
        3..6 => format!("{:.0}k", 10_f64.powi(power - 3)),
        _ => format!("{:.0}M", 10_f64.powi(power - 6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_of_the_range_has_a_row() {
        for (fastest, slowest) in [(1, 1), (50_000, 51_000), (40_000, 3_600_000_000_000)] {
            let rows = Rows::new(fastest, slowest);
            assert_eq!(rows.of(fastest as f64), 0);
            assert_eq!(rows.of(slowest as f64), rows.count - 1);
            assert_eq!(rows.edges().len(), rows.count + 1);
            assert!(
                rows.edges().is_sorted_by(|a, b| a < b),
                "{fastest} {slowest}"
            );
            assert!(rows.count <= 66);
        }
    }

    #[test]
    fn decades_are_named_shortly() {
        let names: Vec<_> = [-1, 0, 2, 3, 5, 6].into_iter().map(power_of_ten).collect();
        assert_eq!(names, ["0.1", "1", "100", "1k", "100k", "1M"]);
    }
}
