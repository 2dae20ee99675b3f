//! Latencies of single requests, and the processes that issued them.

use std::collections::BTreeMap;

use ratatui_core::text::Line;
use record::Nanos;
use record::sample::{DeviceId, FlowKind, HostSample, Latencies, LatencySample, TracingSample};
use ui::screen::{Capabilities, Pieces as _, TextStyle};

use super::table::SPAN;
use crate::screen::figures::{MIB, cut, rate, right_aligned, share, unknown, wait};
use crate::screen::model::Model;

/// Width of the labels before a row of the heat map.
const LABEL: usize = 8;
/// Maximum width of a heat map, in columns.
const MAX_COLUMNS: usize = 120;

/// Latency percentiles of a device's requests by kind, and their heat map over the last two minutes; empty where
/// requests are not traced.
pub(super) fn detail(
    model: &Model,
    (id, place): (DeviceId, usize),
    columns: usize,
    capabilities: Capabilities,
) -> Vec<Line<'static>> {
    let (Some(frame), Some(number)) = (model.frame(), model.number()) else {
        return Vec::new();
    };
    let of = |frame: &crate::screen::frame::Frame| frame.row(id, place)?.latency.clone();
    let mut lines = Vec::new();
    if let Some(latency) = of(frame) {
        lines.push(Line::default());
        lines.extend(percentiles(&latency));
    }
    let width = columns.saturating_sub(LABEL).clamp(1, MAX_COLUMNS);
    let mut map = HeatMap::new(width);
    for frame_before in model.history.back(number, SPAN) {
        let before = frame.at.elapsed - frame_before.at.elapsed;
        let column = model.history.part(number, SPAN, width, before);
        let all = of(frame_before).and_then(|latency| latency.all.clone());
        if let (Some(column), Some(all)) = (column, all) {
            map.add(column, &all);
        }
    }
    lines.extend(map.lines(capabilities));
    lines
}

fn percentiles(latency: &LatencySample) -> Vec<Line<'static>> {
    let cells = |first: &str, rest: [&str; 5]| {
        let rest = rest.map(|cell| right_aligned(cell, 9)).concat();
        format!("{first:<8}{rest}")
    };
    let heads = cells("", ["requests", "p50", "p99", "p99.9", "max"]);
    let mut lines = vec![Line::of(heads, TextStyle::Strong)];
    let kinds = FlowKind::ALL.map(|kind| (kind.name(), latency.kind(kind)));
    for (word, times) in kinds.into_iter().chain([("all", latency.all.as_ref())]) {
        let time = |of: fn(&Latencies) -> Nanos| wait(times.map(|times| of(times).as_secs_f64()));
        let count = times.map_or(0, |times| times.count);
        let text = cells(
            word,
            [
                &rate(Some(count as f64)),
                &time(|times| times.p50),
                &time(|times| times.p99),
                &time(|times| times.p999),
                &time(|times| times.max),
            ],
        );
        lines.push(Line::of(text, TextStyle::Plain));
    }
    lines
}

/// Heat map of requests by time and latency: a column for each part of the span, a row for each doubling of latency.
struct HeatMap {
    columns: Vec<BTreeMap<u32, u64>>,
}

impl HeatMap {
    fn new(columns: usize) -> HeatMap {
        HeatMap {
            columns: vec![BTreeMap::new(); columns],
        }
    }

    fn add(&mut self, column: usize, times: &Latencies) {
        if let Some(column) = self.columns.get_mut(column) {
            for (low, _, count) in times.histogram().buckets() {
                *column.entry(low.max(1).ilog2()).or_default() += count;
            }
        }
    }

    /// The rows, the slowest first.
    fn lines(&self, capabilities: Capabilities) -> Vec<Line<'static>> {
        let rows = || self.columns.iter().flat_map(BTreeMap::keys).copied();
        let (Some(least), Some(most)) = (rows().min(), rows().max()) else {
            return Vec::new();
        };
        let counts = self.columns.iter().flat_map(BTreeMap::values);
        let highest = counts.copied().max().unwrap_or(1);
        let signs: [char; 5] = match capabilities.unicode {
            true => [' ', '░', '▒', '▓', '█'],
            false => [' ', '.', ':', '*', '#'],
        };
        let title = "requests by their time, 2 min; darker: more";
        let mut lines = vec![Line::default(), Line::of(title, TextStyle::Strong)];
        for row in (least..=most).rev() {
            let sign = |column: &BTreeMap<u32, u64>| {
                let count = column.get(&row).copied().unwrap_or(0);
                signs[level(count, highest)]
            };
            let cells: String = self.columns.iter().map(sign).collect();
            let from = wait(Some((1_u64 << row) as f64 / 1e9));
            let text = format!("{from:>7} {cells}");
            lines.push(Line::of(text, TextStyle::Plain));
        }
        lines
    }
}

/// Darkness of a count, from 0 to 4, by its logarithm, so that single slow requests are visible beside thousands of
/// fast ones.
fn level(count: u64, highest: u64) -> usize {
    if count == 0 {
        return 0;
    }
    let share = (count as f64).ln_1p() / (highest as f64).ln_1p();
    (share * 4.0).ceil().clamp(1.0, 4.0) as usize
}

/// The page of processes.
pub(super) fn processes(model: &Model, columns: usize) -> Vec<Line<'static>> {
    let Some(frame) = model.frame() else {
        return vec![Line::of("waiting for the first interval", TextStyle::Plain)];
    };
    let Some(tracing) = frame.host.tracing else {
        let text = "processes are shown with watch --latency";
        return vec![Line::of(text, TextStyle::Plain)];
    };
    let heads = format!(
        "{:>8} {:<16}{:>9}{:>9}{:>9}  group",
        "pid", "process", "rMiB/s", "wMiB/s", "req/s"
    );
    let mut lines = vec![Line::of(cut(&heads, columns), TextStyle::Strong)];
    let over = tracing.over.as_secs_f64();
    let per_second = |count: u64| (over > 0.0).then(|| count as f64 / over);
    for one in &frame.host.processes {
        let mib = |bytes: u64| rate(per_second(bytes).map(|bytes| bytes / MIB));
        let text = format!(
            "{:>8} {}{:>9}{:>9}{:>9}  {}",
            one.pid,
            cut(&one.name, 16),
            mib(one.read.0),
            mib(one.written.0),
            rate(per_second(one.requests)),
            one.group.clone().unwrap_or_else(unknown),
        );
        let text = cut(&text, columns);
        lines.push(Line::of(text.trim_end().to_owned(), TextStyle::Plain));
    }
    if frame.host.processes.is_empty() {
        let text = "no process did any I/O, or they were not counted in this interval";
        lines.push(Line::of(text, TextStyle::Plain));
    }
    lines
}

/// Cost of tracing and number of lost events, for the head of the screen.
pub(super) fn cost(host: &HostSample, length: Nanos) -> Option<(String, TextStyle)> {
    let TracingSample {
        cpu,
        requests,
        lost,
        ..
    } = host.tracing?;
    let seconds = length.as_secs_f64();
    let of_core = (seconds > 0.0).then(|| cpu.as_secs_f64() / seconds);
    let text = format!("tracing {requests} requests {} of a core", share(of_core));
    Some(match lost {
        0 => (text, TextStyle::Plain),
        lost => (format!("{text}, {lost} events lost!"), TextStyle::Warning),
    })
}

#[cfg(test)]
mod tests {
    use record::Histogram;

    use super::*;

    #[test]
    fn one_slow_request_is_seen_beside_many_fast_ones() {
        let mut times = Histogram::new();
        times.record_many(100_000, 10_000);
        times.record(50_000_000);
        let mut map = HeatMap::new(3);
        map.add(1, &Latencies::of(&times).unwrap());
        let capabilities = Capabilities {
            unicode: false,
            colour: false,
        };
        let lines: Vec<String> = map
            .lines(capabilities)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(lines.len(), 2 + 26 - 16);
        assert_eq!(lines[2], "   34ms  . ");
        assert_eq!(lines.last().unwrap(), "   66µs  # ");
        assert!(HeatMap::new(3).lines(capabilities).is_empty());
    }
}
