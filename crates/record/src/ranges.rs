//! Sets of byte offsets of a disk or file, stored as ranges.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Bytes;
use crate::varint::{put, take};

/// A set of bytes: non-empty ranges in ascending order that neither overlap nor touch.
///
/// Offsets are in bytes. Two sets are equal if they contain the same bytes. The highest offset that a set can contain
/// is `u64::MAX - 1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "String")
)]
pub struct Ranges {
    list: Vec<Range<u64>>,
}

impl Ranges {
    /// The empty set.
    pub const fn new() -> Ranges {
        Ranges { list: Vec::new() }
    }

    /// The bytes below `len`: all of a disk of that size.
    pub fn all(len: Bytes) -> Ranges {
        Ranges::from(0..len.0)
    }

    /// True if the set contains no byte.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Number of bytes.
    pub fn total(&self) -> Bytes {
        Bytes(self.list.iter().map(|range| range.end - range.start).sum())
    }

    /// End of its last range; 0 when empty.
    pub fn end(&self) -> u64 {
        self.list.last().map_or(0, |range| range.end)
    }

    /// Iterates over the ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.list.iter().cloned()
    }

    /// True if the set contains every byte of `range`; an empty range is in every set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let after = self.list.partition_point(|own| own.start <= range.start);
        after > 0 && range.end <= self.list[after - 1].end
    }

    /// Adds the bytes of `range`. Fast if it lies after all others.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // Ranges that it overlaps or touches are merged with it.
        let first = self.list.partition_point(|own| own.end < range.start);
        let after = self.list.partition_point(|own| own.start <= range.end);
        let start = self.list[first..after]
            .first()
            .map_or(range.start, |own| own.start.min(range.start));
        let end = self.list[first..after]
            .last()
            .map_or(range.end, |own| own.end.max(range.end));
        self.list.splice(first..after, std::iter::once(start..end));
    }

    /// Bytes in either.
    #[must_use]
    pub fn union(&self, other: &Ranges) -> Ranges {
        self.iter().chain(other.iter()).collect()
    }

    /// Bytes in both.
    #[must_use]
    pub fn intersect(&self, other: &Ranges) -> Ranges {
        let mut both = Vec::new();
        let (mut mine, mut theirs) = (self.list.iter().peekable(), other.list.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let shared = a.start.max(b.start)..a.end.min(b.end);
            // The range that ends first has no further overlap.
            if a.end <= b.end {
                mine.next();
            } else {
                theirs.next();
            }
            if !shared.is_empty() {
                both.push(shared);
            }
        }
        Ranges { list: both }
    }

    /// Bytes in this set and not in the other.
    #[must_use]
    pub fn subtract(&self, other: &Ranges) -> Ranges {
        self.intersect(&other.complement())
    }

    /// Bytes that are not in the set.
    fn complement(&self) -> Ranges {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        let mut at = 0;
        for range in &self.list {
            list.push(at..range.start);
            at = range.end;
        }
        list.push(at..u64::MAX);
        list.retain(|range| !range.is_empty());
        Ranges { list }
    }

    /// All blocks of `block` bytes of which the set contains a byte, without bytes at or after `len`: on a disk of that
    /// size the last block may be short. A block size of 0 counts as 1.
    #[must_use]
    pub fn aligned(&self, block: Bytes, len: Bytes) -> Ranges {
        let block = block.0.max(1);
        self.iter()
            .map(|range| {
                let end = range.end.checked_next_multiple_of(block);
                range.start / block * block..end.unwrap_or(u64::MAX).min(len.0)
            })
            .collect()
    }

    /// Iterates over the ranges, split at every multiple of `block`, in ascending order. Aligned ranges are split into
    /// whole blocks. A block size of 0 counts as 1.
    pub fn blocks(&self, block: Bytes) -> impl Iterator<Item = Range<u64>> + '_ {
        let block = block.0.max(1);
        self.list.iter().flat_map(move |range| {
            let end = range.end;
            let mut at = range.start;
            std::iter::from_fn(move || {
                let start = at;
                if start == end {
                    return None;
                }
                at = (start / block + 1).saturating_mul(block).min(end);
                Some(start..at)
            })
        })
    }

    /// A compact form. First the exponent of the power of two of which every start and end is a multiple; then, in that
    /// unit and as varints, for each range the distance from the end of the previous one and the length.
    pub fn encode(&self) -> Vec<u8> {
        let shift = self
            .list
            .iter()
            .fold(0, |all, range| all | range.start | range.end)
            .trailing_zeros()
            .min(63);
        let mut out = Vec::new();
        put(&mut out, shift);
        let mut last = 0;
        for range in &self.list {
            put(&mut out, (range.start - last) >> shift);
            put(&mut out, (range.end - range.start) >> shift);
            last = range.end;
        }
        out
    }

    /// Reads what [`encode`](Ranges::encode) wrote.
    ///
    /// # Errors
    /// When the bytes end early, or name ranges that no set can have.
    pub fn decode(bytes: &[u8]) -> Result<Ranges, RangesError> {
        let mut rest = bytes;
        let shift = take(&mut rest)
            .filter(|&shift| shift < 64)
            .ok_or(RangesError)?;
        let mut list: Vec<Range<u64>> = Vec::new();
        while !rest.is_empty() {
            let last = list.last().map(|range| range.end);
            let mut scaled = || take(&mut rest)?.checked_mul(1 << shift);
            let gap = scaled().ok_or(RangesError)?;
            let length = scaled().ok_or(RangesError)?;
            let start = last.unwrap_or(0).checked_add(gap).ok_or(RangesError)?;
            let end = start.checked_add(length).ok_or(RangesError)?;
            if length == 0 || (gap == 0 && last.is_some()) {
                return Err(RangesError);
            }
            list.push(start..end);
        }
        Ok(Ranges { list })
    }
}

impl From<Range<u64>> for Ranges {
    fn from(range: Range<u64>) -> Ranges {
        [range].into_iter().collect()
    }
}

impl FromIterator<Range<u64>> for Ranges {
    /// Collects ranges that may come in any order and overlap.
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(ranges: T) -> Ranges {
        let mut all: Vec<Range<u64>> = ranges.into_iter().filter(|one| !one.is_empty()).collect();
        // They are mostly in order, or consist of a few sorted runs, for which this sort is fast.
        all.sort_by_key(|range| range.start);
        all.dedup_by(|next, kept| {
            let joined = next.start <= kept.end;
            if joined {
                kept.end = kept.end.max(next.end);
            }
            joined
        });
        Ranges { list: all }
    }
}

/// Error: the stored form of a set of bytes is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored ranges are damaged")]
pub struct RangesError;

impl Serialize for Ranges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(self.encode()))
    }
}

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(serde::de::Error::custom)?;
        Ranges::decode(&bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
