//! Counts of the buckets of all histograms of a batch.
//!
//! A count is appended; when many are pending, they are sorted and added up. So a response time touches the end of one
//! vector, however many histograms there are; a hash table would miss the processor's caches with each.

/// Minimum number of pending counts before they are settled: they fit the cache of one processor core.
const MIN_PENDING_COUNTS: usize = 1 << 15;
/// Counts are settled when this fraction (1/n) of the settled ones is pending, so that each is moved a bounded number
/// of times.
const PENDING_DIVISOR: usize = 4;

/// Counts of buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    /// Counts sorted by key, each key once.
    settled: Vec<Count>,
    /// Counts in the order in which they came.
    fresh: Vec<Count>,
    /// Buffer for the next settled counts.
    room: Vec<Count>,
}

/// Count of a sum's bucket.
#[derive(Clone, Copy, Debug)]
struct Count {
    key: Key,
    count: f64,
}

/// A sum and its bucket, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn new(sum: u32, bucket: i16) -> Key {
        // Moved up by half the range, so that negative buckets come first.
        Key(u64::from(sum) << 16 | u64::from(bucket.cast_unsigned() ^ 0x8000))
    }

    fn parts(self) -> (u32, i16) {
        (
            (self.0 >> 16) as u32,
            (self.0 as u16 ^ 0x8000).cast_signed(),
        )
    }
}

impl Buckets {
    /// Adds a count to a bucket of a sum's histogram.
    pub(super) fn add(&mut self, sum: u32, bucket: i16, count: f64) {
        let key = Key::new(sum, bucket);
        self.fresh.push(Count { key, count });
        if self.fresh.len() >= MIN_PENDING_COUNTS.max(self.settled.len() / PENDING_DIVISOR) {
            self.settle();
        }
    }

    /// Adds up the counts of equal buckets.
    pub(super) fn settle(&mut self) {
        self.fresh.sort_unstable_by_key(|one| one.key);
        self.room.clear();
        self.room.reserve(self.settled.len() + self.fresh.len());
        let mut settled = self.settled.iter().copied().peekable();
        for one in self.fresh.drain(..) {
            while let Some(before) = settled.next_if(|before| before.key <= one.key) {
                self.room.push(before);
            }
            match self.room.last_mut() {
                Some(last) if last.key == one.key => last.count += one.count,
                _ => self.room.push(one),
            }
        }
        self.room.extend(settled);
        std::mem::swap(&mut self.settled, &mut self.room);
    }

    /// All counts, as sum, bucket and count. A bucket with unsettled counts appears several times.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, i16, f64)> {
        self.settled.iter().chain(&self.fresh).map(|one| {
            let (sum, bucket) = one.key.parts();
            (sum, bucket, one.count)
        })
    }

    /// Memory of all counts in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.settled.len() + self.fresh.len()) * size_of::<Count>()
    }

    /// Removes all counts, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.settled.clear();
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn settled_counts_are_those_of_a_map(
            rounds in prop::collection::vec(prop::collection::vec((0_u32..3, any::<i16>(), 0_u8..9), 0..30), 0..4),
        ) {
            let (mut buckets, mut truth) = (Buckets::default(), BTreeMap::new());
            for round in rounds {
                for (sum, bucket, count) in round {
                    // Few different ones, so that some come again.
                    let bucket = bucket % 3;
                    buckets.add(sum, bucket, f64::from(count));
                    *truth.entry((sum, bucket)).or_insert(0.0) += f64::from(count);
                }
                buckets.settle();
                let found: Vec<_> = buckets.iter().map(|(sum, bucket, count)| ((sum, bucket), count)).collect();
                prop_assert_eq!(found, truth.clone().into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn many_counts_are_settled_while_they_come() {
        let mut buckets = Buckets::default();
        for count in 0..4 * MIN_PENDING_COUNTS {
            buckets.add(7, (count % 100) as i16, 1.0);
        }
        assert!(buckets.bytes() < 2 * MIN_PENDING_COUNTS * size_of::<Count>());
        assert_eq!(
            buckets.iter().map(|(_, _, count)| count).sum::<f64>(),
            4.0 * MIN_PENDING_COUNTS as f64
        );
    }
}
