//! The byte ranges of a volume that read back corrupted.

use std::collections::BTreeSet;

use record::Nanos;

use crate::model::Random;
use crate::spec::{SECTOR, Span, VolumeSpec};

/// Bits that are flipped in corrupt bytes: more than one, and never 0.
pub(super) const CHANGED_BITS: u8 = 0xa5;

/// The corrupt ranges. The lists are sorted, and the ranges of a list do not touch.
#[derive(Debug, Default)]
pub(super) struct CorruptRanges {
    /// Permanently corrupt ranges.
    lasting: Vec<Span>,
    /// Ranges that become corrupt at this time.
    pending: Option<(Nanos, Vec<Span>)>,
    /// Ranges that are corrupt until they are written again.
    transient: Vec<Span>,
    /// The union of both lists: a byte in both is flipped only once.
    bad: Vec<Span>,
}

impl CorruptRanges {
    pub(super) fn new(spec: &VolumeSpec, seed: u64) -> CorruptRanges {
        let mut places = spec.corruption.places.clone();
        places.extend(random_places(spec, seed));
        let mut ranges = CorruptRanges::default();
        match spec.corruption.after {
            _ if places.is_empty() => {}
            None => ranges.lasting = joined(places),
            Some(after) => ranges.pending = Some((after, places)),
        }
        ranges.refresh();
        ranges
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bad.is_empty() && self.pending.is_none()
    }

    /// Corrupts a range now.
    pub(super) fn add(&mut self, place: Span) {
        self.transient.push(place);
        self.refresh();
    }

    /// The ranges that are corrupt at this time.
    pub(super) fn places(&mut self, elapsed: Option<Nanos>) -> &[Span] {
        self.apply_due(elapsed);
        &self.bad
    }

    /// Flips the corrupt bytes in this buffer; true if there were any.
    pub(super) fn corrupt_reads(
        &mut self,
        buffer: &mut [u8],
        offset: u64,
        elapsed: Option<Nanos>,
    ) -> bool {
        self.apply_due(elapsed);
        let whole = Span {
            offset,
            length: buffer.len() as u64,
        };
        let mut changed = false;
        for part in overlapping(&self.bad, whole) {
            let from = (part.offset - offset) as usize;
            for byte in &mut buffer[from..from + part.length as usize] {
                *byte ^= CHANGED_BITS;
            }
            changed = true;
        }
        changed
    }

    /// Removes the corruption of written bytes, unless the range is permanently corrupt.
    pub(super) fn repair(&mut self, written: Span, elapsed: Option<Nanos>) {
        self.apply_due(elapsed);
        if overlapping(&self.transient, written).next().is_none() {
            return;
        }
        let around = |place: Span| {
            let before = Span {
                offset: place.offset,
                length: written
                    .offset
                    .saturating_sub(place.offset)
                    .min(place.length),
            };
            let after = place.end().saturating_sub(written.end()).min(place.length);
            let behind = Span {
                offset: place.end() - after,
                length: after,
            };
            [before, behind].into_iter().filter(|part| part.length > 0)
        };
        self.transient = self.transient.iter().copied().flat_map(around).collect();
        self.refresh();
    }

    /// Applies the corruption that is due by now.
    fn apply_due(&mut self, elapsed: Option<Nanos>) {
        let ripe = |after: Nanos| elapsed.is_some_and(|elapsed| after <= elapsed);
        if let Some((_, places)) = self.pending.take_if(|(after, _)| ripe(*after)) {
            self.transient.extend(places);
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        self.transient = joined(std::mem::take(&mut self.transient));
        self.bad = joined(
            self.lasting
                .iter()
                .chain(&self.transient)
                .copied()
                .collect(),
        );
    }
}

/// The same bytes as a sorted list with the minimum number of ranges.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let touches = next.offset <= kept.end();
        if touches {
            kept.length = kept.length.max(next.end() - kept.offset);
        }
        touches
    });
    spans
}

/// The parts of these sorted ranges that are in another range.
fn overlapping(spans: &[Span], within: Span) -> impl Iterator<Item = Span> {
    let first = spans.partition_point(|span| span.end() <= within.offset);
    spans[first..]
        .iter()
        .map_while(move |span| span.shared(within))
}

/// Different sectors, chosen by the seed.
fn random_places(spec: &VolumeSpec, seed: u64) -> impl Iterator<Item = Span> {
    let sectors = spec.size.0 / SECTOR.0;
    let mut random = Random::of(seed, u64::MAX - 3);
    let mut chosen = BTreeSet::new();
    let wanted = u64::from(spec.corruption.random_places).min(sectors / 2) as usize;
    while chosen.len() < wanted {
        chosen.insert(random.below(sectors));
    }
    chosen.into_iter().map(|sector| Span {
        offset: sector * SECTOR.0,
        length: SECTOR.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::VolumeGroup;

    fn ranges(what: &str) -> CorruptRanges {
        CorruptRanges::new(&what.parse::<VolumeGroup>().unwrap().spec, 1)
    }

    #[test]
    fn random_places_are_sectors_that_repeat() {
        let places = |seed| {
            let spec = "corrupt-places=20:1MiB"
                .parse::<VolumeGroup>()
                .unwrap()
                .spec;
            random_places(&spec, seed).collect::<Vec<_>>()
        };
        assert_eq!(places(1).len(), 20);
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
        assert!(
            places(1)
                .iter()
                .all(|p| p.offset % 512 == 0 && p.end() <= 1 << 20)
        );
    }

    #[test]
    fn places_that_overlap_are_changed_once() {
        let mut ranges = ranges("corrupt=0+4,corrupt=2+4:1MiB");
        ranges.add(Span {
            offset: 1,
            length: 9,
        });
        let mut buffer = [0; 12];
        assert!(ranges.corrupt_reads(&mut buffer, 0, Some(Nanos(0))));
        assert_eq!(buffer[..10], [CHANGED_BITS; 10]);
        assert_eq!(buffer[10..], [0; 2]);
        ranges.repair(
            Span {
                offset: 0,
                length: 12,
            },
            Some(Nanos(0)),
        );
        assert_eq!(
            ranges.places(Some(Nanos(0))),
            [Span {
                offset: 0,
                length: 6
            }]
        );
    }

    proptest::proptest! {
        /// The lists are compared byte by byte with a map of the bytes.
        #[test]
        fn it_is_a_set_of_bytes(
            steps in proptest::collection::vec((proptest::bool::ANY, 0_u64..40, 1_u64..12), 0..20),
        ) {
            let mut ranges = ranges("corrupt=5+3:1MiB");
            let mut map = [false; 64];
            for (adds, offset, length) in steps {
                let span = Span { offset, length };
                if adds { ranges.add(span) } else { ranges.repair(span, Some(Nanos(0))) }
                map[offset as usize..span.end() as usize].fill(adds);
            }
            map[5..8].fill(true);
            for from in [0, 3, 6, 30] {
                let mut buffer = vec![0; 64 - from];
                ranges.corrupt_reads(&mut buffer, from as u64, Some(Nanos(0)));
                let seen: Vec<bool> = buffer.iter().map(|byte| *byte == CHANGED_BITS).collect();
                assert_eq!(seen, map[from..]);
            }
        }
    }
}
