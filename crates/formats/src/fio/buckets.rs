//! fio's latency buckets: values below `2^(bits + 1)` have one bucket each, and above that every power of two is
//! divided into `2^bits` equal parts (stat.c, `plat_val_to_idx` and `plat_idx_to_val`). fio writes the middle of a
//! bucket.

/// `FIO_IO_U_PLAT_BITS` of every fio up to now.
pub(crate) const BITS: u32 = 6;

/// The middle of bucket number `index`, as fio writes it. `None` beyond 64 bits.
pub(crate) fn middle(index: u64, bits: u32) -> Option<u64> {
    let parts = 1_u64.checked_shl(bits)?;
    if index < parts.checked_mul(2)? {
        return Some(index);
    }
    let shift = u32::try_from(index / parts - 1).ok()?;
    let low = (parts + index % parts).checked_mul(1_u64.checked_shl(shift)?)?;
    low.checked_add(1_u64 << (shift - 1))
}

/// The middle of the bucket that `value` falls into.
pub(crate) fn middle_of(value: u64) -> u64 {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(BITS);
    match shift {
        0 => value,
        _ => (value >> shift << shift) + (1 << (shift - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Buckets from the output of fio 3.33, which prints them by their middles.
    #[test]
    fn middles_are_those_that_fio_writes() {
        for written in [20864, 21376, 22144, 22912, 42240, 1_662_976, 11_337_728] {
            assert_eq!(middle_of(written), written);
        }
        assert_eq!(middle_of(40379), 40192);
        assert_eq!(middle(127, BITS), Some(127));
        assert_eq!(middle(128, BITS), Some(129));
        assert_eq!(middle(u64::MAX, BITS), None);
        assert_eq!(middle(5, 200), None);
    }

    proptest! {
        #[test]
        fn every_bucket_holds_its_own_middle(index in 0_u64..1856) {
            let value = middle(index, BITS).unwrap();
            prop_assert_eq!(middle_of(value), value);
        }

        #[test]
        fn a_middle_is_within_a_bucket_of_the_value(value in any::<u64>()) {
            let middle = middle_of(value);
            prop_assert!(middle.abs_diff(value) as f64 <= value as f64 / 128.0 + 0.5);
        }
    }
}
