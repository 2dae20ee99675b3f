//! Parts of a replay's view: marks, resolution of the recording, and a table of means over its time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::Mark;
use record::Severity;
use record::sample::{DeviceId, DeviceKind, DeviceSample, Flow, Gap, RecordedInterval, Spread};
use serde::Serialize;
use serde_json::Value;
use study::watch::{ChangeKind, EventChange};

use super::json;
use crate::mark::MarkDocument;
use ui::format;
use ui::table::{Column, layout, wrap};

const MIB: f64 = 1_048_576.0;

/// The line of a mark.
pub(crate) fn mark(mark: &Mark, is_json: bool) -> String {
    if is_json {
        return json::line("mark", MarkDocument::of(mark));
    }
    format!("= {} {}\n", format::local_date(mark.at), mark.text)
}

/// The line on the resolution of the recording from here on.
pub(crate) fn resolution(recorded: &RecordedInterval) -> String {
    if recorded.spread.is_none() {
        return "# From here on at full resolution.\n".to_owned();
    }
    format!(
        "# From here on thinned out: each line is the mean of {}; minima and maxima are in --json, --table and --report.\n",
        step(recorded)
    )
}

fn step(recorded: &RecordedInterval) -> &'static str {
    if recorded.sample.length.as_secs_f64() > 90.0 {
        "an hour"
    } else {
        "a minute"
    }
}

/// The JSON line with the extremes of a sample of a thinned recording.
pub(crate) fn spread(spread: &Spread) -> String {
    let value = |sample| -> Value {
        let mut line: Value = serde_json::from_str(&json::lines(sample, &[])).unwrap_or_default();
        if let Some(line) = line.as_object_mut() {
            line.remove("schema");
            line.remove("kind");
        }
        line
    };
    let line = SpreadLine {
        samples: spread.samples,
        least: value(&spread.least),
        most: value(&spread.most),
    };
    json::line("spread", line)
}

/// Least and most of the samples that a sample of a thinned recording stands for.
#[derive(Serialize)]
struct SpreadLine {
    /// Number of these samples.
    samples: u64,
    /// Samples, without the keys that make them lines.
    least: Value,
    most: Value,
}

/// Weighted mean and maximum of a figure over a span of time.
#[derive(Clone, Copy, Debug, Default)]
struct WeightedFigure {
    sum: f64,
    weight: f64,
    most: Option<f64>,
}

impl WeightedFigure {
    fn take(&mut self, mean: Option<f64>, most: Option<f64>, weight: f64) {
        if let Some(mean) = mean {
            self.sum += mean * weight;
            self.weight += weight;
        }
        self.most = [self.most, most].into_iter().flatten().reduce(f64::max);
    }

    fn text(&self, word: impl Fn(f64) -> String) -> String {
        let mean = (self.weight > 0.0).then(|| self.sum / self.weight);
        match (mean, self.most) {
            (Some(mean), Some(most)) => format!("{} ({})", word(mean), word(most)),
            (None, Some(most)) => word(most),
            _ => "-".to_owned(),
        }
    }
}

/// A column of the table.
struct Figure {
    column: Column<'static>,
    value: fn(&DeviceSample) -> Option<f64>,
    /// Requests whose number is the weight of a sample in a mean; `None` where time is the weight.
    per_request: Option<fn(&DeviceSample) -> &Flow>,
    text: fn(f64) -> String,
}

impl Figure {
    const fn number(
        title: &'static str,
        rank: u8,
        value: fn(&DeviceSample) -> Option<f64>,
    ) -> Figure {
        Figure {
            column: Column::numbers(title, rank),
            value,
            per_request: None,
            text: format::number,
        }
    }

    /// A column with a mean time of requests.
    const fn latency(
        title: &'static str,
        value: fn(&DeviceSample) -> Option<f64>,
        requests: fn(&DeviceSample) -> &Flow,
    ) -> Figure {
        Figure {
            column: Column::numbers(title, 0),
            value,
            per_request: Some(requests),
            text: |nanos| format::latency(nanos as u64),
        }
    }

    fn weight(&self, one: &DeviceSample, seconds: f64) -> f64 {
        let iops = self.per_request.and_then(|requests| requests(one).iops);
        iops.map_or(seconds, |iops| iops.0 * seconds)
    }
}

const FIGURES: [Figure; 8] = [
    Figure::number("r/s", 0, |one| one.read.iops.map(|iops| iops.0)),
    Figure::number("w/s", 0, |one| one.write.iops.map(|iops| iops.0)),
    Figure::number("rMiB/s", 3, |one| one.read.bytes.map(|bytes| bytes.0 / MIB)),
    Figure::number("wMiB/s", 3, |one| {
        one.write.bytes.map(|bytes| bytes.0 / MIB)
    }),
    Figure::latency(
        "r-await",
        |one| one.read.wait.map(|wait| wait.0 as f64),
        |one| &one.read,
    ),
    Figure::latency(
        "w-await",
        |one| one.write.wait.map(|wait| wait.0 as f64),
        |one| &one.write,
    ),
    Figure::number("flight", 1, |one| {
        let now = || one.in_flight.map(|count| count as f64);
        one.mean_in_flight.or_else(now)
    }),
    Figure {
        text: |percent| format!("{percent:.0}%"),
        ..Figure::number("busy", 2, |one| one.busy.map(|busy| busy.percent()))
    },
];

/// Figures of a device over the time of the replay.
#[derive(Default)]
struct Line {
    name: String,
    is_part: bool,
    figures: [WeightedFigure; FIGURES.len()],
}

impl Line {
    fn observe(&mut self, one: &DeviceSample, most: &DeviceSample, seconds: f64) {
        self.name.clone_from(&one.device.name);
        self.is_part = one.device.kind == DeviceKind::Partition;
        for (over, figure) in self.figures.iter_mut().zip(&FIGURES) {
            let weight = figure.weight(one, seconds);
            over.take((figure.value)(one), (figure.value)(most), weight);
        }
    }

    /// True if the device is no partition, and did something.
    fn is_worth_a_line(&self) -> bool {
        let did = |figure: &WeightedFigure| figure.most.is_some_and(|most| most > 0.0);
        !self.is_part && self.figures.iter().any(did)
    }

    fn cells(&self) -> Vec<String> {
        let figures = self.figures.iter().zip(&FIGURES);
        let texts = figures.map(|(over, figure)| over.text(figure.text));
        [self.name.clone()].into_iter().chain(texts).collect()
    }
}

/// Table of a span of time: a line for each device, and the findings and marks in it.
pub(crate) struct SummaryTable {
    all: bool,
    from: Timestamp,
    to: Timestamp,
    marks: Vec<Mark>,
    lines: BTreeMap<DeviceId, Line>,
    order: Vec<DeviceId>,
    found: Vec<EventChange>,
    samples: u64,
    thinned: Option<&'static str>,
    gaps: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl SummaryTable {
    /// An empty table. With `all` it also has partitions and idle devices.
    pub(crate) fn new(from: Timestamp, to: Timestamp, marks: Vec<Mark>, all: bool) -> SummaryTable {
        SummaryTable {
            all,
            from,
            to,
            marks,
            lines: BTreeMap::new(),
            order: Vec::new(),
            found: Vec::new(),
            samples: 0,
            thinned: None,
            gaps: 0,
            first: None,
            last: None,
        }
    }

    /// Takes in a sample and its changes of findings.
    pub(crate) fn observe(&mut self, recorded: &RecordedInterval, changes: &[EventChange]) {
        let sample = &recorded.sample;
        self.samples += recorded.samples();
        if recorded.spread.is_some() {
            self.thinned = Some(step(recorded));
        }
        let is_gap = matches!(sample.gap, Some(Gap::Unseen(_) | Gap::Suspended(_)));
        self.gaps += u64::from(is_gap && self.first.is_some());
        self.first = self.first.or(sample.at.before(sample.length).wall);
        self.last = sample.at.wall;
        let seconds = sample.length.as_secs_f64();
        for (nth, one) in sample.devices.iter().enumerate() {
            let id = one.device.id;
            if !self.lines.contains_key(&id) {
                self.order.push(id);
            }
            let most = recorded.most().near(nth, id).unwrap_or(one);
            self.lines
                .entry(id)
                .or_default()
                .observe(one, most, seconds);
        }
        for change in changes {
            let known = self
                .found
                .iter_mut()
                .find(|known| known.event.id == change.event.id);
            match known {
                Some(known) => known.clone_from(change),
                None => self.found.push(change.clone()),
            }
        }
    }

    /// The table, at most so wide.
    pub(crate) fn text(&self, columns: usize) -> String {
        let first = self.first.unwrap_or(self.from).max(self.from);
        let last = self.last.unwrap_or(self.to).min(self.to);
        let mut text = format!(
            "From {} to {}: {} samples{}{}. Means, with maxima in brackets.\n\n",
            format::local_date(first),
            format::local_date(last),
            self.samples,
            self.thinned
                .map_or_else(String::new, |step| format!(", thinned out to {step}")),
            match self.gaps {
                0 => String::new(),
                1 => ", with a gap".to_owned(),
                gaps => format!(", with {gaps} gaps"),
            }
        );
        let rows: Vec<Vec<String>> = self
            .order
            .iter()
            .filter_map(|id| self.lines.get(id))
            .filter(|line| self.all || line.is_worth_a_line())
            .map(Line::cells)
            .collect();
        if rows.is_empty() {
            text.push_str("No device did anything.\n");
        } else {
            let figures = FIGURES.iter().map(|figure| figure.column);
            let titles: Vec<Column<'_>> = [Column::text("device")]
                .into_iter()
                .chain(figures)
                .collect();
            text.push_str(&layout(&titles, &rows, columns));
        }
        if !self.found.is_empty() || !self.marks.is_empty() {
            text.push('\n');
        }
        for change in &self.found {
            text.push_str(&wrap(&finding(change), columns, "  "));
            text.push('\n');
        }
        for mark in &self.marks {
            text.push_str(&self::mark(mark, false));
        }
        text
    }
}

fn finding(change: &EventChange) -> String {
    let event = &change.event;
    let sign = match event.severity {
        Severity::Note => '*',
        Severity::Warn | Severity::Invalid => '!',
    };
    let began = event
        .began
        .wall
        .map_or_else(String::new, format::local_date);
    let lasted = match (change.kind, event.ended) {
        (ChangeKind::Closed, Some(ended)) => {
            format!("for {}", ended.elapsed - event.began.elapsed)
        }
        _ => "and lasts".to_owned(),
    };
    format!(
        "{sign} {began} {} {} ({lasted}): {} {}",
        event.code, event.name, event.text, event.advice
    )
}
