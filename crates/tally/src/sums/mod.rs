//! Sums in memory: for each tag and minute a count, and for values their sum, extremes, classes and histogram.
//!
//! The tables hold indexes into vectors, so that an event costs no allocation. An event in the same minute as the last
//! one of its tag, as nearly all are, costs one look-up: of the tag's last sum. Flushes bound the size of the sums.

mod buckets;
mod values;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher as _;
use std::ops::Range;

use crate::classes::ClassBounds;
use crate::event::{EventFigure, ParsedEvent, Rejection};
use crate::histogram;
use crate::level::{MINUTE, RollUpLevel, Seconds, Zone};

use buckets::Buckets;
pub use values::Values;

/// Index that means none.
const NO_INDEX: u32 = u32::MAX;

/// Sum of a tag in a period: half a cache line.
#[derive(Clone, Copy, Debug)]
struct Sum {
    start: Seconds,
    count: f64,
    tag: u32,
    name: Name,
    /// Index of its values, or [`NO_INDEX`].
    values: u32,
}

impl Sum {
    fn new(tag: u32, name: Name, start: Seconds) -> Sum {
        Sum {
            start,
            count: 0.0,
            tag,
            name,
            values: NO_INDEX,
        }
    }
}

/// Position of a tag's name in the names of all tags.
#[derive(Clone, Copy, Debug)]
struct Name {
    begin: u32,
    length: u32,
}

impl Name {
    fn of(self, names: &[u8]) -> &[u8] {
        &names[self.begin as usize..][..self.length as usize]
    }
}

/// Sums of a batch, to which events are added.
#[derive(Clone, Debug)]
pub struct Sums {
    bounds: ClassBounds,
    hasher: FixedState,
    names: Vec<u8>,
    sums: Vec<Sum>,
    /// The first sum of each tag.
    tags: Vec<u32>,
    /// The sum of each tag that was added to last.
    by_tag: HashTable<u32>,
    /// Indices of all sums but the first of each tag.
    by_start: HashTable<u32>,
    values: Vec<Values>,
    buckets: Buckets,
    events: u64,
}

impl Sums {
    /// Empty sums. Tags are hashed with a seed of this process's own, so that no client can choose tags that
    /// collide.
    pub fn new(bounds: ClassBounds) -> Sums {
        static SEED: std::sync::LazyLock<u64> =
            std::sync::LazyLock::new(|| std::hash::RandomState::new().hash_one(0_u8));
        Sums {
            bounds,
            hasher: FixedState::with_seed(*SEED),
            names: Vec::new(),
            sums: Vec::new(),
            tags: Vec::new(),
            by_tag: HashTable::new(),
            by_start: HashTable::new(),
            values: Vec::new(),
            buckets: Buckets::default(),
            events: 0,
        }
    }

    /// Removes all sums, and keeps the memory.
    pub fn clear(&mut self) {
        self.names.clear();
        self.sums.clear();
        self.tags.clear();
        self.by_tag.clear();
        self.by_start.clear();
        self.values.clear();
        self.buckets.clear();
        self.events = 0;
    }

    /// Number of sums: one for each tag and minute.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// True if there are no sums.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Number of events that were added.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Memory of the sums in bytes, without spare capacity.
    pub fn bytes(&self) -> usize {
        // A sum's index in one of the tables, and a tag's first sum.
        let indexes = 5 * self.sums.len() + 4 * self.tags.len();
        self.names.len()
            + self.sums.len() * size_of::<Sum>()
            + self.values.len() * size_of::<Values>()
            + self.buckets.bytes()
            + indexes
    }

    /// Adds an event; one without a time gets `now`.
    ///
    /// # Errors
    /// The reason why it is not counted.
    pub fn add(&mut self, event: &ParsedEvent<'_>, now: Seconds) -> Result<(), Rejection> {
        event.check()?;
        let at = event.at.unwrap_or(now);
        let sum = self.sum(event.tag, at - at.rem_euclid(MINUTE))?;
        self.sums[sum as usize].count += event.count;
        match event.figure {
            EventFigure::None => {}
            EventFigure::Time(value) => {
                let class = self.bounds.class(value);
                let values = self.values_of(sum);
                values.add(value, event.count);
                values.classes[class] += event.count;
                self.buckets.add(sum, histogram::bucket(value), event.count);
            }
            EventFigure::Gauge(value) => {
                let values = self.values_of(sum);
                values.add(value, event.count);
                values.last = Some(value);
            }
        }
        self.events += 1;
        Ok(())
    }

    /// Adds up the counts of equal buckets, so that there is one of each.
    pub fn settle(&mut self) {
        self.buckets.settle();
    }

    /// Index of a tag's sum in a period.
    fn sum(&mut self, tag: &[u8], start: Seconds) -> Result<u32, Rejection> {
        let hash = self.hasher.hash_one(tag);
        let (names, sums) = (&self.names, &self.sums);
        let same = |sum: &u32| sums[*sum as usize].name.of(names) == tag;
        let Some(last) = self.by_tag.find_mut(hash, same) else {
            return self.new_tag(tag, hash, start);
        };
        let found = &self.sums[*last as usize];
        if found.start != start {
            let first = self.tags[found.tag as usize];
            *last = of_period(&mut self.sums, &mut self.by_start, first, start);
        }
        Ok(*last)
    }

    /// Index of the first sum of a tag that has none.
    fn new_tag(&mut self, tag: &[u8], hash: u64, start: Seconds) -> Result<u32, Rejection> {
        // Once for each tag of a batch, and not for each event.
        let text = std::str::from_utf8(tag).map_err(|_| Rejection::TagText)?;
        if text.chars().any(char::is_control) {
            return Err(Rejection::TagText);
        }
        let name = Name {
            begin: self.names.len() as u32,
            length: tag.len() as u32,
        };
        self.names.extend_from_slice(tag);
        let first = self.sums.len() as u32;
        self.sums
            .push(Sum::new(self.tags.len() as u32, name, start));
        self.tags.push(first);
        let (names, sums, hasher) = (&self.names, &self.sums, &self.hasher);
        self.by_tag.insert_unique(hash, first, |sum| {
            hasher.hash_one(sums[*sum as usize].name.of(names))
        });
        Ok(first)
    }

    fn values_of(&mut self, sum: u32) -> &mut Values {
        let sum = &mut self.sums[sum as usize];
        if sum.values == NO_INDEX {
            sum.values = self.values.len() as u32;
            self.values.push(Values::EMPTY);
        }
        &mut self.values[sum.values as usize]
    }

    fn name(&self, tag: u32) -> &[u8] {
        let first = self.tags[tag as usize];
        self.sums[first as usize].name.of(&self.names)
    }

    /// Tags of the sums, by their index in [`Row::tag`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        // Each name was checked when it was first added.
        (0..self.tags.len() as u32)
            .map(|tag| std::str::from_utf8(self.name(tag)).unwrap_or_default())
    }

    /// All sums, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.sums.iter().map(|sum| Row {
            start: sum.start,
            tag: sum.tag,
            count: sum.count,
            values: self.values.get(sum.values as usize),
        })
    }

    /// All counts of buckets, in no particular order.
    pub fn buckets(&self) -> impl Iterator<Item = BucketRow> {
        self.buckets.iter().map(|(sum, bucket, count)| {
            let sum = &self.sums[sum as usize];
            BucketRow {
                start: sum.start,
                tag: sum.tag,
                bucket,
                count,
            }
        })
    }

    /// The `most` tags with the most events, and their counts.
    pub fn top(&self, most: usize) -> Vec<(String, f64)> {
        let mut counts = vec![0.0; self.tags.len()];
        for sum in &self.sums {
            counts[sum.tag as usize] += sum.count;
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

    /// Adds an existing sum: a count with its figures and its histogram.
    pub(crate) fn put(
        &mut self,
        tag: &str,
        start: Seconds,
        (count, values): (f64, Option<&Values>),
        buckets: &[(i16, f64)],
    ) {
        // A tag of a store was checked before.
        let Ok(sum) = self.sum(tag.as_bytes(), start) else {
            return;
        };
        self.sums[sum as usize].count += count;
        if let Some(values) = values {
            self.values_of(sum).merge(values);
        }
        for (bucket, count) in buckets {
            self.buckets.add(sum, *bucket, *count);
        }
    }

    /// The sums that begin in a range, as sums of a coarser level.
    pub fn coarser(&self, level: RollUpLevel, zone: &Zone, range: Range<Seconds>) -> Sums {
        let mut coarse = Sums::new(self.bounds.clone());
        let mut places = vec![NO_INDEX; self.sums.len()];
        let mut order: Vec<usize> = (0..self.sums.len()).collect();
        order.retain(|index| range.contains(&self.sums[*index].start));
        // The last value of a gauge is that of the last minute.
        order.sort_unstable_by_key(|index| self.sums[*index].start);
        for index in order {
            let sum = &self.sums[index];
            let start = zone.start(level, sum.start);
            let Ok(into) = coarse.sum(sum.name.of(&self.names), start) else {
                continue;
            };
            coarse.sums[into as usize].count += sum.count;
            if let Some(values) = self.values.get(sum.values as usize) {
                coarse.values_of(into).merge(values);
            }
            places[index] = into;
        }
        for (sum, bucket, count) in self.buckets.iter() {
            let into = places[sum as usize];
            if into != NO_INDEX {
                coarse.buckets.add(into, bucket, count);
            }
        }
        coarse.settle();
        coarse
    }
}

/// Index of a tag's sum in the period that begins at `start`, which is created if missing. `first` is the tag's first
/// sum.
fn of_period(
    sums: &mut Vec<Sum>,
    by_start: &mut HashTable<u32>,
    first: u32,
    start: Seconds,
) -> u32 {
    let Sum {
        start: at,
        tag,
        name,
        ..
    } = sums[first as usize];
    if at == start {
        return first;
    }
    let hash = mix(tag, start);
    let found = by_start.find(hash, |sum| {
        let sum = &sums[*sum as usize];
        (sum.tag, sum.start) == (tag, start)
    });
    if let Some(sum) = found {
        return *sum;
    }
    let made = sums.len() as u32;
    sums.push(Sum::new(tag, name, start));
    by_start.insert_unique(hash, made, |sum| {
        let sum = &sums[*sum as usize];
        mix(sum.tag, sum.start)
    });
    made
}

/// Hash of a tag and a period.
fn mix(tag: u32, start: Seconds) -> u64 {
    let (a, b) = (u64::from(tag), start.cast_unsigned());
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product >> 64) as u64 ^ product as u64
}

/// A sum as stores take it.
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

/// Count of a histogram's bucket. Before [`Sums::settle`], a bucket may appear several times.
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
mod tests;
