//! Maps offsets of a trace to offsets on a target.

use record::{OffsetMap, ReplayCounts};

/// Initial unit of the map of accessed parts, as a power of two.
const MIN_UNIT_BITS: u32 = 16;
/// Maximum number of bits in the map of a device: 16 MiB of memory.
const MAX_MAP_BITS: u64 = 1 << 27;
/// Unit to which the target's size is rounded before offsets wrap, so that pages keep their alignment.
const WRAP_UNIT: u64 = 1 << 20;

/// The parts of a device that a trace accesses, as a bit map whose unit grows with the device.
#[derive(Clone, Debug)]
pub(crate) struct TouchedUnits {
    shift: u32,
    words: Vec<u64>,
}

impl Default for TouchedUnits {
    fn default() -> TouchedUnits {
        TouchedUnits {
            shift: MIN_UNIT_BITS,
            words: Vec::new(),
        }
    }
}

impl TouchedUnits {
    /// Adds the bytes from `start` to `end`, at least one.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        while (end - 1) >> self.shift >= MAX_MAP_BITS {
            self.coarsen();
        }
        let (first, last) = (start >> self.shift, (end - 1) >> self.shift);
        let needed = (last / 64 + 1) as usize;
        if self.words.len() < needed {
            self.words.resize(needed, 0);
        }
        for unit in first..=last {
            self.words[(unit / 64) as usize] |= 1 << (unit % 64);
        }
    }

    /// Doubles the unit.
    fn coarsen(&mut self) {
        self.shift += 1;
        let pair = |pair: &[u64]| {
            let half = |word: u64| {
                (0..32).fold(0, |bits, bit| {
                    bits | u64::from(word >> (2 * bit) & 3 != 0) << bit
                })
            };
            half(pair[0]) | half(pair.get(1).copied().unwrap_or(0)) << 32
        };
        self.words = self.words.chunks(2).map(pair).collect();
    }

    /// Total bytes of the accessed units.
    pub(crate) fn footprint(&self) -> u64 {
        let units: u64 = self
            .words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        units << self.shift
    }

    /// The map that places the accessed units next to each other, in order: sequential runs stay sequential, and each
    /// unit keeps an offset of its own, so that reuse of data stays the same.
    pub(crate) fn compact(&self) -> Compact {
        let mut sum = 0;
        let before = |word: &u64| {
            let before = sum;
            sum += u64::from(word.count_ones());
            before
        };
        let before = self.words.iter().map(before).collect();
        Compact {
            shift: self.shift,
            words: self.words.clone(),
            before,
            end: sum << self.shift,
        }
    }
}

/// Map of offsets that places the accessed units next to each other.
#[derive(Clone, Debug)]
pub(crate) struct Compact {
    shift: u32,
    words: Vec<u64>,
    /// Number of accessed units before each word of the bit map.
    before: Vec<u64>,
    /// Total bytes of all accessed units.
    end: u64,
}

impl Compact {
    /// Offset in the compact map: the number of accessed bytes before an offset.
    fn offset(&self, offset: u64) -> u64 {
        let unit = offset >> self.shift;
        let (word, bit) = ((unit / 64) as usize, unit % 64);
        let Some((bits, before)) = self.words.get(word).zip(self.before.get(word)) else {
            return self.end;
        };
        let rank = before + u64::from((bits & ((1 << bit) - 1)).count_ones());
        let within = match bits >> bit & 1 {
            1 => offset & ((1 << self.shift) - 1),
            _ => 0,
        };
        (rank << self.shift) + within
    }
}

/// Maps I/Os of one device to its target.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    /// Size of the target, a multiple of the alignment.
    size: u64,
    alignment: u64,
    /// Maximum bytes of a read or a write.
    longest: u64,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Exact,
    Wrap,
    Compact(Compact),
}

impl Placer {
    pub(crate) fn new(
        map: OffsetMap,
        touched: Option<&TouchedUnits>,
        size: u64,
        alignment: u64,
        longest: u64,
    ) -> Placer {
        let alignment = alignment.max(1);
        Placer {
            size: size - size % alignment,
            alignment,
            longest,
            rule: match (map, touched) {
                (OffsetMap::Compact, Some(touched)) => Rule::Compact(touched.compact()),
                (OffsetMap::Wrap, _) => Rule::Wrap,
                _ => Rule::Exact,
            },
        }
    }

    /// Offset and length on the target; `None` if the I/O lies beyond its end. Changes to the I/O are counted in
    /// `counts`.
    pub(crate) fn place(
        &self,
        offset: u64,
        length: u64,
        counts: &mut ReplayCounts,
    ) -> Option<(u64, u32)> {
        self.place_within(self.longest, offset, length, counts)
    }

    /// As `place`, for a discard, which needs no buffer and may have the maximum length of a request.
    pub(crate) fn place_discard(
        &self,
        offset: u64,
        length: u64,
        counts: &mut ReplayCounts,
    ) -> Option<(u64, u32)> {
        // Only whole blocks of the target, so that data next to the range is kept.
        let end = offset.saturating_add(length);
        let end = end - end % self.alignment;
        let start = offset.checked_next_multiple_of(self.alignment);
        let inner = start.map(|start| (start, end.saturating_sub(start)));
        let Some((start, inner)) = inner.filter(|(_, inner)| *inner > 0) else {
            counts.clipped += 1;
            return None;
        };
        let most = u64::from(u32::MAX);
        let shortened = counts.shortened + u64::from(inner < length);
        let place = self.place_within(most - most % self.alignment, start, inner, counts);
        counts.shortened = counts.shortened.max(shortened);
        place
    }

    fn place_within(
        &self,
        longest: u64,
        offset: u64,
        length: u64,
        counts: &mut ReplayCounts,
    ) -> Option<(u64, u32)> {
        let start = offset - offset % self.alignment;
        let end = offset.saturating_add(length.max(1));
        let end = end.checked_next_multiple_of(self.alignment);
        let Some(wide) = end.map(|end| end - start) else {
            counts.clipped += 1;
            return None;
        };
        let (place, there) = match &self.rule {
            Rule::Exact => (start, wide),
            Rule::Wrap => (self.wrapped(start, wide), wide),
            Rule::Compact(compact) => {
                // Parts of a discard that are neither read nor written are not in the compact map.
                let place = compact.offset(start);
                (place, compact.offset(start + wide) - place)
            }
        };
        if place >= self.size || there == 0 {
            counts.clipped += 1;
            return None;
        }
        let fits = there.min(self.size - place).min(longest);
        counts.shortened += u64::from(fits < wide);
        counts.widened += u64::from(wide > length);
        counts.remapped += u64::from(place != start);
        u32::try_from(fits).ok().map(|length| (place, length))
    }

    fn wrapped(&self, start: u64, wide: u64) -> u64 {
        if start + wide <= self.size {
            return start;
        }
        let unit = match self.size >= WRAP_UNIT {
            true => WRAP_UNIT.next_multiple_of(self.alignment),
            false => self.alignment,
        };
        let modulus = (self.size - self.size % unit).max(self.alignment);
        (start % modulus).min(self.size.saturating_sub(wide))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn placer(map: OffsetMap, touched: Option<&TouchedUnits>, size: u64) -> Placer {
        Placer::new(map, touched, size, 512, 64 << 20)
    }

    #[test]
    fn exact_clips_what_lies_beyond_and_shortens_what_reaches_over() {
        let mut counts = ReplayCounts::default();
        let place = placer(OffsetMap::Exact, None, 1 << 20);
        assert_eq!(place.place(0, 4096, &mut counts), Some((0, 4096)));
        assert_eq!(
            place.place((1 << 20) - 512, 4096, &mut counts),
            Some(((1 << 20) - 512, 512))
        );
        assert_eq!(place.place(1 << 20, 4096, &mut counts), None);
        assert_eq!(
            (counts.clipped, counts.shortened, counts.remapped),
            (1, 1, 0)
        );
    }

    #[test]
    fn what_no_device_can_hold_is_clipped() {
        let mut counts = ReplayCounts::default();
        for map in [OffsetMap::Exact, OffsetMap::Wrap] {
            let place = placer(map, None, 1 << 20);
            assert_eq!(place.place(u64::MAX - 100, 4096, &mut counts), None);
        }
        assert_eq!(counts.clipped, 2);
    }

    #[test]
    fn a_discard_of_untouched_parts_takes_nothing_of_what_lies_beside_them_in_a_compact_map() {
        let mut touched = TouchedUnits::default();
        touched.add(0, 4096);
        touched.add(1 << 20, (1 << 20) + 4096);
        let place = placer(OffsetMap::Compact, Some(&touched), 1 << 30);
        let mut counts = ReplayCounts::default();
        assert_eq!(place.place(128 << 10, 512 << 10, &mut counts), None);
        assert_eq!(counts.clipped, 1);
        let unit = 64 << 10;
        let whole = place.place(0, 16 << 20, &mut counts);
        assert_eq!(whole, Some((0, 2 * unit)));
    }

    #[test]
    fn a_larger_block_widens() {
        let mut counts = ReplayCounts::default();
        let place = Placer::new(OffsetMap::Exact, None, 1 << 20, 4096, 64 << 20);
        assert_eq!(place.place(512, 512, &mut counts), Some((0, 4096)));
        assert_eq!(place.place(4096, 4096, &mut counts), Some((4096, 4096)));
        assert_eq!(counts.widened, 1);
    }

    #[test]
    fn a_discard_takes_whole_blocks_only() {
        let mut counts = ReplayCounts::default();
        let place = Placer::new(OffsetMap::Exact, None, 1 << 20, 4096, 64 << 20);
        assert_eq!(place.place_discard(512, 3584, &mut counts), None);
        assert_eq!(counts.clipped, 1);
        let inner = place.place_discard(512, 12_288, &mut counts);
        assert_eq!(inner, Some((4096, 8192)));
        assert_eq!((counts.shortened, counts.widened), (1, 0));
        let end = place.place_discard((1 << 20) - 4096, 8192, &mut counts);
        assert_eq!(end, Some(((1 << 20) - 4096, 4096)));
        assert_eq!(counts.shortened, 2);
    }

    #[test]
    fn a_map_of_a_huge_device_stays_small_and_forgets_nothing() {
        let mut touched = TouchedUnits::default();
        touched.add(0, 1);
        touched.add(200 << 40, (200 << 40) + 4096);
        assert!(touched.words.len() as u64 * 64 <= MAX_MAP_BITS);
        let compact = touched.compact();
        assert_eq!(compact.offset(0), 0);
        assert_eq!(compact.offset(200 << 40), 1 << touched.shift);
        assert_eq!(touched.footprint(), 2 << touched.shift);
    }

    proptest! {
        /// For I/Os at any offsets: none exceeds the target, none is longer than recorded, runs and reuse are kept.
        #[test]
        fn places_lie_on_the_target(
            ios in prop::collection::vec((0_u64..1 << 36, 1_u64..2 << 20), 1..60),
            sectors in 8_u64..1 << 24,
        ) {
            let mut touched = TouchedUnits::default();
            for (offset, length) in &ios {
                touched.add(*offset, offset + length);
            }
            let size = sectors * 512;
            for map in [OffsetMap::Exact, OffsetMap::Wrap, OffsetMap::Compact] {
                let place = placer(map, Some(&touched), size);
                let mut counts = ReplayCounts::default();
                for (offset, length) in &ios {
                    let Some((at, len)) = place.place(*offset, *length, &mut counts) else {
                        prop_assert!(map != OffsetMap::Wrap);
                        continue;
                    };
                    prop_assert!(at + u64::from(len) <= size);
                    prop_assert!(at % 512 == 0 && len % 512 == 0);
                    prop_assert!(u64::from(len) <= length + 1023);
                }
            }
            let whole = placer(OffsetMap::Compact, Some(&touched), touched.footprint());
            let mut counts = ReplayCounts::default();
            let mut places = BTreeMap::new();
            for (offset, length) in &ios {
                let (at, len) = whole.place(*offset, *length, &mut counts).unwrap();
                let (next, _) = whole.place(offset + u64::from(len) - 512, 512, &mut counts).unwrap();
                prop_assert_eq!(at + u64::from(len) - 512, next, "a run is one run");
                prop_assert_eq!(at % 65536, (offset - offset % 512) % 65536, "alignment is kept");
                places.insert(offset / 65536, at / 65536);
            }
            prop_assert_eq!(counts.clipped, 0);
            prop_assert!(places.values().is_sorted_by(|one, next| one < next), "each unit has a place of its own");
        }
    }
}
