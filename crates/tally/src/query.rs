//! Queries: tags with labels, and roll-ups of a tag over time. Several stores are read as one.
//!
//! ```no_run
//! # fn main() -> Result<(), tally::store::StoreError> {
//! use tally::level::RollUpLevel;
//! use tally::query::{Reader, Selection};
//! use tally::store::StoreAddress;
//!
//! let mut reader = Reader::open(&[StoreAddress::Sqlite("tally.db".into())])?;
//! for series in reader.series()? {
//!     println!("{} {:?}", series.tag, series.labels);
//! }
//! let selection: Selection = "api.get;host=a".parse().unwrap();
//! for row in reader.rows(&selection, RollUpLevel::Minute, 1_763_600_000, 1_763_603_600)? {
//!     println!("{} {} {:?}", row.start, row.count, row.histogram.quantile(0.99));
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::event::parts;
use crate::histogram::BucketCounts;
use crate::level::{MAX_TIME, MIN_TIME, RollUpLevel, Seconds};
use crate::store::{Archive, Result, Settings, StoreAddress, StoreError};
use crate::sums::Values;

/// A tag with its labels, as it is in a dictionary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// Tag of the series.
    pub tag: String,
    /// Labels of the series, by name.
    pub labels: BTreeMap<String, String>,
}

impl Series {
    pub(crate) fn of(name: &str) -> Series {
        let (tag, labels) = parts(name);
        Series {
            tag: tag.to_owned(),
            labels: labels
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }
}

/// A tag, and labels that a series must have: `api.get;host=a`. Series that differ in other labels are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(pub Series);

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Selection, String> {
        match text.is_empty() {
            true => Err("a tag has at least one character".to_owned()),
            false => Ok(Selection(Series::of(text))),
        }
    }
}

impl Selection {
    /// True if the series is selected.
    pub fn holds(&self, series: &Series) -> bool {
        let mut labels = self.0.labels.iter();
        series.tag == self.0.tag
            && labels.all(|(name, value)| series.labels.get(name) == Some(value))
    }
}

/// Roll-up of the selected series in one period.
#[derive(Clone, Debug, PartialEq)]
pub struct RollUp {
    /// Start of the period.
    pub start: Seconds,
    /// Number of events.
    pub count: f64,
    /// Figures of values; `None` if no event has a value.
    pub values: Option<Values>,
    /// Response times.
    pub histogram: BucketCounts,
}

impl RollUp {
    /// Roll-up of a period without events.
    pub fn empty(start: Seconds) -> RollUp {
        RollUp {
            start,
            count: 0.0,
            values: None,
            histogram: BucketCounts::default(),
        }
    }

    /// Adds a later roll-up, or one of other series.
    pub fn merge(&mut self, other: &RollUp) {
        self.count += other.count;
        self.add_values(other.values.as_ref());
        self.histogram.merge(&other.histogram);
    }

    fn add_values(&mut self, values: Option<&Values>) {
        if let Some(values) = values {
            self.values.get_or_insert(Values::EMPTY).merge(values);
        }
    }

    /// A percentile of the response times in ms, clamped to the smallest and the largest; `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let values = self.values.as_ref()?;
        let value = self.histogram.quantile(share)?;
        Some(value.clamp(values.min, values.max.max(values.min)))
    }
}

/// Stores that are read as one.
pub struct Reader {
    archives: Vec<Box<dyn Archive>>,
}

impl Reader {
    /// Opens the stores.
    ///
    /// # Errors
    /// Where one cannot be read, or their settings differ.
    pub fn open(addresses: &[StoreAddress]) -> Result<Reader> {
        let archives: Result<Vec<_>> = addresses.iter().map(StoreAddress::open_archive).collect();
        let archives = archives?;
        let settings: Vec<&Settings> = archives.iter().map(|archive| archive.settings()).collect();
        if settings.windows(2).any(|pair| !pair[0].is_like(pair[1])) {
            return Err(StoreError::refused(
                "these stores have other classes or another time zone, so that they cannot be read as one",
            ));
        }
        match archives.is_empty() {
            true => Err(StoreError::refused("no store is named")),
            false => Ok(Reader { archives }),
        }
    }

    /// Settings with which the stores were made.
    pub fn settings(&self) -> &Settings {
        self.archives[0].settings()
    }

    /// Reads each store in a snapshot, and releases it afterwards.
    fn each(&mut self, mut read: impl FnMut(&mut dyn Archive) -> Result<()>) -> Result<()> {
        for archive in &mut self.archives {
            archive.snapshot()?;
            let done = read(&mut **archive);
            archive.release();
            done?;
        }
        Ok(())
    }

    /// All series, in order.
    ///
    /// # Errors
    /// Where a store cannot be read.
    pub fn series(&mut self) -> Result<Vec<Series>> {
        let mut all = Vec::new();
        self.each(|archive| {
            let entries = archive.entries()?;
            all.extend(entries.iter().map(|entry| Series::of(&entry.name)));
            Ok(())
        })?;
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// The roll-ups of a selection whose periods begin in `[from, to)`. Periods without events are left out.
    ///
    /// # Errors
    /// Where a store cannot be read.
    pub fn rows(
        &mut self,
        selection: &Selection,
        level: RollUpLevel,
        from: Seconds,
        to: Seconds,
    ) -> Result<Vec<RollUp>> {
        let mut found = BTreeMap::new();
        self.each(|archive| {
            let entries = archive.entries()?;
            let chosen = entries
                .iter()
                .filter(|entry| selection.holds(&Series::of(&entry.name)));
            let tags: Vec<i64> = chosen.map(|entry| entry.id).collect();
            match tags.is_empty() {
                true => Ok(()),
                false => collect(archive, level, &tags, (from, to), level, &mut found),
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// The series with the most events in a level's finished periods that begin in `[from, to)`.
    ///
    /// # Errors
    /// Where a store cannot be read.
    pub fn top(
        &mut self,
        level: RollUpLevel,
        from: Seconds,
        to: Seconds,
        most: usize,
    ) -> Result<Vec<(Series, f64)>> {
        let mut sums: BTreeMap<Series, f64> = BTreeMap::new();
        self.each(|archive| {
            let entries = archive.entries()?;
            let names: BTreeMap<i64, &str> = entries
                .iter()
                .map(|entry| (entry.id, &*entry.name))
                .collect();
            for (tag, count) in archive.top(level, from, to, most)? {
                let name = names.get(&tag).copied().unwrap_or_default();
                *sums.entry(Series::of(name)).or_default() += count;
            }
            Ok(())
        })?;
        let mut sums: Vec<(Series, f64)> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        sums.truncate(most);
        Ok(sums)
    }
}

/// Adds the rows of `level` in a range to periods of the level `into`: rolled-up periods from the level's table, the
/// rest from the finer level.
fn collect(
    archive: &mut dyn Archive,
    level: RollUpLevel,
    tags: &[i64],
    (from, to): (Seconds, Seconds),
    into: RollUpLevel,
    found: &mut BTreeMap<Seconds, RollUp>,
) -> Result<()> {
    let (from, to) = (from.max(MIN_TIME), to.min(MAX_TIME));
    let zone = archive.settings().zone.clone();
    let rolled = match level.finer() {
        Some(_) => archive.watermark(level)?,
        None => Seconds::MAX,
    };
    let place = |found: &mut BTreeMap<Seconds, RollUp>, start: Seconds| {
        let start = zone.start(into, start);
        found.entry(start).or_insert_with(|| RollUp::empty(start));
        start
    };
    if let Some((first, last)) = archive.span(level)? {
        let (from, to) = (from.max(first), to.min(rolled).min(last.saturating_add(1)));
        let mut rows = match from < to {
            true => archive.rows(level, tags, from, to)?,
            false => Vec::new(),
        };
        // The last value of a gauge is that of the latest period.
        rows.sort_by_key(|row| row.start);
        for row in rows {
            let start = place(found, row.start);
            if let Some(entry) = found.get_mut(&start) {
                entry.count += row.count;
                entry.add_values(row.values.as_ref());
            }
        }
        let buckets = match from < to {
            true => archive.buckets(level, tags, from, to)?,
            false => Vec::new(),
        };
        for row in buckets {
            let start = place(found, row.start);
            if let Some(entry) = found.get_mut(&start) {
                entry.histogram.add(row.bucket, row.count);
            }
        }
    }
    match level.finer() {
        Some(finer) if rolled < to => {
            // The range in whole periods of `level`: from the first that begins in it, to the end of the last.
            let from = from.max(rolled);
            let first = zone.start(level, from);
            let from = if first < from && from != rolled {
                zone.next(level, from)
            } else {
                from
            };
            let last = zone.start(level, to - 1);
            collect(
                archive,
                finer,
                tags,
                (from, zone.next(level, last)),
                into,
                found,
            )
        }
        _ => Ok(()),
    }
}
