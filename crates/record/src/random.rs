//! Reproducible random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014).

/// Finalizer of SplitMix64: each bit of the input changes half of the output's bits on average.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed derived from `seed` for part `part`, unrelated to those of other parts, so that
/// neighbouring parts do not draw the same numbers one step apart.
#[inline]
pub fn derive_seed(seed: u64, part: u64) -> u64 {
    mix(seed ^ mix(part.wrapping_add(1)))
}

/// The SplitMix64 generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that gives the same numbers for the same seed.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// A generator for item `number` of those that share a seed, independent of the others.
    pub fn of(seed: u64, number: u64) -> SplitMix64 {
        SplitMix64(derive_seed(seed, number))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number between 0 and 1, neither included.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`, by multiply and shift (Lemire, 2019).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A normally distributed number with mean 0 and variance 1, by the Box-Muller transform (1958); its second number
    /// is discarded.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// A Poisson distributed number with this mean; above 100 by its normal approximation.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        if mean > 100.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let (mut count, mut time) = (0.0, self.exponential());
        while time < mean {
            count += 1.0;
            time += self.exponential();
        }
        count
    }

    /// A log-normal number with mean 1, whose logarithm has this standard deviation.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        (sigma * self.normal() - sigma * sigma / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_that_of_the_published_generator() {
        // The first outputs for the seed 1234567, as the reference implementation prints them.
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn log_normal_has_mean_one_and_its_sigma() {
        let mut random = SplitMix64::new(3);
        let draws: Vec<f64> = (0..200_000).map(|_| random.log_normal(0.3)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let log_variance =
            draws.iter().map(|x| (x.ln() + 0.045).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        assert!((log_variance.sqrt() - 0.3).abs() < 0.005, "{log_variance}");
    }

    #[test]
    fn neighbouring_generators_are_independent() {
        let first: Vec<u64> = (0..1000)
            .map(|n| SplitMix64::of(1, n).below(1000))
            .collect();
        let mean = first.iter().sum::<u64>() as f64 / 1000.0;
        // Uniform: the mean of 1,000 has a deviation of 9.
        assert!((mean - 500.0).abs() < 40.0, "{mean}");
    }
}
