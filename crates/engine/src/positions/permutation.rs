//! A random order of numbers without a table. A Feistel network is a permutation for any round function (Luby and
//! Rackoff, 1988); cycle walking extends it to any length (Black and Rogaway, 2002).

/// A permutation of the numbers below a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    bound: u64,
    /// Bits in half a number.
    half: u32,
}

impl Permutation {
    /// A permutation of the numbers below `bound`.
    pub(crate) fn new(bound: u64) -> Permutation {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        Permutation {
            bound: bound.max(1),
            half: bits.div_ceil(2).max(1),
        }
    }

    /// Position of `number` in the order of `key`.
    pub(crate) fn position(&self, number: u64, key: u64) -> u64 {
        // The network has at most four times as many numbers, so that few steps are needed.
        let mut position = number;
        loop {
            position = self.mix(position, key);
            if position < self.bound {
                return position;
            }
        }
    }

    fn mix(&self, number: u64, key: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..4_u32 {
            let turned = crate::random::derive_seed(key.rotate_left(round * 16), right);
            (left, right) = (right, left ^ (turned & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_comes_once(bound in 1_u64..3000, key in any::<u64>()) {
            let permutation = Permutation::new(bound);
            let mut seen: Vec<u64> = (0..bound).map(|number| permutation.position(number, key)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..bound).collect::<Vec<_>>());
        }
    }

    #[test]
    fn orders_differ_and_neighbours_lie_apart() {
        let permutation = Permutation::new(1_000_000);
        let one: Vec<u64> = (0..1000)
            .map(|number| permutation.position(number, 1))
            .collect();
        let other: Vec<u64> = (0..1000)
            .map(|number| permutation.position(number, 2))
            .collect();
        assert_ne!(one, other);
        let steps = one.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
        let mean = steps.sum::<u64>() as f64 / 999.0;
        // Two positions drawn at random lie a third of the whole apart.
        assert!((mean - 333_333.0).abs() < 40_000.0, "{mean}");
    }
}
