//! Tests of ranges against a model with one bit for each byte of a small disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

/// The size of the model's disk.
const SIZE: u64 = 96;

/// A set of bytes, one bit each.
type Bits = u128;

/// Arbitrary ranges: in any order, overlapping, touching, empty.
fn raw() -> impl Strategy<Value = Vec<Range<u64>>> {
    let range = (0..=SIZE, 0..=SIZE).prop_map(|(a, b)| a.min(b)..a.max(b));
    prop::collection::vec(range, 0..12)
}

fn bits_of(ranges: impl IntoIterator<Item = Range<u64>>) -> Bits {
    let bytes = ranges.into_iter().flatten();
    bytes.fold(0, |bits, byte| bits | 1 << byte)
}

/// The bits of a set, which must be in its canonical form.
fn bits(ranges: &Ranges) -> Bits {
    assert!(ranges.iter().all(|range| !range.is_empty()), "{ranges:?}");
    let apart = ranges.list.windows(2).all(|two| two[0].end < two[1].start);
    assert!(apart, "{ranges:?}");
    bits_of(ranges.iter())
}

#[test]
fn sets_extend_to_the_largest_64_bit_offset() {
    let all = Ranges::from(0..u64::MAX);
    let last = Ranges::from(u64::MAX - 1..u64::MAX);
    assert_eq!(all.total(), Bytes(u64::MAX));
    assert_eq!(all.subtract(&last).end(), u64::MAX - 1);
    assert_eq!(last.aligned(Bytes::mib(1), Bytes(u64::MAX)).end(), u64::MAX);
    assert_eq!(last.blocks(Bytes::mib(1)).count(), 1);
    assert_eq!(last.blocks(Bytes(1)).count(), 1);
    assert_eq!(Ranges::decode(&all.encode()), Ok(all));
}

#[test]
fn a_stored_set_of_blocks_is_small() {
    let block = Bytes::kib(512).0;
    let every_other: Ranges = (0..1000)
        .map(|n| n * 2 * block..(n * 2 + 1) * block)
        .collect();
    assert_eq!(every_other.count(), 1000);
    assert_eq!(every_other.encode().len(), 1 + 2 * 1000);
}

#[test]
fn invalid_ranges_are_refused() {
    for bytes in [
        &[][..],          // No unit.
        &[64],            // A unit beyond 64 bits.
        &[0, 1],          // No length.
        &[0, 1, 0],       // An empty range.
        &[0, 1, 1, 0, 1], // Two ranges that touch.
        &[63, 1, 1],      // An end beyond 64 bits.
        &[0, 0x80, 0x80], // An integer that does not end.
    ] {
        assert_eq!(Ranges::decode(bytes), Err(RangesError), "{bytes:?}");
    }
    let error = serde_json::from_str::<Ranges>("\"AAEA\"").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the stored ranges are damaged")
    );
}

proptest! {
    #[test]
    fn the_operations_are_those_of_bits(a in raw(), b in raw()) {
        let (x, y): (Ranges, Ranges) = (a.iter().cloned().collect(), b.iter().cloned().collect());
        let (m, n) = (bits_of(a), bits_of(b));
        prop_assert_eq!(bits(&x), m);
        prop_assert_eq!(bits(&x.union(&y)), m | n);
        prop_assert_eq!(bits(&x.intersect(&y)), m & n);
        prop_assert_eq!(bits(&x.subtract(&y)), m & !n);
        prop_assert_eq!(x.total().0, u64::from(m.count_ones()));
        prop_assert_eq!(x.is_empty(), m == 0);
        prop_assert_eq!(x.end(), u64::from(Bits::BITS - m.leading_zeros()));
        prop_assert_eq!(x == y, m == n);
    }

    #[test]
    fn inserting_one_by_one_is_collecting(ranges in raw()) {
        let mut one_by_one = Ranges::new();
        ranges.iter().for_each(|range| one_by_one.insert(range.clone()));
        bits(&one_by_one);
        prop_assert_eq!(one_by_one, ranges.into_iter().collect());
    }

    #[test]
    fn a_range_is_in_a_set_when_all_its_bits_are(
        ranges in raw(), start in 0..SIZE, length in 0..SIZE,
    ) {
        let set: Ranges = ranges.iter().cloned().collect();
        let range = start..(start + length).min(SIZE);
        let wanted = bits_of([range.clone()]);
        prop_assert_eq!(set.contains(&range), bits(&set) & wanted == wanted);
    }

    #[test]
    fn aligned_sets_are_all_blocks_that_contain_a_bit(
        ranges in raw(), block in 1_u64..20, len in 0..=SIZE,
    ) {
        let set: Ranges = ranges.iter().cloned().collect();
        let touched = (0..SIZE).filter(|byte| {
            let own = byte / block * block..(byte / block + 1) * block;
            *byte < len && own.into_iter().any(|byte| bits(&set) >> byte & 1 == 1)
        });
        let wanted = touched.fold(0, |bits, byte| bits | 1 << byte);
        prop_assert_eq!(bits(&set.aligned(Bytes(block), Bytes(len))), wanted);
    }

    #[test]
    fn blocks_are_the_set_cut_at_their_multiples(ranges in raw(), block in 1_u64..20) {
        let set: Ranges = ranges.into_iter().collect();
        let blocks: Vec<_> = set.blocks(Bytes(block)).collect();
        for one in &blocks {
            prop_assert!(!one.is_empty());
            prop_assert_eq!(one.start / block, (one.end - 1) / block);
        }
        let cut = |two: &[Range<u64>]| two[0].end == two[1].start && two[0].end.is_multiple_of(block);
        let apart = |two: &[Range<u64>]| two[0].end < two[1].start;
        let in_order = blocks.windows(2).all(|two| apart(two) || cut(two));
        prop_assert!(in_order);
        prop_assert_eq!(blocks.into_iter().collect::<Ranges>(), set);
    }

    #[test]
    fn the_compact_form_is_lossless(ranges in raw(), shift in 0..50) {
        let scaled = ranges.into_iter().map(|range| range.start << shift..range.end << shift);
        let set: Ranges = scaled.collect();
        let text = serde_json::to_string(&set).unwrap();
        prop_assert_eq!(serde_json::from_str::<Ranges>(&text).unwrap(), set);
    }

    #[test]
    fn ranges_decoded_from_noise_are_a_set(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(set) = Ranges::decode(&bytes) {
            prop_assert_eq!(Ranges::decode(&set.encode()), Ok(set));
        }
    }
}
