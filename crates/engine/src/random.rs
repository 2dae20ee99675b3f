//! Random numbers for the hot loop: xoshiro256++ (Blackman and Vigna, 2019), with one shift and two rotations
//! for each number, seeded by SplitMix64 as its authors advise.

use record::random::SplitMix64;
pub use record::random::derive_seed;

/// Generator of random numbers; each worker has its own.
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut seeds = SplitMix64::new(seed);
        Random {
            state: [(); 4].map(|()| seeds.bits()),
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, by multiply and shift (Lemire, 2019) instead of a division. Without
    /// its rejection step the most likely number is favoured by at most `bound / 2^64`.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed number with mean 1: the gap between Poisson arrivals.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 53 bits make a number in (0, 1]; its logarithm is finite.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_generator() {
        // Computed by hand from the published algorithm for the state 1, 2, 3, 4: the first output
        // is rotl(1 + 4, 23) + 1.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        assert_eq!(random.next(), (5 << 23) + 1);
        // s2 = 3^1 = 2, s3 = 4^2 = 6, s1 = 2^2 = 0, s0 = 1^6 = 7, s2 ^= 2 << 17, s3 = rotl(6, 45).
        assert_eq!(random.state, [7, 0, 2 ^ (2 << 17), 6 << 45]);
    }

    #[test]
    fn seeds_of_different_workers_give_different_numbers() {
        let mut first: Vec<u64> = (0..100)
            .flat_map(|phase| (0..10).map(move |worker| (phase, worker)))
            .map(|(phase, worker)| derive_seed(derive_seed(7, phase), worker))
            .map(|seed| Random::new(seed).next())
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 1000);
    }

    #[test]
    fn below_is_uniform() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        // Binomial: mean 10,000, deviation 95.
        assert!(
            counts.iter().all(|c| c.abs_diff(10_000) < 500),
            "{counts:?}"
        );
    }

    #[test]
    fn exponential_has_mean_and_deviation_one() {
        let mut random = Random::new(9);
        let draws: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(
            (mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }
}
