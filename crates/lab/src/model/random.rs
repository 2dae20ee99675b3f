//! Random numbers: SplitMix64 (Steele, Lea and Flood, 2014), one multiply chain a number, and good
//! enough to draw latencies and places with.

/// A generator that repeats from its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Scrambles one number into another, all bits of it.
fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// A generator that begins at `seed`.
    pub fn new(seed: u64) -> Random {
        Random(scramble(seed))
    }

    /// A generator for one of many things that share a seed, each with numbers of its own.
    pub fn of(seed: u64, number: u64) -> Random {
        Random(scramble(seed ^ scramble(number.wrapping_add(1))))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// A number between 0 and 1, neither included.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`, by multiply and shift (Lemire, 2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A log-normal number with mean 1, whose logarithm has this standard deviation.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        // Box and Muller (1958); the second number is not worth keeping.
        let normal =
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
        (sigma * normal - sigma * sigma / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_has_mean_one_and_its_sigma() {
        let mut random = Random::new(3);
        let draws: Vec<f64> = (0..200_000).map(|_| random.log_normal(0.3)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let log_variance =
            draws.iter().map(|x| (x.ln() + 0.045).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        assert!((log_variance.sqrt() - 0.3).abs() < 0.005, "{log_variance}");
    }

    #[test]
    fn numbers_of_neighbours_have_nothing_in_common() {
        let first: Vec<u64> = (0..1000).map(|n| Random::of(1, n).below(1000)).collect();
        let mean = first.iter().sum::<u64>() as f64 / 1000.0;
        // Uniform: the mean of 1,000 has a deviation of 9.
        assert!((mean - 500.0).abs() < 40.0, "{mean}");
    }
}
