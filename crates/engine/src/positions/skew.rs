//! Ranks drawn by Zipf's law, a power law or a bell curve.

use record::RandomDistribution;

use crate::random::Random;

/// Generator of ranks below a bound, of which 0 is the most frequent, or the middle for a bell curve.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SkewedRanks {
    Zipf(Zipf),
    /// The exponent applied to a uniform number, and the number of ranks.
    Pareto(f64, f64),
    Normal(BellCurve),
}

impl SkewedRanks {
    /// Ranks below `bound` for a skewed distribution; `None` for the others.
    pub(crate) fn of(spread: RandomDistribution, bound: u64) -> Option<SkewedRanks> {
        match spread {
            RandomDistribution::Uniform | RandomDistribution::Once => None,
            RandomDistribution::Normal(deviation) => {
                Some(SkewedRanks::Normal(BellCurve::new(deviation, bound)))
            }
            RandomDistribution::Zipf(theta) => Some(SkewedRanks::Zipf(Zipf::new(theta, bound))),
            // u^p < h where u < h^(1/p): with p = ln h / ln (1 - h) that is 1 - h of the draws.
            RandomDistribution::Pareto(h) => {
                Some(SkewedRanks::Pareto(h.ln() / (-h).ln_1p(), bound as f64))
            }
        }
    }

    /// The next rank.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            SkewedRanks::Zipf(zipf) => zipf.draw(random),
            SkewedRanks::Normal(bell) => bell.draw(random),
            SkewedRanks::Pareto(power, bound) => {
                let rank = (uniform(random).powf(*power) * bound) as u64;
                rank.min(*bound as u64 - 1)
            }
        }
    }
}

/// A number in [0, 1).
fn uniform(random: &mut Random) -> f64 {
    (random.next() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A bell curve as in fio (lib/gauss.c): the mean of twelve uniform numbers, and a uniform deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BellCurve {
    ranks: f64,
    /// Width of the deviation, in ranks.
    deviation: f64,
}

impl BellCurve {
    fn new(deviation: f64, ranks: u64) -> BellCurve {
        let ranks = ranks as f64;
        BellCurve {
            ranks,
            deviation: (ranks * deviation).ceil().min((ranks / 2.0).floor()),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        const NUMBERS: u32 = 12;
        let sum: f64 = (0..NUMBERS).map(|_| uniform(random)).sum();
        let mean = sum / f64::from(NUMBERS) * self.ranks;
        let mut deviation = (uniform(random) - 0.5) * self.deviation;
        while !(0.0..self.ranks).contains(&(mean + deviation)) {
            deviation /= 2.0;
        }
        ((mean + deviation) as u64).min(self.ranks as u64 - 1)
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, 1996): exact, and without a sum over
/// all ranks beforehand, which for a large device would take minutes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    ranks: f64,
    /// The area under the curve up to 1.5, less the first rank's own.
    first: f64,
    /// The area up to the last rank and a half.
    last: f64,
    /// Maximum distance above its rank at which a number is accepted without evaluating the area.
    sure: f64,
}

impl Zipf {
    fn new(theta: f64, ranks: u64) -> Zipf {
        let mut zipf = Zipf {
            theta,
            ranks: ranks as f64,
            first: 0.0,
            last: 0.0,
            sure: 0.0,
        };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.last = zipf.area(zipf.ranks + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    fn height(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The integral of the height from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.theta;
        (x.powf(power) - 1.0) / power
    }

    /// The `x` up to which the area is `area`.
    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.theta;
        // Rounding could otherwise give the root of a negative number.
        (area * power + 1.0).max(0.0).powf(1.0 / power)
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + uniform(random) * (self.first - self.last);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.ranks);
            if rank - x <= self.sure || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_ranks_have_the_frequencies_of_the_law() {
        for theta in [0.5, 0.99, 1.2, 2.0] {
            let skew = SkewedRanks::of(RandomDistribution::Zipf(theta), 20).unwrap();
            let mut random = Random::new(5);
            let mut seen = [0_u32; 20];
            for _ in 0..200_000 {
                seen[skew.draw(&mut random) as usize] += 1;
            }
            let all: f64 = (1..=20).map(|rank| f64::from(rank).powf(-theta)).sum();
            for (rank, seen) in seen.iter().enumerate() {
                let wanted = 2e5 * (rank as f64 + 1.0).powf(-theta) / all;
                // Five standard deviations of a Poisson count.
                let apart = (f64::from(*seen) - wanted).abs();
                assert!(
                    apart < 5.0 * wanted.sqrt() + 1.0,
                    "{theta} {rank}: {seen} {wanted}"
                );
            }
        }
    }

    #[test]
    fn pareto_gives_the_share_of_the_blocks_its_share_of_the_draws() {
        for h in [0.1, 0.2, 0.4] {
            let skew = SkewedRanks::of(RandomDistribution::Pareto(h), 100_000).unwrap();
            let mut random = Random::new(5);
            let below = (h * 1e5) as u64;
            let draws = (0..100_000).filter(|_| skew.draw(&mut random) < below);
            let share = draws.count() as f64 / 1e5;
            assert!((share - (1.0 - h)).abs() < 0.01, "{h}: {share}");
        }
    }

    /// The mean of twelve uniform numbers has a standard deviation of a twelfth of their range.
    #[test]
    fn a_bell_curve_has_two_thirds_within_its_deviation() {
        let share = |deviation: f64, width: u64| {
            let skew = SkewedRanks::of(RandomDistribution::Normal(deviation), 12_000).unwrap();
            let mut random = Random::new(5);
            let draws = (0..100_000).filter(|_| skew.draw(&mut random).abs_diff(6000) < width);
            draws.count() as f64 / 1e5
        };
        assert!((share(0.0, 1000) - 0.683).abs() < 0.01);
        // With a uniform deviation of ±3000 the total standard deviation is 2000.
        assert!((share(0.5, 2000) - 0.63).abs() < 0.03);
    }

    #[test]
    fn a_rank_is_never_past_the_last() {
        let mut random = Random::new(1);
        for bound in [1, 2, 3, 1 << 40] {
            for spread in [
                RandomDistribution::Zipf(0.3),
                RandomDistribution::Zipf(30.0),
                RandomDistribution::Pareto(0.9),
                RandomDistribution::Normal(0.9),
            ] {
                let skew = SkewedRanks::of(spread, bound).unwrap();
                assert!(
                    (0..1000).all(|_| skew.draw(&mut random) < bound),
                    "{spread:?} {bound}"
                );
            }
        }
    }
}
