//! Sums in memory: for each tag and minute a count, and for values their sum, extremes, classes and histogram.
//!
//! The tables hold indexes into vectors, so that an event costs no allocation: one look-up of its tag, and one of its
//! minute unless it is the tag's last. What a batch holds is bounded by its flush, and so are these.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher as _;

use crate::classes::{Bounds, MOST_CLASSES};
use crate::event::{Event, Figure, Rejection};
use crate::histogram;
use crate::level::{Level, MINUTE, Seconds, Zone};

/// No index.
const NONE: u32 = u32::MAX;

/// Figures of a tag's values in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// Sum of values, each times its event's count.
    pub sum: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Last value of a gauge.
    pub last: Option<f64>,
    /// Response times by class.
    pub classes: [f64; MOST_CLASSES],
}

impl Values {
    /// No value.
    pub const EMPTY: Values = Values {
        sum: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        last: None,
        classes: [0.0; MOST_CLASSES],
    };

    fn add(&mut self, value: f64, count: f64) {
        self.sum += value * count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds those of a later time.
    pub fn merge(&mut self, later: &Values) {
        self.sum += later.sum;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.last = later.last.or(self.last);
        for (sum, more) in self.classes.iter_mut().zip(later.classes) {
            *sum += more;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Tag {
    begin: u32,
    length: u32,
    hash: u64,
    /// The cell that was added to last.
    cell: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    start: Seconds,
    tag: u32,
    /// Index of its values, or [`NONE`].
    values: u32,
    count: f64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    count: f64,
    cell: u32,
    index: i16,
}

/// Sums that are being made.
#[derive(Clone, Debug)]
pub struct Sums {
    bounds: Bounds,
    hasher: FixedState,
    names: Vec<u8>,
    tags: Vec<Tag>,
    by_name: HashTable<u32>,
    cells: Vec<Cell>,
    by_minute: HashTable<u32>,
    values: Vec<Values>,
    buckets: Vec<Bucket>,
    by_bucket: HashTable<u32>,
    events: u64,
}

fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product >> 64) as u64 ^ product as u64
}

impl Sums {
    /// No sums. Tags are hashed with a seed of this process's own, so that nobody can choose tags that collide.
    pub fn new(bounds: Bounds) -> Sums {
        static SEED: std::sync::LazyLock<u64> =
            std::sync::LazyLock::new(|| std::hash::RandomState::new().hash_one(0_u8));
        Sums {
            bounds,
            hasher: FixedState::with_seed(*SEED),
            names: Vec::new(),
            tags: Vec::new(),
            by_name: HashTable::new(),
            cells: Vec::new(),
            by_minute: HashTable::new(),
            values: Vec::new(),
            buckets: Vec::new(),
            by_bucket: HashTable::new(),
            events: 0,
        }
    }

    /// Forgets all sums, and keeps the memory.
    pub fn clear(&mut self) {
        self.names.clear();
        self.tags.clear();
        self.by_name.clear();
        self.cells.clear();
        self.by_minute.clear();
        self.values.clear();
        self.buckets.clear();
        self.by_bucket.clear();
        self.events = 0;
    }

    /// Number of sums: of different tags and minutes.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True without sums.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Number of events that were added.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that the sums take, without room to grow.
    pub fn bytes(&self) -> usize {
        let slots = 5 * (self.tags.len() + self.cells.len() + self.buckets.len());
        self.names.len()
            + self.tags.len() * size_of::<Tag>()
            + self.cells.len() * size_of::<Cell>()
            + self.values.len() * size_of::<Values>()
            + self.buckets.len() * size_of::<Bucket>()
            + slots
    }

    /// Adds an event; one without a time is of `now`.
    ///
    /// # Errors
    /// The reason for which it is not counted.
    pub fn add(&mut self, event: &Event<'_>, now: Seconds) -> Result<(), Rejection> {
        event.check()?;
        let at = event.at.unwrap_or(now);
        let tag = self.tag(event.tag)?;
        let cell = self.cell(tag, at - at.rem_euclid(MINUTE));
        self.cells[cell as usize].count += event.count;
        match event.figure {
            Figure::None => {}
            Figure::Time(value) => {
                let class = self.bounds.class(value);
                let values = self.values_of(cell);
                values.add(value, event.count);
                values.classes[class] += event.count;
                self.bucket(cell, histogram::bucket(value), event.count);
            }
            Figure::Gauge(value) => {
                let values = self.values_of(cell);
                values.add(value, event.count);
                values.last = Some(value);
            }
        }
        self.events += 1;
        Ok(())
    }

    fn name(&self, tag: u32) -> &[u8] {
        let tag = &self.tags[tag as usize];
        &self.names[tag.begin as usize..][..tag.length as usize]
    }

    fn tag(&mut self, name: &[u8]) -> Result<u32, Rejection> {
        let hash = self.hasher.hash_one(name);
        let same = |tag: &u32| {
            let entry = &self.tags[*tag as usize];
            entry.hash == hash && self.name(*tag) == name
        };
        if let Some(tag) = self.by_name.find(hash, same) {
            return Ok(*tag);
        }
        // Once for each tag of a batch, and not for each event.
        let text = std::str::from_utf8(name).map_err(|_| Rejection::TagText)?;
        if text.chars().any(char::is_control) {
            return Err(Rejection::TagText);
        }
        let tag = self.tags.len() as u32;
        self.tags.push(Tag {
            begin: self.names.len() as u32,
            length: name.len() as u32,
            hash,
            cell: NONE,
        });
        self.names.extend_from_slice(name);
        let tags = &self.tags;
        self.by_name
            .insert_unique(hash, tag, |tag| tags[*tag as usize].hash);
        Ok(tag)
    }

    fn cell(&mut self, tag: u32, start: Seconds) -> u32 {
        let last = self.tags[tag as usize].cell;
        if last != NONE && self.cells[last as usize].start == start {
            return last;
        }
        let hash = |tag: u32, start: Seconds| mix(u64::from(tag), start as u64);
        let cells = &self.cells;
        let key = hash(tag, start);
        let found = self.by_minute.find(key, |cell| {
            let cell = &cells[*cell as usize];
            cell.tag == tag && cell.start == start
        });
        let cell = found.copied().unwrap_or_else(|| {
            let cell = self.cells.len() as u32;
            self.cells.push(Cell {
                start,
                tag,
                values: NONE,
                count: 0.0,
            });
            let cells = &self.cells;
            self.by_minute.insert_unique(key, cell, |cell| {
                let cell = &cells[*cell as usize];
                hash(cell.tag, cell.start)
            });
            cell
        });
        self.tags[tag as usize].cell = cell;
        cell
    }

    fn values_of(&mut self, cell: u32) -> &mut Values {
        let cell = &mut self.cells[cell as usize];
        if cell.values == NONE {
            cell.values = self.values.len() as u32;
            self.values.push(Values::EMPTY);
        }
        &mut self.values[cell.values as usize]
    }

    fn bucket(&mut self, cell: u32, index: i16, count: f64) {
        let hash = |cell: u32, index: i16| mix(u64::from(cell), index as u64);
        let key = hash(cell, index);
        let buckets = &self.buckets;
        let found = self.by_bucket.find(key, |bucket| {
            let bucket = &buckets[*bucket as usize];
            bucket.cell == cell && bucket.index == index
        });
        if let Some(bucket) = found {
            self.buckets[*bucket as usize].count += count;
            return;
        }
        let bucket = self.buckets.len() as u32;
        self.buckets.push(Bucket { count, cell, index });
        let buckets = &self.buckets;
        self.by_bucket.insert_unique(key, bucket, |bucket| {
            let bucket = &buckets[*bucket as usize];
            hash(bucket.cell, bucket.index)
        });
    }

    /// Tags of the sums, by their index in [`Row::tag`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        // Checked where each was first seen.
        (0..self.tags.len() as u32)
            .map(|tag| std::str::from_utf8(self.name(tag)).unwrap_or_default())
    }

    /// All sums, in no order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.cells.iter().map(|cell| Row {
            start: cell.start,
            tag: cell.tag,
            count: cell.count,
            values: self.values.get(cell.values as usize),
        })
    }

    /// The tags with the most events.
    pub fn top(&self, most: usize) -> Vec<(String, f64)> {
        let mut counts = vec![0.0; self.tags.len()];
        for cell in &self.cells {
            counts[cell.tag as usize] += cell.count;
        }
        let mut order: Vec<u32> = (0..self.tags.len() as u32).collect();
        let count = |tag: &u32| counts[*tag as usize];
        let most = most.min(order.len());
        if most < order.len() {
            order.select_nth_unstable_by(most, |a, b| count(b).total_cmp(&count(a)));
            order.truncate(most);
        }
        order.sort_by(|a, b| count(b).total_cmp(&count(a)));
        let name = |tag: &u32| String::from_utf8_lossy(self.name(*tag)).into_owned();
        order.iter().map(|tag| (name(tag), count(tag))).collect()
    }

    /// All counts of buckets, in no order.
    pub fn buckets(&self) -> impl Iterator<Item = BucketRow> {
        self.buckets.iter().map(|bucket| {
            let cell = &self.cells[bucket.cell as usize];
            BucketRow {
                start: cell.start,
                tag: cell.tag,
                bucket: bucket.index,
                count: bucket.count,
            }
        })
    }

    /// The sums that begin before `before`, as sums of a coarser level.
    pub fn coarser(&self, level: Level, zone: &Zone, before: Seconds) -> Sums {
        let mut coarse = Sums::new(self.bounds.clone());
        let mut cells = vec![NONE; self.cells.len()];
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.retain(|index| self.cells[*index].start < before);
        // The last value of a gauge is that of the last minute.
        order.sort_unstable_by_key(|index| self.cells[*index].start);
        for index in order {
            let cell = &self.cells[index];
            let Ok(tag) = coarse.tag(self.name(cell.tag)) else {
                continue;
            };
            let into = coarse.cell(tag, zone.start(level, cell.start));
            coarse.cells[into as usize].count += cell.count;
            if let Some(values) = self.values.get(cell.values as usize) {
                coarse.values_of(into).merge(values);
            }
            cells[index] = into;
        }
        for bucket in &self.buckets {
            let into = cells[bucket.cell as usize];
            if into != NONE {
                coarse.bucket(into, bucket.index, bucket.count);
            }
        }
        coarse
    }
}

/// Sum of a tag in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Start of the period.
    pub start: Seconds,
    /// Index of the tag in [`Sums::names`].
    pub tag: u32,
    /// Number of events.
    pub count: f64,
    /// Figures of values, where there are any.
    pub values: Option<&'a Values>,
}

/// Count of a histogram's bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketRow {
    /// Start of the period.
    pub start: Seconds,
    /// Index of the tag in [`Sums::names`].
    pub tag: u32,
    /// Bucket of [`crate::histogram`].
    pub bucket: i16,
    /// Number of values.
    pub count: f64,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn event(tag: &str, at: Seconds, figure: Figure) -> Event<'_> {
        Event {
            tag: tag.as_bytes(),
            count: 1.0,
            at: Some(at),
            figure,
        }
    }

    #[test]
    fn an_event_that_cannot_be_summed_leaves_nothing() {
        let mut sums = Sums::new(Bounds::default());
        let long = "x".repeat(1 << 20);
        for (tag, at, figure, reason) in [
            ("", 0, Figure::None, Rejection::NoTag),
            (long.as_str(), 0, Figure::None, Rejection::LongTag),
            ("a\u{1b}[2J", 0, Figure::None, Rejection::TagText),
            ("a", 0, Figure::Time(f64::NAN), Rejection::NotSummable),
            ("a", 0, Figure::Gauge(f64::INFINITY), Rejection::NotSummable),
            ("a", 0, Figure::Gauge(-1e101), Rejection::NotSummable),
            ("a", 0, Figure::Time(-1.0), Rejection::NegativeTime),
            ("a", -1, Figure::None, Rejection::Time),
            ("a", i64::MAX, Figure::None, Rejection::Time),
        ] {
            assert_eq!(sums.add(&event(tag, at, figure), 0), Err(reason));
        }
        assert!(sums.is_empty() && sums.events() == 0);
    }

    #[test]
    fn a_gauge_keeps_its_last_value() {
        let mut sums = Sums::new(Bounds::default());
        for (at, value) in [(0, 5.0), (59, -3.0), (60, 1.0)] {
            sums.add(&event("g", at, Figure::Gauge(value)), 0).unwrap();
        }
        let hour = sums.coarser(Level::Hour, &Zone::utc(), Seconds::MAX);
        let values = hour.rows().next().unwrap().values.copied().unwrap();
        assert_eq!(
            (values.sum, values.min, values.max, values.last),
            (3.0, -3.0, 5.0, Some(1.0))
        );
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_plain_map(
            events in prop::collection::vec(("[a-c]{1,2}", 0_i64..10_000, 0_u16..3000), 0..200),
        ) {
            let mut sums = Sums::new(Bounds::default());
            let mut truth: BTreeMap<(String, i64), (f64, f64)> = BTreeMap::new();
            for (tag, at, value) in &events {
                let value = f64::from(*value);
                sums.add(&event(tag, *at, Figure::Time(value)), 0).unwrap();
                let place = truth.entry((tag.clone(), at / 60 * 60)).or_default();
                place.0 += 1.0;
                place.1 += value;
            }
            for (sums, level) in [
                (sums.clone(), Level::Minute),
                (sums.coarser(Level::Hour, &Zone::utc(), Seconds::MAX), Level::Hour),
            ] {
                let mut expected: BTreeMap<(String, i64), (f64, f64)> = BTreeMap::new();
                for ((tag, start), (count, sum)) in &truth {
                    let place = expected.entry((tag.clone(), Zone::utc().start(level, *start))).or_default();
                    place.0 += count;
                    place.1 += sum;
                }
                let names: Vec<&str> = sums.names().collect();
                let found: BTreeMap<(String, i64), (f64, f64)> = sums.rows()
                    .map(|row| ((names[row.tag as usize].to_owned(), row.start), (row.count, row.values.unwrap().sum)))
                    .collect();
                prop_assert_eq!(&found, &expected);
                let in_buckets: f64 = sums.buckets().map(|bucket| bucket.count).sum();
                let in_classes: f64 = sums.rows().flat_map(|row| row.values.unwrap().classes).sum();
                prop_assert_eq!(in_buckets, events.len() as f64);
                prop_assert_eq!(in_classes, events.len() as f64);
            }
        }
    }
}
