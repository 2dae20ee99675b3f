//! Answers of `tally query`: a table with a sparkline, and JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::Mark;
use serde::Serialize;

use crate::level::{RollUpLevel, Seconds, Zone};
use crate::query::{RollUp, Selection, Series};
use crate::store::Settings;
use ui::format::number;
use ui::table::{Column, layout};

/// Minimum and maximum number of characters in a sparkline.
const SPARKS: (usize, usize) = (8, 60);

/// The document of `tally query --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// Tag of the events.
    tag: String,
    /// Labels that the events have, as the query asked for them, by name.
    labels: BTreeMap<String, String>,
    /// Length of the periods.
    by: RollUpLevel,
    /// Time zone of the periods, by its IANA name.
    timezone: String,
    /// Start of the first period that was asked for.
    from: Timestamp,
    /// End of what was asked for.
    to: Timestamp,
    /// Figures of each period that has events.
    rows: Vec<Row>,
    /// Figures of all periods together.
    total: Row,
    /// Moments that `disksmith mark` has named.
    markers: Vec<Marker>,
}

/// A moment that `disksmith mark` has named.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Marker {
    /// The moment.
    at: Timestamp,
    /// Name of the host on which it was named.
    host: String,
    /// Its name.
    text: String,
}

/// Figures of the events of a period.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    /// Start of the period.
    start: Timestamp,
    /// Number of events.
    count: f64,
    /// Sum of the values, each times its event's count; null where no event has a value.
    sum: Option<f64>,
    /// Least value; null where no event has a value.
    min: Option<f64>,
    /// Greatest value; null where no event has a value.
    max: Option<f64>,
    /// Last value of a gauge; null where there is none.
    last: Option<f64>,
    /// Median of the response times, in milliseconds; null where there are none.
    p50: Option<f64>,
    /// 95th percentile of the response times, in milliseconds; null where there are none.
    p95: Option<f64>,
    /// 99th percentile of the response times, in milliseconds; null where there are none.
    p99: Option<f64>,
    /// Histogram of the response times; empty where there are none.
    buckets: Vec<Class>,
}

/// A bucket of a histogram of response times.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Class {
    /// Upper bound in milliseconds; null of the last bucket, which has none.
    le_ms: Option<f64>,
    /// Number of response times above the bucket before and up to this bound.
    count: f64,
}

impl Row {
    fn of(row: &RollUp, settings: &Settings) -> Row {
        let values = row.values.as_ref();
        let bounds = settings
            .bounds
            .millis()
            .iter()
            .map(|bound| Some(*bound))
            .chain([None]);
        let has_times = row.histogram.count() > 0.0;
        let classes = values.filter(|_| has_times).map(|values| values.classes);
        Row {
            start: timestamp(row.start),
            count: row.count,
            sum: values.map(|values| values.sum),
            min: values.map(|values| values.min),
            max: values.map(|values| values.max),
            last: values.and_then(|values| values.last),
            p50: row.quantile(0.5),
            p95: row.quantile(0.95),
            p99: row.quantile(0.99),
            buckets: bounds
                .zip(classes.into_iter().flatten())
                .map(|(le_ms, count)| Class { le_ms, count })
                .collect(),
        }
    }
}

fn timestamp(at: Seconds) -> Timestamp {
    Timestamp::from_second(at).unwrap_or_default()
}

impl Report {
    pub(crate) fn new(
        selection: &Selection,
        by: RollUpLevel,
        (from, to): (Seconds, Seconds),
        rows: &[RollUp],
        marks: Vec<Mark>,
        settings: &Settings,
    ) -> Report {
        let mut total = RollUp::empty(rows.first().map_or(from, |row| row.start));
        rows.iter().for_each(|row| total.merge(row));
        Report {
            tag: selection.0.tag.clone(),
            labels: selection.0.labels.clone(),
            by,
            timezone: settings.zone.name().to_owned(),
            from: timestamp(from),
            to: timestamp(to),
            rows: rows.iter().map(|row| Row::of(row, settings)).collect(),
            total: Row::of(&total, settings),
            markers: marks
                .into_iter()
                .map(|mark| Marker {
                    at: mark.at,
                    host: mark.host,
                    text: mark.text,
                })
                .collect(),
        }
    }

    pub(crate) fn json(&self) -> String {
        ui::json::document("tally query", self)
    }

    pub(crate) fn text(&self, columns: usize) -> String {
        if self.rows.is_empty() {
            return format!(
                "No events of {} from {} to {}.\n",
                self.tag, self.from, self.to
            );
        }
        let zone = Zone::named(&self.timezone).unwrap_or_else(|_| Zone::utc());
        let form = match self.by {
            RollUpLevel::Minute | RollUpLevel::Hour => "%Y-%m-%d %H:%M",
            RollUpLevel::Day => "%Y-%m-%d",
            RollUpLevel::Month => "%Y-%m",
        };
        let local = |at: Timestamp, form: &str| {
            at.to_zoned(zone.time_zone().clone())
                .strftime(form)
                .to_string()
        };
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.cells(local(row.start, form)));
        let rows: Vec<Vec<String>> = rows.chain([self.total.cells("total".to_owned())]).collect();
        let titles: Vec<String> = self.total.buckets.iter().map(Class::title).collect();
        let mut shown = vec![
            Column::text(self.by.name()),
            Column::numbers("count", 0),
            Column::numbers("sum", 6),
            Column::numbers("min", 4),
            Column::numbers("max", 3),
            Column::numbers("last", 3),
            Column::numbers("p50", 2),
            Column::numbers("p95", 2),
            Column::numbers("p99", 1),
        ];
        shown.extend(titles.iter().map(|title| Column::numbers(title, 5)));
        let table = layout(&shown, &rows, columns);
        let markers = self.markers.iter().map(|marker| {
            let at = local(marker.at, "%Y-%m-%d %H:%M");
            format!("{at} {}: {}\n", marker.host, marker.text)
        });
        let markers: String = markers.collect();
        format!("{}\n{table}{markers}", self.sparkline(columns))
    }

    /// Counts over time, periods without events included. If there are more periods than columns, a character is the
    /// mean of several.
    fn sparkline(&self, columns: usize) -> String {
        let counts: BTreeMap<Seconds, f64> = self
            .rows
            .iter()
            .map(|row| (row.start.as_second(), row.count))
            .collect();
        let (Some((first, _)), Some((last, _))) =
            (counts.first_key_value(), counts.last_key_value())
        else {
            return String::new();
        };
        let place = |start: Seconds| ((start - first) as f64 / self.by.seconds()).round() as usize;
        let periods = place(*last) + 1;
        let room = columns.saturating_sub(self.tag.chars().count() + 2);
        let each = periods.div_ceil(room.clamp(SPARKS.0, SPARKS.1));
        let mut sums = vec![0.0; periods.div_ceil(each)];
        for (start, count) in &counts {
            let sign = place(*start) / each;
            let of = each.min(periods - sign * each);
            sums[sign] += count / of as f64;
        }
        let most = sums.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let signs = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let sign = |sum: &f64| signs[((sum / most * 7.0).round().clamp(0.0, 7.0)) as usize];
        let line: String = sums.iter().map(sign).collect();
        format!("{}  {line}", self.tag)
    }
}

impl Class {
    fn title(&self) -> String {
        match self.le_ms {
            Some(bound) => format!("≤ {bound} ms"),
            None => "more".to_owned(),
        }
    }
}

impl Row {
    fn cells(&self, first: String) -> Vec<String> {
        let shown = |value: Option<f64>| {
            value.map_or(String::new(), |value| {
                number(value).trim_end_matches(".0").to_owned()
            })
        };
        let figures = [
            Some(self.count),
            self.sum,
            self.min,
            self.max,
            self.last,
            self.p50,
            self.p95,
            self.p99,
        ];
        let classes = self.buckets.iter().map(|class| Some(class.count));
        let cells = figures.into_iter().chain(classes).map(shown);
        std::iter::once(first).chain(cells).collect()
    }
}

/// The document of `tally tags --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Tags<'a> {
    /// Each tag, with each of its sets of labels.
    tags: Vec<TagDocument<'a>>,
}

/// A tag with a set of labels.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TagDocument<'a> {
    /// Name of the tag.
    tag: &'a str,
    /// Labels by name.
    labels: &'a BTreeMap<String, String>,
}

/// The list of tags.
pub(crate) fn tags(series: &[Series], json: bool) -> String {
    if json {
        let tags = series
            .iter()
            .map(|one| TagDocument {
                tag: &one.tag,
                labels: &one.labels,
            })
            .collect();
        return ui::json::document("tally tags", &Tags { tags });
    }
    let lines = series.iter().map(|one| {
        let labels = one
            .labels
            .iter()
            .map(|(name, value)| format!(";{name}={value}"));
        format!("{}{}\n", one.tag, labels.collect::<String>())
    });
    lines.collect()
}
