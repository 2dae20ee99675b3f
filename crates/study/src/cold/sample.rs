//! What two reads of a few hundred random places say.

use super::Proportion;
use crate::distribution::{incomplete_beta, ln_gamma};
use crate::interval::Interval;

/// Fewer pairs than this are not judged.
pub const LEAST_PAIRS: usize = 20;
/// The median of fewer values than this has no 95 % interval.
const LEAST_FOR_MEDIAN: usize = 6;
/// How often warm places may be taken for different by chance: 1 in 20.
const EVIDENCE: f64 = 20.0;
/// At most so many thresholds are tried; more change nothing.
const MOST_THRESHOLDS: usize = 200;

/// The latencies of two reads of the same place, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Of the first read since the volume was restored.
    pub first_s: f64,
    /// Of the second.
    pub second_s: f64,
}

impl Pair {
    /// How much longer the first read took, in seconds; negative where it was the faster one.
    fn excess_s(&self) -> f64 {
        self.first_s - self.second_s
    }
}

/// What a first read costs beyond a second one of the same place, of the places taken for cold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// The mean in seconds, which is what a forecast takes.
    pub mean_s: f64,
    /// The median in seconds, with the 95 % interval of its order statistics (David and Nagaraja
    /// 2003, section 7.1), which assumes nothing about the distribution. The `mean` of the interval
    /// is the median.
    pub median_s: Interval,
    /// The 95th percentile in seconds.
    pub p95_s: f64,
}

/// What is known of a volume from a sample of its places.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Whether first reads are slower than second ones beyond chance (5 %).
    pub differs: bool,
    /// The share of all places that is cold. Its lower bound is zero where nothing differs.
    pub cold: Proportion,
    /// Of each pair, in order, whether its place is taken for cold. On a busy disk single places are
    /// misjudged that the share above makes up for, so that the two need not agree.
    pub places: Vec<bool>,
    /// The cost of a first read. `None` where nothing differs or too few places are cold to tell.
    pub penalty: Option<Penalty>,
    /// The median of the second reads in seconds: what a warm read takes.
    pub warm_s: f64,
}

/// What the pairs say. `None` with fewer than [`LEAST_PAIRS`] and where a latency is not positive
/// and finite.
///
/// A volume is said to differ by a test of signs in the order of their size: see
/// [`first_is_slower`]. The cold share compares the share of first reads that are faster than a
/// threshold with that of second reads: warm places have both alike and cold places none of the
/// first, so that what is missing is cold (the mixture proportion of Blanchard, Lee and Scott 2010).
/// The threshold is the one that promises the largest lower bound.
///
/// A device that keeps what it has just read in a cache of its own is faster the second time too. A
/// place is therefore cold only if its first read takes at least twice as long as most second reads do,
/// and a volume whose cold places are none differs in nothing that warming could help.
pub fn assess(pairs: &[Pair]) -> Option<Sample> {
    let sensible = |latency: f64| latency > 0.0 && latency.is_finite();
    let all = pairs
        .iter()
        .all(|p| sensible(p.first_s) && sensible(p.second_s));
    if pairs.len() < LEAST_PAIRS || !all {
        return None;
    }
    let first = sorted(pairs.iter().map(|pair| pair.first_s));
    let second = sorted(pairs.iter().map(|pair| pair.second_s));
    let excess: Vec<f64> = pairs.iter().map(Pair::excess_s).collect();
    let threshold = threshold(&excess, second[second.len() / 4]);
    let is_cold = |excess: &f64| threshold.is_some_and(|least| *excess >= least);
    let places: Vec<bool> = excess.iter().map(is_cold).collect();
    let penalties = sorted(excess.iter().copied().filter(is_cold));
    let differs = !penalties.is_empty() && first_is_slower(&excess);
    Some(Sample {
        differs,
        cold: cold_share(&first, &second, &places, differs)?,
        penalty: if differs { penalty(&penalties) } else { None },
        places,
        warm_s: second[second.len() / 2],
    })
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The excess from which a place is taken for cold; `None` if no threshold does better than to call
/// all of them warm.
///
/// A warm place exceeds a threshold as often upwards as downwards. So of those above it as many as
/// are below its negative are taken for cold wrongly, and the others rightly (Barber and Candès
/// 2015 count false discoveries in this way); the threshold is the one with the fewest errors.
/// It is at least `least`.
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

/// The values from the largest to the smallest, whatever their sign.
fn by_size(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut values = values.to_vec();
    values.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    values.into_iter()
}

/// Whether more of the large differences are positive than chance would have it.
///
/// Where both reads are alike, the signs of the differences, taken in the order of their size, are
/// those of a fair coin. A gambler who bets on the first read being the slower one, with a share
/// that a uniform prior between one half and one spreads, does not multiply a stake by 20 at
/// any moment more often than once in 20 games (Ville 1939). So that few cold places among many warm
/// ones are seen the game may be stopped at its best moment. It is exact for any distribution of the latencies.
fn first_is_slower(excess: &[f64]) -> bool {
    let (mut up, mut down) = (0.0, 0.0);
    by_size(excess).filter(|value| *value != 0.0).any(|value| {
        *(if value > 0.0 { &mut up } else { &mut down }) += 1.0;
        ln_stake(up, down) >= f64::ln(EVIDENCE)
    })
}

/// The logarithm of what a stake of one has become after so many wins and losses: the integral of
/// `2 (2 p)^up (2 (1 - p))^down` over p from one half to one.
fn ln_stake(up: f64, down: f64) -> f64 {
    let ln_beta = ln_gamma(up + 1.0) + ln_gamma(down + 1.0) - ln_gamma(up + down + 2.0);
    // The share of the beta distribution above one half, by its symmetry.
    let above = incomplete_beta(down + 1.0, up + 1.0, 0.5);
    (up + down + 1.0) * std::f64::consts::LN_2 + ln_beta + above.ln()
}

/// The cold share from the sorted latencies. `None` is impossible with a pair.
fn cold_share(first: &[f64], second: &[f64], places: &[bool], differs: bool) -> Option<Proportion> {
    let count = first.len();
    let taken = Proportion::of(places.iter().filter(|cold| **cold).count(), count)?;
    if !differs {
        return Some(Proportion { low: 0.0, ..taken });
    }
    let step = count.div_ceil(MOST_THRESHOLDS);
    let missing = |at: usize| {
        let faster = |sorted: &[f64]| sorted.partition_point(|value| *value <= second[at]);
        let first = Proportion::of(faster(first), count)?;
        first.missing_of(&Proportion::of(faster(second), count)?)
    };
    let thresholds = (0..count).rev().step_by(step).filter_map(missing);
    thresholds.max_by(|a, b| a.low.total_cmp(&b.low))
}

fn penalty(sorted: &[f64]) -> Option<Penalty> {
    let count = sorted.len();
    if count < LEAST_FOR_MEDIAN {
        return None;
    }
    // As many values as may be left out on either side: those below the median are a fair coin's.
    let tail = |below: usize| incomplete_beta((count - below) as f64, (below + 1) as f64, 0.5);
    let left_out = (0..count / 2)
        .take_while(|below| tail(*below) <= 0.025)
        .count();
    let at = left_out.checked_sub(1)?;
    let mean_s = sorted.iter().map(|value| value / count as f64).sum();
    Some(Penalty {
        mean_s,
        median_s: Interval {
            mean: 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]),
            low: sorted[at],
            high: sorted[count - 1 - at],
        },
        p95_s: sorted[(count * 95).div_ceil(100) - 1],
    })
}
