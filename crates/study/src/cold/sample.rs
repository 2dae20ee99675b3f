//! Conclusions from first reads at a few hundred random positions, each paired with a read of a warm position.

use super::Proportion;
use crate::distribution::{incomplete_beta, ln_gamma};
use crate::interval::Interval;

/// Minimum number of pairs for a conclusion.
pub const MIN_PAIRS: usize = 20;
/// Minimum number of values for a 95 % interval of their median.
const MIN_MEDIAN_VALUES: usize = 6;
/// Required evidence against chance: warm positions are judged to differ 1 time in 100.
const MIN_EVIDENCE: f64 = 100.0;
/// Maximum share of pairs on a calm disk in which the warm read is the slower one by the excess that makes a position
/// cold.
const CALM_SHARE: f64 = 0.02;
/// Minimum time to fetch a block from object storage, in seconds. A smaller excess of a first read is an empty cache
/// on the way to a warm position.
const FETCH_S: f64 = 0.01;

/// The latencies of two reads made at the same moment, in seconds. Which of them was issued first must have been
/// chosen at random: this makes [`assess`] exact even if the disk pauses now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Latency of the first read of a position since the volume was restored.
    pub first_s: f64,
    /// Latency of a read of a position known to be warm.
    pub warm_s: f64,
}

impl Pair {
    /// Latency of the first read less that of the warm one, in seconds; negative if the first was faster.
    fn excess_s(&self) -> f64 {
        self.first_s - self.warm_s
    }
}

/// Additional latency of a first read compared with a warm one at the same moment, for the positions judged cold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// The median in seconds, with the 95 % interval of its order statistics (David and Nagaraja
    /// 2003, section 7.1), which assumes nothing about the distribution. The `mean` of the interval
    /// is the median.
    pub median_s: Interval,
    /// The 95th percentile in seconds.
    pub p95_s: f64,
}

/// Estimates of a volume from sampled positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// True if first reads are significantly slower than warm ones (1 %).
    pub differs: bool,
    /// Share of all positions that is cold. Its lower bound is zero without a significant difference.
    pub cold: Proportion,
    /// For each pair, in order: true if its position is judged cold. On a busy disk some positions are misjudged; the
    /// share above corrects for that, so that the two may disagree.
    pub places: Vec<bool>,
    /// Mean additional latency of a cold first read in seconds, as a forecast adds it to a warm read: over the
    /// positions judged cold or, on a busy disk, the mean difference of all pairs divided by the cold share. `None`
    /// without a significant difference.
    pub mean_penalty_s: Option<f64>,
    /// Distribution of this additional latency. `None` without a significant difference, if too few positions are
    /// cold, and on a busy disk, where the positions judged cold are a selection of the slow ones.
    pub penalty: Option<Penalty>,
    /// The median of the warm reads in seconds.
    pub warm_s: f64,
}

/// Conclusions from the pairs. `None` with fewer than [`MIN_PAIRS`], or if a latency is not positive and finite.
///
/// The difference is tested by the signs of the differences in the order of their size: see `first_is_slower` in the
/// source. On a calm disk the cold positions are counted, less the number expected by chance. On a busy disk the share
/// of fast reads among the first reads is compared with that among the warm ones: warm positions have the same share
/// in both, cold positions have none among the first reads, so that the deficit is the cold share (the mixture
/// proportion of Blanchard, Lee and Scott 2010). If waits are several times the penalty, some cold reads are as fast
/// as the fast ones, and the share is underestimated.
///
/// A device that caches the data just read is faster the second time too. A position is therefore cold only if its
/// first read takes at least 10 ms more, as a fetch does, and at least twice as long as most warm reads. Smaller
/// differences are not used as evidence either.
pub fn assess(pairs: &[Pair]) -> Option<Sample> {
    let sensible = |latency: f64| latency > 0.0 && latency.is_finite();
    let all = pairs
        .iter()
        .all(|p| sensible(p.first_s) && sensible(p.warm_s));
    if pairs.len() < MIN_PAIRS || !all {
        return None;
    }
    let first = sorted(pairs.iter().map(|pair| pair.first_s));
    let warm = sorted(pairs.iter().map(|pair| pair.warm_s));
    let excess: Vec<f64> = pairs.iter().map(Pair::excess_s).collect();
    let warm_s = warm[warm.len() / 2];
    let least = least_s(warm_s);
    let threshold = threshold(&excess, least);
    let is_cold = |excess: &f64| threshold.is_some_and(|least| *excess >= least);
    let places: Vec<bool> = excess.iter().map(is_cold).collect();
    let penalties = sorted(excess.iter().copied().filter(is_cold));
    let cold_from = threshold.filter(|_| first_is_slower(&excess, least));
    let cold = match cold_from {
        Some(threshold) => cold_share(pairs, &first, &warm, threshold)?,
        None => perhaps_cold(pairs, &first, &warm, penalties.len())?,
    };
    Some(Sample {
        differs: cold_from.is_some(),
        cold,
        mean_penalty_s: cold_from.and_then(|from| {
            let beyond = ThresholdCounts::of(pairs, from, warm_s);
            if beyond.is_calm() {
                beyond.mean_s()
            } else {
                mean_penalty(&excess, cold.share)
            }
        }),
        penalty: cold_from
            .filter(|from| ThresholdCounts::of(pairs, *from, warm_s).has_hardly_chance())
            .and_then(|_| penalty(&penalties)),
        places,
        warm_s,
    })
}

/// Minimum excess of a cold place, on a volume with this latency of a warm read.
fn least_s(warm_s: f64) -> f64 {
    warm_s.max(FETCH_S)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The excess from which a position is judged cold; `None` if no threshold has fewer errors than judging all of them
/// warm.
///
/// A warm position exceeds a threshold upwards as often as downwards. Of the positions above it, the number below its
/// negative is therefore misjudged (Barber and Candès 2015 count false discoveries in this way); the threshold is the
/// one with the fewest errors, and at least `least`.
fn threshold(excess: &[f64], least: f64) -> Option<f64> {
    let mut best = (0, None);
    let mut score = 0;
    for value in by_size(excess).take_while(|value| value.abs() >= least) {
        score += if value > 0.0 { 1 } else { -2 };
        if score > best.0 {
            best = (score, Some(value));
        }
    }
    best.1
}

/// The values in descending order of their absolute value.
fn by_size(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut values = values.to_vec();
    values.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    values.into_iter()
}

/// True if significantly more of the large differences are positive.
///
/// If both reads are alike, the signs of the differences, in the order of their size, are those of a fair coin. A
/// gambler who bets on the first read being slower, with a probability drawn from a uniform prior between one half and
/// one, multiplies the stake by 100 at any moment in at most 1 of 100 games (Ville 1939). The game may be stopped at
/// its best moment, so that a few cold positions among many warm ones are detected. The test is exact for any
/// distribution of the latencies, also if all reads in flight pause together: within a pair, chance decides which read
/// is the first. Bets are only placed on differences of at least `least`.
fn first_is_slower(excess: &[f64], least: f64) -> bool {
    let (mut up, mut down) = (0.0, 0.0);
    let mut large = by_size(excess).take_while(|value| value.abs() >= least);
    large.any(|value| {
        *(if value > 0.0 { &mut up } else { &mut down }) += 1.0;
        ln_stake(up, down) >= f64::ln(MIN_EVIDENCE)
    })
}

/// The logarithm of the stake, initially one, after `up` wins and `down` losses: the integral of `2 (2 p)^up (2 (1 -
/// p))^down` over p from one half to one.
fn ln_stake(up: f64, down: f64) -> f64 {
    let ln_beta = ln_gamma(up + 1.0) + ln_gamma(down + 1.0) - ln_gamma(up + down + 2.0);
    // The share of the beta distribution above one half, by its symmetry.
    let above = incomplete_beta(down + 1.0, up + 1.0, 0.5);
    (up + down + 1.0) * std::f64::consts::LN_2 + ln_beta + above.ln()
}

/// Counts of pairs whose reads differ by at least a threshold.
struct ThresholdCounts {
    /// Number of pairs in which the first read was the slower one.
    above: usize,
    /// Number of pairs in which the warm read was the slower one, by chance.
    below: usize,
    /// Number of pairs that count, without those in which both reads were slow: a delay of the warm read hides the
    /// wait of the first one.
    all: usize,
    /// Sum of these differences, in seconds.
    sum_s: f64,
}

impl ThresholdCounts {
    /// Counts the pairs by `threshold`. `warm_s` is the latency of a warm read.
    fn of(pairs: &[Pair], threshold: f64, warm_s: f64) -> ThresholdCounts {
        let (mut above, mut below, mut hidden, mut sum_s) = (0, 0, 0, 0.0);
        for pair in pairs {
            let excess = pair.excess_s();
            if excess >= threshold {
                above += 1;
                sum_s += excess;
            } else if excess <= -threshold {
                below += 1;
                sum_s += excess;
            } else if pair.warm_s >= warm_s + threshold {
                hidden += 1;
            }
        }
        ThresholdCounts {
            above,
            below,
            all: pairs.len() - hidden,
            sum_s,
        }
    }

    /// True if few warm reads were this slow.
    fn is_calm(&self) -> bool {
        self.below as f64 <= CALM_SHARE * self.all as f64
    }

    /// True if few of the slower first reads can be so by chance.
    fn has_hardly_chance(&self) -> bool {
        self.below as f64 <= CALM_SHARE * self.above as f64
    }

    /// Share of the pairs in which the first read is slower, corrected for chance.
    fn share(&self) -> Option<Proportion> {
        let above = Proportion::of(self.above, self.all)?;
        Some(above.less(&Proportion::of(self.below, self.all)?))
    }

    /// Mean difference in seconds, corrected for chance.
    fn mean_s(&self) -> Option<f64> {
        let count = self
            .above
            .checked_sub(self.below)
            .filter(|count| *count > 0)?;
        Some(self.sum_s / count as f64).filter(|mean| *mean > 0.0)
    }
}

/// The cold share of a volume that differs, with `threshold` seconds of excess.
///
/// If few pairs exceed the threshold downwards, as many exceed it upwards by chance, and the rest are cold. Otherwise
/// the disk is busy, and many cold positions may be below the threshold; then the shares of fast reads are compared.
fn cold_share(pairs: &[Pair], first: &[f64], warm: &[f64], threshold: f64) -> Option<Proportion> {
    let beyond = ThresholdCounts::of(pairs, threshold, warm[warm.len() / 2]);
    if beyond.is_calm() {
        beyond.share()
    } else {
        missing(first, warm, fast_s(warm, threshold))
    }
}

/// Bounds of the cold share of a volume whose blocks do not differ: the lower bound is 0.
fn perhaps_cold(pairs: &[Pair], first: &[f64], warm: &[f64], taken: usize) -> Option<Proportion> {
    let calm = Proportion::of(taken, pairs.len())?;
    let warm_s = warm[warm.len() / 2];
    let high = if ThresholdCounts::of(pairs, least_s(warm_s), warm_s).is_calm() {
        calm.high
    } else {
        missing(first, warm, fast_s(warm, f64::INFINITY))
            .map_or(1.0, |share| share.high.max(calm.high))
    };
    Some(Proportion {
        low: 0.0,
        high,
        ..calm
    })
}

/// A latency below which there are few cold reads and many warm ones.
fn fast_s(warm: &[f64], threshold: f64) -> f64 {
    threshold.min(FETCH_S).max(warm[warm.len() / 4])
}

/// Relative deficit of reads of at most `fast_s` seconds among the sorted first reads, compared with the warm ones.
fn missing(first: &[f64], warm: &[f64], fast_s: f64) -> Option<Proportion> {
    let faster = |sorted: &[f64]| sorted.partition_point(|value| *value <= fast_s);
    let first = Proportion::of(faster(first), first.len())?;
    let unknown = Proportion {
        share: 0.5,
        low: 0.0,
        high: 1.0,
    };
    let warm = Proportion::of(faster(warm), warm.len())?;
    Some(first.missing_of(&warm).unwrap_or(unknown))
}

fn mean_penalty(excess: &[f64], share: f64) -> Option<f64> {
    let count = excess.len() as f64;
    let mean = excess.iter().map(|value| value / count).sum::<f64>() / share;
    (mean > 0.0 && mean.is_finite()).then_some(mean)
}

fn penalty(sorted: &[f64]) -> Option<Penalty> {
    let count = sorted.len();
    if count < MIN_MEDIAN_VALUES {
        return None;
    }
    // As many values as may be left out on either side: those below the median are a fair coin's.
    let tail = |below: usize| incomplete_beta((count - below) as f64, (below + 1) as f64, 0.5);
    let left_out = (0..count / 2)
        .take_while(|below| tail(*below) <= 0.025)
        .count();
    let at = left_out.checked_sub(1)?;
    Some(Penalty {
        median_s: Interval {
            mean: 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]),
            low: sorted[at],
            high: sorted[count - 1 - at],
        },
        p95_s: sorted[(count * 95).div_ceil(100) - 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(first: &[f64], warm_s: f64) -> Vec<Pair> {
        let pair = |first_s: &f64| Pair {
            first_s: *first_s,
            warm_s,
        };
        first.iter().map(pair).collect()
    }

    #[test]
    fn cold_places_are_named() {
        let mut first = vec![0.001; 100];
        first[10..30].fill(0.05);
        let got = assess(&pairs(&first, 0.001)).unwrap();
        let named: Vec<usize> = (0..100).filter(|at| got.places[*at]).collect();
        assert_eq!(named, (10..30).collect::<Vec<_>>());
        assert!(got.differs);
        assert_eq!(got.cold.share, 0.2);
        let penalty = got.penalty.unwrap();
        assert!((penalty.median_s.mean - 0.049).abs() < 1e-12);
        assert!((penalty.p95_s - 0.049).abs() < 1e-12);
        assert!((got.mean_penalty_s.unwrap() - 0.049).abs() < 1e-12);
        assert_eq!(got.warm_s, 0.001);
    }

    #[test]
    fn a_cache_hides_no_cold_places() {
        let pair = |index: u32, first_s| Pair {
            first_s,
            warm_s: 0.000_15 + f64::from(index) * 1e-8,
        };
        // 1 in 20 is cold, and all others come faster from a cache the second time.
        let of = |cold: u32| {
            let all = (0..400).map(|index| {
                let is_cold = cold > 0 && index % (400 / cold) == 0;
                pair(index, if is_cold { 0.04 } else { 0.000_5 })
            });
            assess(&all.collect::<Vec<_>>()).unwrap()
        };
        let got = of(20);
        assert!(got.differs && got.cold.low > 0.0, "{got:?}");
        assert_eq!(got.cold.share, 0.05);
        let median = got.penalty.unwrap().median_s.mean;
        assert!((0.039..0.04).contains(&median), "{median}");
        assert!((0.039..0.04).contains(&got.mean_penalty_s.unwrap()));
        for few in [0, 2] {
            let got = of(few);
            assert!(!got.differs && got.cold.low == 0.0, "{few}: {got:?}");
        }
    }

    #[test]
    fn three_slow_reads_are_no_proof() {
        let mut first = vec![0.001; 100];
        first[..3].fill(0.05);
        let got = assess(&pairs(&first, 0.001)).unwrap();
        assert!(!got.differs && got.penalty.is_none());
        assert_eq!((got.cold.share, got.cold.low), (0.03, 0.0));
    }

    #[test]
    fn a_little_faster_the_second_time_is_not_cold() {
        let got = assess(&pairs(&[0.0013; 100], 0.001)).unwrap();
        assert!(!got.differs && got.cold.share == 0.0);
    }

    #[test]
    fn the_median_has_the_ranks_of_the_tables() {
        // Of 30, fewer than ten below the median have a chance of 2.1 %, fewer than eleven 4.9 %.
        for (count, low, high) in [(30, 10.0, 21.0), (6, 1.0, 6.0)] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let got = penalty(&values).unwrap().median_s;
            assert_eq!((got.low, got.high), (low, high));
        }
        assert_eq!(penalty(&[1.0; 5]), None);
    }

    #[test]
    fn the_stake_is_that_of_the_integral() {
        // Nine wins: 2^10 / 10 of the integral from one half, less what is below.
        let nine = (1024.0 - 1.0) / 10.0;
        assert!((ln_stake(9.0, 0.0) - f64::ln(nine)).abs() < 1e-9);
        assert!((ln_stake(0.0, 0.0)).abs() < 1e-9);
        assert!(ln_stake(0.0, 5.0) < 0.0);
    }

    proptest! {
        #[test]
        fn any_input_is_answered_or_refused(
            latencies in prop::collection::vec((any::<f64>(), any::<f64>()), 0..60),
            small in prop::collection::vec((1u8..4, 1u8..4), 20..60),
        ) {
            let of = |(first_s, warm_s): &(f64, f64)| Pair { first_s: *first_s, warm_s: *warm_s };
            let wild: Vec<Pair> = latencies.iter().map(of).collect();
            let positive: Vec<Pair> = latencies.iter().map(|(a, b)| of(&(a.abs(), b.abs()))).collect();
            let tied: Vec<Pair> = small.iter().map(|(a, b)| of(&(f64::from(*a), f64::from(*b)))).collect();
            prop_assert!(assess(&tied).is_some());
            for pairs in [wild, positive, tied] {
                if let Some(got) = assess(&pairs) {
                    prop_assert_eq!(got.places.len(), pairs.len());
                    prop_assert!(got.cold.contains(got.cold.share));
                    prop_assert!(got.penalty.is_none_or(|p| p.median_s.contains(p.median_s.mean)));
                }
            }
        }
    }
}
