//! Counters of node_exporter, in an answer of Prometheus to a query over a range of time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::calendar::Instant;
use super::counters::{Counters, FlowCounters};
use super::report::{Report, Row};

const SECTOR: f64 = 512.0;
/// Maximum number of values that are kept: some hundred megabytes.
const MAX_VALUES: usize = 1 << 23;

/// A counter of node_exporter (diskstats collector). The number is the kind of requests: reads, writes, discards and
/// flushes, in the order of [`super::counters::PARTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Metric {
    Requests(usize),
    Merged(usize),
    Bytes(usize),
    Sectors(usize),
    Seconds(usize),
    Busy,
    Weighted,
    InFlight,
}

/// Names of the counters, after `node_disk_`.
const METRICS: [(&str, Metric); 17] = [
    ("reads_completed_total", Metric::Requests(0)),
    ("reads_merged_total", Metric::Merged(0)),
    ("read_bytes_total", Metric::Bytes(0)),
    ("read_time_seconds_total", Metric::Seconds(0)),
    ("writes_completed_total", Metric::Requests(1)),
    ("writes_merged_total", Metric::Merged(1)),
    ("written_bytes_total", Metric::Bytes(1)),
    ("write_time_seconds_total", Metric::Seconds(1)),
    ("discards_completed_total", Metric::Requests(2)),
    ("discards_merged_total", Metric::Merged(2)),
    ("discarded_sectors_total", Metric::Sectors(2)),
    ("discard_time_seconds_total", Metric::Seconds(2)),
    ("flush_requests_total", Metric::Requests(3)),
    ("flush_requests_time_seconds_total", Metric::Seconds(3)),
    ("io_time_seconds_total", Metric::Busy),
    ("io_time_weighted_seconds_total", Metric::Weighted),
    ("io_now", Metric::InFlight),
];

impl Metric {
    fn by_name(name: &str) -> Option<Metric> {
        let name = name.strip_prefix("node_disk_")?;
        let known = METRICS.iter().find(|(known, _)| *known == name);
        known.map(|(_, metric)| *metric)
    }

    fn put(self, counters: &mut Counters, value: f64) {
        let mut flow = |nth: usize, place: fn(&mut FlowCounters) -> &mut Option<f64>, value| {
            if let Some(flow) = counters.flows.get_mut(nth) {
                *place(flow) = Some(value);
            }
        };
        match self {
            Metric::Requests(nth) => flow(nth, |flow| &mut flow.requests, value),
            Metric::Merged(nth) => flow(nth, |flow| &mut flow.merged, value),
            Metric::Bytes(nth) => flow(nth, |flow| &mut flow.bytes, value),
            Metric::Sectors(nth) => flow(nth, |flow| &mut flow.bytes, value * SECTOR),
            Metric::Seconds(nth) => flow(nth, |flow| &mut flow.seconds, value),
            Metric::Busy => counters.busy = Some(value),
            Metric::Weighted => counters.weighted = Some(value),
            Metric::InFlight => counters.in_flight = Some(value as u64),
        }
    }
}

/// Reason why an answer of Prometheus is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// The answer has none of the counters.
    #[error(
        "it is an answer of Prometheus and has none of node_exporter's counters of disks under their names; query \
         the counters themselves, without rate(), over a range: {{__name__=~\"node_disk_.+\", instance=\"HOST\"}}"
    )]
    NoCounters,
    /// The answer has counters of several hosts.
    #[error(
        "it has the counters of {} hosts ({}); query those of one: \
         {{__name__=~\"node_disk_.+\", instance=\"{}\"}}", .0.len(), .0.join(", "), .0.first().map_or("", String::as_str)
    )]
    Hosts(Vec<String>),
    /// The answer has too many values.
    #[error("it has more than {MAX_VALUES} values; query a shorter range, or fewer devices")]
    Long,
}

/// A counter of a device over time.
type Series = Vec<(Timestamp, f64)>;

/// The counters that were read so far.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    series: BTreeMap<(String, Metric), Series>,
    hosts: BTreeSet<String>,
    labels: HashMap<String, String>,
    /// The counter whose values are being read.
    current: Option<(String, Metric)>,
    count: usize,
}

impl Matrix {
    /// Begins the labels of another series.
    pub(crate) fn begin_series(&mut self) {
        self.labels.clear();
        self.current = None;
    }

    /// Adds a label of the series.
    pub(crate) fn label(&mut self, name: String, value: String) {
        self.labels.insert(name, value);
    }

    /// Ends the labels of the series, and determines its device, counter and host.
    pub(crate) fn end_labels(&mut self) {
        let name = self.labels.remove("__name__").unwrap_or_default();
        let metric = Metric::by_name(&name);
        self.current = self.labels.remove("device").zip(metric);
        if self.current.is_some() {
            self.hosts
                .insert(self.labels.remove("instance").unwrap_or_default());
        }
    }

    /// Adds a value of the series, with its time in seconds since 1970; ignored if the series is not a counter of a
    /// device.
    pub(crate) fn value(&mut self, seconds: f64, value: &str) {
        let Some(current) = self.current.clone() else {
            return;
        };
        let at = Timestamp::from_nanosecond((seconds * 1e3).round() as i128 * 1_000_000);
        let (Ok(at), Ok(value)) = (at, value.parse::<f64>()) else {
            return;
        };
        self.count += 1;
        if self.count <= MAX_VALUES && value.is_finite() {
            self.series.entry(current).or_default().push((at, value));
        }
    }

    /// Label `instance` of the host; `None` if the series have no such label.
    pub(crate) fn host(&self) -> Option<String> {
        self.hosts.first().filter(|host| !host.is_empty()).cloned()
    }

    /// The reports, from the second reading on. `line` is the last line of the log.
    ///
    /// # Errors
    /// When there are no counters, too many values, or counters of several hosts.
    pub(crate) fn readings(mut self, line: u64) -> Result<Readings, MatrixError> {
        if self.series.is_empty() {
            return Err(MatrixError::NoCounters);
        }
        if self.hosts.len() > 1 {
            return Err(MatrixError::Hosts(self.hosts.into_iter().collect()));
        }
        if self.count > MAX_VALUES {
            return Err(MatrixError::Long);
        }
        let mut times = BTreeSet::new();
        for series in self.series.values_mut() {
            series.sort_by_key(|(at, _)| *at);
            series.dedup_by_key(|(at, _)| *at);
            times.extend(series.iter().map(|(at, _)| *at));
        }
        let series = self.series.into_iter();
        let series = series.map(|((device, metric), values)| Cursor {
            device,
            metric,
            values: values.into_iter().peekable(),
        });
        Ok(Readings {
            line,
            series: series.collect(),
            times: times.into_iter(),
            last: None,
            before: HashMap::new(),
        })
    }
}

#[derive(Debug)]
struct Cursor {
    device: String,
    metric: Metric,
    values: std::iter::Peekable<std::vec::IntoIter<(Timestamp, f64)>>,
}

/// The reports of a matrix, in order.
#[derive(Debug)]
pub(crate) struct Readings {
    line: u64,
    /// Sorted by device.
    series: Vec<Cursor>,
    times: std::collections::btree_set::IntoIter<Timestamp>,
    last: Option<Timestamp>,
    /// The last counters of each device.
    before: HashMap<String, (Timestamp, Counters)>,
}

impl Readings {
    /// The counters at a time, by device.
    fn at(&mut self, at: Timestamp) -> Vec<(String, Counters)> {
        let mut devices: Vec<(String, Counters)> = Vec::new();
        for series in &mut self.series {
            let Some((_, value)) = series.values.next_if(|(time, _)| *time == at) else {
                continue;
            };
            if devices
                .last()
                .is_none_or(|(name, _)| *name != series.device)
            {
                devices.push((series.device.clone(), Counters::default()));
            }
            if let Some((_, counters)) = devices.last_mut() {
                series.metric.put(counters, value);
            }
        }
        devices
    }
}

impl Iterator for Readings {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        loop {
            let at = self.times.next()?;
            let mut rows = Vec::new();
            for (name, counters) in self.at(at) {
                let before = self.before.insert(name.clone(), (at, counters));
                if let Some((then, before)) = before {
                    let figures = counters.since(&before, seconds(then, at));
                    rows.push(Row {
                        name,
                        group: false,
                        figures,
                    });
                }
            }
            let last = self.last.replace(at);
            if let (Some(last), false) = (last, rows.is_empty()) {
                let instant = Instant {
                    at,
                    corrected: None,
                };
                return Some(Report::of_interval(
                    self.line,
                    instant,
                    seconds(last, at),
                    rows,
                ));
            }
        }
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}
