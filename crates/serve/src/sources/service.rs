//! Response times from the stores of `tally`.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use study::verdict;
use tally::level::{HOUR, RollUpLevel, Seconds, Zone};
use tally::query::{Reader, RollUp, Selection, Series};
use tally::store::StoreAddress;

use super::pool::{Pool, lock};
use crate::axis::{Axis, SlotFigures, Value};
use crate::documents::{Line, RoundedFigure, SourceDocument, figures};

/// Maximum number of periods that a view reads.
const MAX_PERIODS: i64 = 2200;
/// Time for which the list of tags is kept.
const TAGS_KEPT: Duration = Duration::from_secs(30);
/// Maximum number of tags that a page offers.
pub(crate) const MAX_OFFERED_TAGS: usize = 200;
/// Maximum length of a month in seconds.
const MAX_MONTH: Seconds = 31 * 24 * HOUR;

/// Stores that are read as one.
pub(crate) struct Stores {
    addresses: Vec<StoreAddress>,
    pool: Pool<Reader>,
    busiest: Mutex<Option<(Instant, Vec<Series>)>>,
}

/// Roll-ups of a selection.
pub(crate) struct Rows {
    /// The level that they are from.
    pub(crate) level: RollUpLevel,
    /// Their zone.
    pub(crate) zone: Zone,
    /// Upper bounds of the classes but the last, in ms.
    pub(crate) bounds_ms: Vec<f64>,
    /// The roll-ups, in order of time.
    pub(crate) rows: Vec<RollUp>,
}

impl Stores {
    /// The stores at these addresses.
    pub(crate) fn new(addresses: Vec<StoreAddress>) -> Stores {
        let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        Stores {
            addresses,
            pool: Pool::new(names.join(", "), "tally"),
            busiest: Mutex::new(None),
        }
    }

    /// The source and its state.
    pub(crate) fn source(&self) -> SourceDocument {
        self.pool.source()
    }

    fn read<R>(&self, work: impl Fn(&mut Reader) -> anyhow::Result<R>) -> anyhow::Result<R> {
        self.pool.with(|| Ok(Reader::open(&self.addresses)?), work)
    }

    /// Series by their number of requests in the last hour, then in the last day and year, each in descending order.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub(crate) fn busiest(&self, now: Seconds) -> anyhow::Result<Vec<Series>> {
        if let Some((read, series)) = &*lock(&self.busiest)
            && read.elapsed() < TAGS_KEPT
        {
            return Ok(series.clone());
        }
        let series = self.read(|reader| {
            let mut found: Vec<Series> = Vec::new();
            let spans = [
                (RollUpLevel::Minute, HOUR),
                (RollUpLevel::Hour, 24 * HOUR),
                (RollUpLevel::Day, 12 * MAX_MONTH),
            ];
            for (level, span) in spans {
                if found.len() >= MAX_OFFERED_TAGS {
                    break;
                }
                let top = reader.top(level, now - span, now + HOUR, MAX_OFFERED_TAGS)?;
                let new = top.into_iter().map(|(series, _)| series);
                let new: Vec<Series> = new.filter(|series| !found.contains(series)).collect();
                found.extend(new);
            }
            Ok(found)
        })?;
        *lock(&self.busiest) = Some((Instant::now(), series.clone()));
        Ok(series)
    }

    /// Lists all series.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub(crate) fn series(&self) -> anyhow::Result<Vec<Series>> {
        self.read(|reader| Ok(reader.series()?))
    }

    /// Roll-ups of a span, from the finest level that has few enough periods in it, or, if there are none, from the
    /// next coarser level that has some.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub(crate) fn rows(
        &self,
        selection: &Selection,
        from: Seconds,
        to: Seconds,
    ) -> anyhow::Result<Rows> {
        self.read(|reader| {
            let mut level = level_of(to - from);
            loop {
                let rows = rows_of(reader, selection, level, from, to)?;
                match level.coarser() {
                    Some(coarser) if rows.rows.is_empty() && level != RollUpLevel::Day => {
                        level = coarser
                    }
                    _ => return Ok(rows),
                }
            }
        })
    }

    /// Roll-ups of a level.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub(crate) fn rows_by(
        &self,
        selection: &Selection,
        level: RollUpLevel,
        spans: &[(Seconds, Seconds)],
    ) -> anyhow::Result<Rows> {
        self.read(|reader| {
            let mut all: Option<Rows> = None;
            for (from, to) in spans {
                let rows = rows_of(reader, selection, level, *from, *to)?;
                match &mut all {
                    Some(all) => all.rows.extend(rows.rows),
                    None => all = Some(rows),
                }
            }
            all.ok_or_else(|| anyhow::anyhow!("no span is given"))
        })
    }
}

fn rows_of(
    reader: &mut Reader,
    selection: &Selection,
    level: RollUpLevel,
    from: Seconds,
    to: Seconds,
) -> anyhow::Result<Rows> {
    let zone = reader.settings().zone.clone();
    // A period that has begun before holds a part of the span.
    let rows = reader.rows(selection, level, zone.start(level, from), to)?;
    Ok(Rows {
        level,
        bounds_ms: reader.settings().bounds.millis().to_vec(),
        zone,
        rows,
    })
}

/// The finest level of which a span has few enough periods.
fn level_of(span: Seconds) -> RollUpLevel {
    match span {
        span if span <= MAX_PERIODS * 60 => RollUpLevel::Minute,
        span if span <= MAX_PERIODS * HOUR => RollUpLevel::Hour,
        _ => RollUpLevel::Day,
    }
}

/// Usual length of a level's periods.
pub(crate) fn usual_length(level: RollUpLevel) -> Seconds {
    match level {
        RollUpLevel::Minute => 60,
        RollUpLevel::Hour => HOUR,
        RollUpLevel::Day => 24 * HOUR,
        RollUpLevel::Month => MAX_MONTH,
    }
}

impl Rows {
    /// Axis that covers a span, of at most the given number of slots, each of whole periods of the level.
    pub(crate) fn axis(&self, from: Seconds, to: Seconds, slots: usize) -> Axis {
        let (level, zone) = (self.level, &self.zone);
        let length = usual_length(level);
        let periods = usize::try_from((to - from) / length + 1).unwrap_or(1);
        let together = periods.div_ceil(slots.max(1)).max(1);
        if level == RollUpLevel::Minute {
            return Axis::uniform(from, to, length * together as i64);
        }
        let mut starts = Vec::new();
        let mut at = zone.start(level, from);
        while at < to {
            starts.push(at);
            for _ in 0..together {
                at = zone.next(level, at);
            }
        }
        Axis::of_starts(starts, at, length * together as i64)
    }

    /// The figures of each slot.
    pub(crate) fn figures(&self, axis: &Axis) -> ServiceFigures {
        let slots = axis.len();
        let mut merged: Vec<Option<RollUp>> = vec![None; slots];
        let mut spread = Spread::default();
        let length = usual_length(self.level) as f64;
        for row in &self.rows {
            let Some(slot) = axis.slot(row.start as f64) else {
                continue;
            };
            spread.add(slot, row, length);
            match &mut merged[slot] {
                Some(sum) => sum.merge(row),
                empty => *empty = Some(row.clone()),
            }
        }
        ServiceFigures {
            bounds_ms: self.bounds_ms.clone(),
            slots: merged,
            spread,
            lengths: lengths(axis),
        }
    }
}

fn lengths(axis: &Axis) -> Vec<f64> {
    let ends = axis.starts().iter().skip(1).copied();
    let ends = ends.chain(std::iter::once(axis.to()));
    let pairs = axis.starts().iter().zip(ends);
    pairs.map(|(start, end)| (end - start) as f64).collect()
}

/// Extremes of the periods of a slot.
#[derive(Default)]
struct Spread {
    rate: SlotFigures,
    p50: SlotFigures,
    p95: SlotFigures,
    p99: SlotFigures,
}

impl Spread {
    fn add(&mut self, slot: usize, row: &RollUp, length: f64) {
        self.rate.add(slot, Value::single(row.count / length), 1.0);
        for (share, gathered) in [
            (0.5, &mut self.p50),
            (0.95, &mut self.p95),
            (0.99, &mut self.p99),
        ] {
            let value = row.quantile(share).unwrap_or(f64::NAN);
            gathered.add(slot, Value::single(value), 1.0);
        }
    }
}

/// Response times by slot.
pub(crate) struct ServiceFigures {
    bounds_ms: Vec<f64>,
    slots: Vec<Option<RollUp>>,
    spread: Spread,
    lengths: Vec<f64>,
}

impl ServiceFigures {
    fn each(&self, of: impl Fn(&RollUp) -> Option<f64>) -> Vec<f64> {
        let value = |slot: &Option<RollUp>| slot.as_ref().and_then(&of).unwrap_or(f64::NAN);
        self.slots.iter().map(value).collect()
    }

    fn quantiles(&self, share: f64) -> Vec<f64> {
        self.each(|row| row.quantile(share))
    }

    /// Requests per second.
    pub(crate) fn requests_per_s(&self) -> Line {
        let counts = self.each(|row| Some(row.count));
        let pairs = counts.iter().zip(&self.lengths);
        // A slot without roll-ups had no requests; only future slots are unknown.
        let rates = pairs.map(|(count, length)| count / length);
        self.with_spread(&self.spread.rate, rates)
    }

    /// Percentile 50 or 95 of the response times, and 99 for any other number, in milliseconds.
    pub(crate) fn percentile(&self, percent: u8) -> Line {
        let (share, spread) = match percent {
            50 => (0.5, &self.spread.p50),
            95 => (0.95, &self.spread.p95),
            _ => (0.99, &self.spread.p99),
        };
        self.with_spread(spread, self.quantiles(share))
    }

    fn with_spread(&self, spread: &SlotFigures, means: impl IntoIterator<Item = f64>) -> Line {
        Line {
            mean: figures(means),
            ..spread.line(self.slots.len())
        }
    }

    /// Mean response time of each slot, in milliseconds.
    pub(crate) fn mean_ms(&self) -> Vec<f64> {
        self.each(|row| Some(row.values?.sum / row.count))
    }

    /// Maximum response time of each slot, in milliseconds.
    pub(crate) fn max_ms(&self) -> Vec<RoundedFigure> {
        figures(self.each(|row| Some(row.values?.max)))
    }

    /// Share of the requests in each class of response times.
    pub(crate) fn shares(&self) -> Vec<Vec<RoundedFigure>> {
        let classes = self.bounds_ms.len() + 1;
        let share = |class: usize| {
            self.each(|row| {
                let counts = &row.values?.classes[..classes];
                Some(counts[class] / counts.iter().sum::<f64>())
            })
        };
        (0..classes).map(|class| figures(share(class))).collect()
    }

    /// The service as a verdict sees it.
    pub(crate) fn evidence(&self) -> verdict::ServiceTimes {
        let above = |nth: usize| {
            self.each(|row| {
                let classes = &row.values?.classes;
                let all: f64 = classes.iter().sum();
                (all > 0.0).then(|| classes[nth + 1..].iter().sum::<f64>() / all)
            })
        };
        let bounds = self.bounds_ms.iter().enumerate();
        let requests = self.slots.iter();
        verdict::ServiceTimes {
            requests: requests
                .map(|slot| slot.as_ref().map_or(0.0, |row| row.count))
                .collect(),
            mean_ms: self.mean_ms(),
            p50_ms: self.quantiles(0.5),
            p95_ms: self.quantiles(0.95),
            p99_ms: self.quantiles(0.99),
            above: bounds
                .map(|(nth, bound)| (*bound, above(nth)))
                .filter(|(_, shares)| is_informative(shares))
                .collect(),
        }
    }
}

/// True if a share is not close to 0 in all slots, nor close to 1 in all slots. Each further figure that is compared
/// reduces the
/// significance of the others.
fn is_informative(shares: &[f64]) -> bool {
    const TOLERANCE: f64 = 0.002;
    let known = || shares.iter().filter(|share| share.is_finite());
    known().any(|share| *share > TOLERANCE) && known().any(|share| *share < 1.0 - TOLERANCE)
}

/// A series in the syntax of a selection: `api.get;host=a`.
pub(crate) fn written(series: &Series) -> String {
    let labels = series.labels.iter();
    let labels: String = labels
        .map(|(name, value)| format!(";{name}={value}"))
        .collect();
    format!("{}{labels}", series.tag)
}
