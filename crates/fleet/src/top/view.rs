//! Output of `fleet top`: a table each time, or one JSON document a line.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::host_rates::DiskSample;
use crate::sort_key::SortKey;
use crate::top::row::{HostRow, State};
use ratatui_core::text::Line;
use ui::charset;
use ui::charset::printable;
use ui::format;
use ui::json::Document;
use ui::screen::{Pieces as _, TextStyle};
use ui::table::{Column, layout};

const MIB: f64 = 1_048_576.0;
/// Latency in nanoseconds below which no disk is reported as slow.
const MIN_SLOW_LATENCY_NS: f64 = 1e6;
/// Relative difference from the median below which latencies count as equal.
const EQUAL_SHARE: f64 = 1.0;

const COLUMNS: [Column; 12] = [
    Column::text("host"),
    Column::text("zone").ranked(4),
    Column::numbers("net MiB/s", 1),
    Column::numbers("in", 2),
    Column::numbers("out", 2),
    Column::numbers("reads/s", 0),
    Column::numbers("writes/s", 0),
    Column::numbers("load 1", 1),
    Column::numbers("5", 3),
    Column::numbers("15", 3),
    Column::numbers("latency", 0),
    Column::text(""),
];

/// Content and limits of the table.
pub(super) struct TableView<'a> {
    /// The hosts, in the order of their source.
    pub all: &'a [HostRow],
    /// The shown rows, in order.
    pub shown: Vec<&'a HostRow>,
    /// Maximum number of lines of the table; `None` without a limit.
    pub height: Option<usize>,
    /// Width of the table, in columns.
    pub width: usize,
    /// Age from which a sample is reported as old.
    pub late: Duration,
}

/// Lines of the table of hosts.
pub(super) fn table(picture: &TableView<'_>, now: Timestamp) -> Vec<Line<'static>> {
    let slow = slow(picture.all);
    let mut rows: Vec<Vec<String>> = picture
        .shown
        .iter()
        .map(|row| cells(row, &slow, picture.late))
        .collect();
    let live: Vec<&HostRow> = live(picture.all);
    rows.push(summary("all", &live, Aggregate::Sum));
    rows.push(summary("mean", &live, Aggregate::Mean));
    let text = layout(&COLUMNS, &rows, picture.width);
    let text = printable(&text);
    let lines: Vec<&str> = text.lines().collect();
    let (head, sums) = lines.split_at(lines.len().saturating_sub(2));
    let room = picture
        .height
        .map_or(usize::MAX, |height| height.saturating_sub(4));
    let style = |at: usize| {
        let row = at.checked_sub(1).and_then(|row| picture.shown.get(row));
        match row.is_some_and(|row| row.sample().is_none()) {
            true => TextStyle::Faint,
            false => TextStyle::Plain,
        }
    };
    let shown = head.iter().enumerate().take(room);
    let mut out: Vec<Line> = shown.map(|(at, line)| Line::of(*line, style(at))).collect();
    if head.len() > room {
        let more = format!("… and {} more", head.len() - room);
        out.push(Line::raw(charset::shown(&more).into_owned()));
    }
    out.extend(sums.iter().map(|line| Line::raw((*line).to_owned())));
    out.push(Line::raw(format!(
        "{} of {} hosts at {}",
        live.len(),
        picture.all.len(),
        format::date(now)
    )));
    out
}

fn live(rows: &[HostRow]) -> Vec<&HostRow> {
    rows.iter().filter(|row| row.sample().is_some()).collect()
}

fn cells(row: &HostRow, slow: &[(&str, f64)], late: Duration) -> Vec<String> {
    let mib = |what| {
        row.value(what)
            .map_or_else(String::new, |value| format::number(value / MIB))
    };
    let number = |what| row.value(what).map_or_else(String::new, format::number);
    let load = |at: usize| {
        let load = row.sample().and_then(|sample| sample.load);
        load.map_or_else(String::new, |load| format!("{:.2}", load[at]))
    };
    let worst = row.worst();
    let remark = match &row.state {
        State::Connecting => "connecting".to_owned(),
        State::Dead(why) => why.lines().next().unwrap_or_default().to_owned(),
        State::Live(_, came) if came.elapsed() > late => {
            format!("silent for {} s", came.elapsed().as_secs())
        }
        State::Live(..) => {
            let of_host = slow.iter().find(|(host, _)| *host == row.host);
            of_host.map_or_else(String::new, |(_, times)| {
                let disk = worst.map_or("", |(disk, _)| disk.name.as_str());
                format!("{disk} is slow: ×{times:.1}")
            })
        }
    };
    vec![
        row.host.clone(),
        row.zone.clone().unwrap_or_default(),
        mib(SortKey::Net),
        mib(SortKey::Received),
        mib(SortKey::Sent),
        number(SortKey::Reads),
        number(SortKey::Writes),
        load(0),
        load(1),
        load(2),
        worst.map_or_else(String::new, |(_, nanos)| format::latency(nanos as u64)),
        remark,
    ]
}

/// A line over all live hosts: sums, or means over them. For latencies it is the worst, or the mean of each host's
/// worst.
fn summary(name: &str, live: &[&HostRow], by: Aggregate) -> Vec<String> {
    let mib = |what| by.all(live, |row| row.value(what)).map(|value| value / MIB);
    let number = |what| by.all(live, |row| row.value(what));
    let load = |at: usize| {
        let load = by.all(live, |row| row.sample()?.load.map(|load| load[at]));
        load.map_or_else(String::new, |load| format!("{load:.2}"))
    };
    let word = |value: Option<f64>| value.map_or_else(String::new, format::number);
    let latency = match by {
        Aggregate::Sum => live
            .iter()
            .filter_map(|row| row.value(SortKey::Latency))
            .reduce(f64::max),
        Aggregate::Mean => number(SortKey::Latency),
    };
    vec![
        name.to_owned(),
        String::new(),
        word(mib(SortKey::Net)),
        word(mib(SortKey::Received)),
        word(mib(SortKey::Sent)),
        word(number(SortKey::Reads)),
        word(number(SortKey::Writes)),
        load(0),
        load(1),
        load(2),
        latency.map_or_else(String::new, |nanos| format::latency(nanos as u64)),
        String::new(),
    ]
}

/// Aggregate of the values of hosts.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Mean,
}

impl Aggregate {
    /// Aggregate of a value over the hosts that have it; `None` if none has.
    fn all(self, rows: &[&HostRow], of: impl Fn(&HostRow) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
        let sum = values.iter().copied().reduce(|a, b| a + b)?;
        Some(match self {
            Aggregate::Sum => sum,
            Aggregate::Mean => sum / values.len() as f64,
        })
    }
}

/// The hosts whose worst disk is slow compared with those of the others, and by which factor.
fn slow(rows: &[HostRow]) -> Vec<(&str, f64)> {
    let known: Vec<(&str, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.host.as_str(), row.value(SortKey::Latency)?)))
        .collect();
    let values: Vec<f64> = known.iter().map(|(_, latency)| *latency).collect();
    let middle = study::median::median(values.clone()).unwrap_or(0.0);
    let marks = study::outlying::outlying(&values, EQUAL_SHARE).unwrap_or_default();
    known
        .into_iter()
        .zip(marks)
        .filter(|((_, latency), marked)| *marked && *latency > middle.max(MIN_SLOW_LATENCY_NS))
        .map(|((host, latency), _)| (host, latency / middle))
        .collect()
}

/// Body of the document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TopReport<'a> {
    /// Time of this document.
    at: Timestamp,
    /// Number of hosts that are connected.
    live: usize,
    /// Number of all hosts.
    of: usize,
    /// The hosts that meet the conditions of `--only`, in the order of `--sort`.
    hosts: Vec<HostReport<'a>>,
    /// Sums over the hosts that are connected.
    totals: Aggregates,
    /// Means over the hosts that are connected.
    means: Aggregates,
}

/// A host now.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostReport<'a> {
    /// Name of the host.
    host: &'a str,
    /// The zone, such as `us-east-1a`; `null` where the source of the hosts names none.
    zone: Option<&'a str>,
    /// `connecting`, `live` or `dead` (cannot be reached, and is tried again).
    state: &'static str,
    /// Reason why it cannot be reached, as a sentence; `null` while it can.
    why: Option<&'a str>,
    /// Age of its sample, in seconds; `null` where it is not connected.
    age_s: Option<f64>,
    /// Bytes received from the network in a second; `null` where the host is not connected.
    received_bytes_per_s: Option<f64>,
    /// Bytes sent to the network in a second; `null` where the host is not connected.
    sent_bytes_per_s: Option<f64>,
    /// Reads of all disks in a second; `null` where the host is not connected.
    reads_per_s: Option<f64>,
    /// Writes of all disks in a second; `null` where the host is not connected.
    writes_per_s: Option<f64>,
    /// Load over the last 1, 5 and 15 minutes; `null` where it is not known.
    load: Option<[f64; 3]>,
    /// Disk whose requests take longest; `null` where no disk has a latency.
    worst: Option<WorstDisk<'a>>,
    /// Latency of the worst disk as a multiple of the median host's; `null` where it is not slow.
    times_as_slow: Option<f64>,
    /// Its disks; `null` where the host is not connected.
    disks: Option<&'a [DiskSample]>,
}

/// Disk whose requests take longest.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorstDisk<'a> {
    /// The kernel's name of the disk.
    disk: &'a str,
    /// Mean time of a request, in nanoseconds.
    latency_ns: f64,
}

/// Sums or means over the hosts that are connected.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Aggregates {
    /// Bytes received from the network in a second; `null` where no host is connected.
    received_bytes_per_s: Option<f64>,
    /// Bytes sent to the network in a second; `null` where no host is connected.
    sent_bytes_per_s: Option<f64>,
    /// Reads in a second; `null` where no host is connected.
    reads_per_s: Option<f64>,
    /// Writes in a second; `null` where no host is connected.
    writes_per_s: Option<f64>,
    /// Load of the last minute; `null` where no host has one.
    load: Option<f64>,
}

impl Aggregates {
    fn of(live: &[&HostRow], by: Aggregate) -> Aggregates {
        let total = |key| by.all(live, |row| row.value(key));
        Aggregates {
            received_bytes_per_s: total(SortKey::Received),
            sent_bytes_per_s: total(SortKey::Sent),
            reads_per_s: total(SortKey::Reads),
            writes_per_s: total(SortKey::Writes),
            load: total(SortKey::Load),
        }
    }
}

impl<'a> HostReport<'a> {
    fn of(row: &'a HostRow, slow: &[(&str, f64)]) -> HostReport<'a> {
        let (state, why, age_s) = match &row.state {
            State::Connecting => ("connecting", None, None),
            State::Live(_, since) => ("live", None, Some(since.elapsed().as_secs_f64())),
            State::Dead(why) => ("dead", Some(why.as_str()), None),
        };
        let times = slow.iter().find(|(host, _)| *host == row.host);
        HostReport {
            host: &row.host,
            zone: row.zone.as_deref(),
            state,
            why,
            age_s,
            received_bytes_per_s: row.value(SortKey::Received),
            sent_bytes_per_s: row.value(SortKey::Sent),
            reads_per_s: row.value(SortKey::Reads),
            writes_per_s: row.value(SortKey::Writes),
            load: row.sample().and_then(|sample| sample.load),
            worst: row.worst().map(|(disk, latency_ns)| WorstDisk {
                disk: &disk.name,
                latency_ns,
            }),
            times_as_slow: times.map(|(_, times)| *times),
            disks: row.sample().map(|sample| sample.disks.as_slice()),
        }
    }
}

/// The hosts as one JSON document in one line.
pub(super) fn json(all: &[HostRow], shown: &[&HostRow]) -> String {
    let (slow, live) = (slow(all), live(all));
    let report = TopReport {
        at: Timestamp::now(),
        live: live.len(),
        of: all.len(),
        hosts: shown.iter().map(|row| HostReport::of(row, &slow)).collect(),
        totals: Aggregates::of(&live, Aggregate::Sum),
        means: Aggregates::of(&live, Aggregate::Mean),
    };
    Document::of("fleet top", report).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::top::row::tests::row;
    use insta::assert_snapshot;

    fn rows() -> Vec<HostRow> {
        let mut rows: Vec<HostRow> = (0..6)
            .map(|at| row(&format!("db{at}"), Some(2.0 + 0.1 * f64::from(at)), 100.0))
            .collect();
        rows.push(row("slow", Some(80.0), 100.0));
        let mut dead = row("dead", None, 0.0);
        dead.state = State::Dead("dead was not reached: refused.".to_owned());
        rows.push(dead);
        rows
    }

    fn picture(rows: &[HostRow]) -> TableView<'_> {
        TableView {
            all: rows,
            shown: rows.iter().collect(),
            height: None,
            width: 120,
            late: Duration::from_secs(60),
        }
    }

    fn at() -> Timestamp {
        "2026-11-23T12:00:00Z".parse().unwrap()
    }

    fn text(picture: &TableView<'_>) -> String {
        let lines = table(picture, at());
        let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn the_table_at_40_80_and_120_columns() {
        let rows = rows();
        for width in [40, 80, 120] {
            let shown = text(&TableView {
                width,
                height: Some(24),
                ..picture(&rows)
            });
            assert_snapshot!(format!("table-{width}"), shown);
        }
    }

    #[test]
    fn the_table_has_sums_and_names_the_slow_and_the_dead() {
        let rows = rows();
        let text = text(&picture(&rows));
        assert!(text.contains("sdb is slow: ×"), "{text}");
        assert_eq!(text.matches("is slow").count(), 1, "{text}");
        assert!(text.contains("dead was not reached"), "{text}");
        assert!(text.contains("7 of 8 hosts at"), "{text}");
        let all = text.lines().find(|line| line.starts_with("all")).unwrap();
        assert!(all.contains("700") && all.contains("7.00"), "{all}");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_the_dead_are_grey() {
        let rows = rows();
        let low = text(&TableView {
            height: Some(8),
            ..picture(&rows)
        });
        assert!(low.contains("… and 5 more"), "{low}");
        assert!(low.lines().count() <= 8, "{low}");
        let lines = table(&picture(&rows), at());
        let is_grey = |line: &&Line| {
            line.spans
                .iter()
                .any(|span| span.style == TextStyle::Faint.into())
        };
        let grey: Vec<String> = lines.iter().filter(is_grey).map(Line::to_string).collect();
        assert_eq!(grey.len(), 1);
        assert!(grey[0].contains("dead"), "{grey:?}");
    }

    #[test]
    fn a_document_is_one_line() {
        let rows = rows();
        let line = json(&rows, &rows.iter().collect::<Vec<_>>());
        assert_eq!(line.lines().count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["live"], 7);
        assert_eq!(value["hosts"][7]["state"], "dead");
        assert!(value["hosts"][7]["age_s"].is_null());
        assert!(value["hosts"][0]["age_s"].as_f64().unwrap() >= 0.0);
        assert_eq!(value["hosts"][6]["worst"]["disk"], "sdb");
        assert_eq!(value["totals"]["reads_per_s"], 700.0);
        for rate in ["received_bytes_per_s", "sent_bytes_per_s"] {
            assert!(value["totals"][rate].is_number() && value["hosts"][0][rate].is_number());
        }
    }
}
