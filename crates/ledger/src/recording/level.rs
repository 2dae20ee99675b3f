//! Quantizes whole numbers to levels: exact if they are small, and else in steps of a thousandth or less.
//!
//! A number below 2048 is its own level. Above, each doubling is divided into 1024 equal steps, and a number is rounded
//! to the nearest. So a number is read back with an error of at most half a step, 2^-11 of the number: 0.049 %. Levels
//! grow with the numbers, so that the difference of two levels is small if the numbers are close, whatever their size.

/// Steps of a doubling, as a power of two.
const STEPS: u32 = 10;
/// Numbers below this are exact.
pub(super) const EXACT_BELOW: u64 = 1 << (STEPS + 1);
/// The largest level.
const MAX_LEVEL: u64 = (53 << STEPS) + EXACT_BELOW;

/// Largest relative error of a number that is read back.
pub const MAX_RELATIVE_ERROR: f64 = 1.0 / EXACT_BELOW as f64;

/// The level of a number.
pub(super) fn of(number: u64) -> u32 {
    if number < EXACT_BELOW {
        return number as u32;
    }
    let shift = 63 - number.leading_zeros() - STEPS;
    let rounded = (u128::from(number) + (1 << (shift - 1))) >> shift;
    // Rounded up to the next doubling, it is that doubling's first level by the same sum.
    (shift << STEPS) + rounded as u32
}

/// The number of a level; `None` if no number has this level.
pub(super) fn number(level: u32) -> Option<u64> {
    let level = u64::from(level);
    if level < EXACT_BELOW {
        return Some(level);
    }
    if level > MAX_LEVEL {
        return None;
    }
    let shift = (level >> STEPS) - 1;
    let step = level - (shift << STEPS);
    let number = u128::from(step) << shift;
    Some(u64::try_from(number).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_exact_and_large_ones_stay_in_bounds() {
        for value in 0..EXACT_BELOW {
            assert_eq!(number(of(value)), Some(value));
        }
        assert_eq!(number(of(u64::MAX)), Some(u64::MAX));
        assert_eq!(number(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn no_number_comes_back_further_off_than_the_bound(value: u64, shift in 0..64_u32) {
            let value = value >> shift;
            let back = number(of(value)).unwrap();
            let off = value.abs_diff(back) as f64;
            prop_assert!(off <= value as f64 * MAX_RELATIVE_ERROR, "{} came back as {}", value, back);
        }

        #[test]
        fn levels_are_in_the_order_of_their_numbers(a: u64, b: u64, shift in 0..64_u32) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assert!(a > b || of(a) <= of(b));
        }
    }
}
