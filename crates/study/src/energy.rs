//! Energy distance between two samples (Székely and Rizzo, 2013): zero if their distributions are equal, and positive
//! for any difference of level, spread or shape. Its p comes from permutations of blocks, so that autocorrelation does
//! not look like a difference.

use record::random::SplitMix64;

/// Maximum number of permutations of a test; the smallest p is 1 / (n + 1).
const PERMUTATIONS: usize = 9999;
/// Number of permutations with a statistic at least as large after which a test ends: its p is then not small (Besag
/// and Clifford, 1991).
const MAX_LARGER_STATISTICS: usize = 20;
/// Minimum number of blocks of a series: with fewer there are too few permutations.
const MIN_BLOCKS: usize = 10;

/// Division of a series into the sample before and the sample after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleSplit {
    /// Index of the first value after the split.
    pub(crate) split: usize,
}

/// The smallest p that [`two_sample`] gives.
pub(crate) const MIN_P: f64 = 1.0 / (PERMUTATIONS + 1) as f64;

/// A series in the order of its values: on a line the energy distance is an integral over that order.
struct SortedSeries {
    /// Indices of the values, the smallest first.
    order: Vec<usize>,
    /// Distance of each value from the next.
    gaps: Vec<f64>,
}

impl SortedSeries {
    fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let pairs = order.windows(2);
        Self {
            gaps: pairs
                .map(|pair| values[pair[1]] - values[pair[0]])
                .collect(),
            order,
        }
    }

    /// The energy statistic: twice the squared difference of the distributions, integrated, times n m / (n + m).
    /// `is_before` gives the sample of each index.
    fn statistic(&self, is_before: &[bool]) -> f64 {
        let n = is_before.iter().filter(|before| **before).count() as f64;
        let m = is_before.len() as f64 - n;
        let (mut below, mut integral) = (0.0, 0.0);
        for (at, gap) in self.order.iter().zip(&self.gaps) {
            below += if is_before[*at] { 1.0 / n } else { -1.0 / m };
            integral += gap * below * below;
        }
        2.0 * integral * n * m / (n + m)
    }
}

/// Probability of an energy distance at least as large if both sides have the same distribution. 1 if a side is empty.
pub(crate) fn two_sample(values: &[f64], sides: SampleSplit) -> f64 {
    if sides.split == 0 || sides.split >= values.len() {
        return 1.0;
    }
    let sorted = SortedSeries::new(values);
    let mut is_before: Vec<bool> = (0..values.len()).map(|at| at < sides.split).collect();
    // Rounding must not make an equal statistic count as smaller.
    let seen = sorted.statistic(&is_before) * (1.0 - 1e-9) - 1e-12;
    let length = block_length(values, sides);
    let mut random = SplitMix64::new(values.len() as u64);
    let mut as_large = 0;
    for permutation in 1..=PERMUTATIONS {
        for (place, at) in shuffle_blocks(values.len(), length, &mut random).enumerate() {
            is_before[at] = place < sides.split;
        }
        as_large += usize::from(sorted.statistic(&is_before) >= seen);
        if as_large == MAX_LARGER_STATISTICS {
            return MAX_LARGER_STATISTICS as f64 / permutation as f64;
        }
    }
    (as_large + 1) as f64 / (PERMUTATIONS + 1) as f64
}

/// Length of the blocks within which values depend on each other, from the lag-1 autocorrelation around the level of
/// each side, corrected for the bias of a short series (Kendall, 1954).
pub(crate) fn block_length(values: &[f64], sides: SampleSplit) -> usize {
    let (before, after) = values.split_at(sides.split);
    let (mut products, mut squares) = (0.0, 0.0);
    for side in [before, after] {
        let mean = crate::noise::mean(side);
        squares += side.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let neighbours = side.windows(2);
        products += neighbours
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum::<f64>();
    }
    if squares <= 0.0 {
        return 1;
    }
    let count = values.len() as f64;
    let seen = products / squares;
    let memory = (seen + (1.0 + 3.0 * seen) / count).clamp(0.0, 0.95);
    let length = ((1.0 + memory) / (1.0 - memory)).round() as usize;
    length.clamp(1, (values.len() / MIN_BLOCKS).max(1))
}

/// Indices of a series cut into blocks at a random phase, in random order.
pub(crate) fn shuffle_blocks(
    count: usize,
    length: usize,
    random: &mut SplitMix64,
) -> impl Iterator<Item = usize> + use<> {
    let phase = random.below(length as u64) as usize;
    let starts = std::iter::once(0).chain((phase..count).step_by(length).filter(|at| *at > 0));
    let mut starts: Vec<usize> = starts.collect();
    starts.push(count);
    let mut blocks: Vec<(usize, usize)> = starts.windows(2).map(|w| (w[0], w[1])).collect();
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, random.below(at as u64 + 1) as usize);
    }
    blocks.into_iter().flat_map(|(from, to)| from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_of_two_points() {
        // 2 |0 - 3| less the distances within, which are none, times 1 · 1 / 2.
        let statistic = SortedSeries::new(&[0.0, 3.0]).statistic(&[true, false]);
        assert!((statistic - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_statistic_is_that_of_the_distances_of_all_pairs() {
        let values = [2.0, 9.0, 4.0, 4.0, 7.5, 1.0, 3.0];
        let (before, after) = values.split_at(3);
        let mean = |a: &[f64], b: &[f64]| {
            let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs()));
            pairs.sum::<f64>() / (a.len() * b.len()) as f64
        };
        let of_pairs =
            12.0 / 7.0 * (2.0 * mean(before, after) - mean(before, before) - mean(after, after));
        let is_before: Vec<bool> = (0..values.len()).map(|at| at < 3).collect();
        let statistic = SortedSeries::new(&values).statistic(&is_before);
        assert!(
            (statistic - of_pairs).abs() < 1e-12,
            "{statistic} {of_pairs}"
        );
    }

    #[test]
    fn blocks_keep_all_indices() {
        let mut random = SplitMix64::new(4);
        for length in [1, 2, 3, 7] {
            let mut order: Vec<usize> = shuffle_blocks(20, length, &mut random).collect();
            order.sort_unstable();
            assert_eq!(order, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_side_shows_nothing() {
        assert_eq!(two_sample(&[1.0, 2.0], SampleSplit { split: 0 }), 1.0);
        assert_eq!(two_sample(&[1.0, 2.0], SampleSplit { split: 2 }), 1.0);
    }

    #[test]
    fn blocks_are_longer_where_neighbours_resemble_each_other() {
        let alternating: Vec<f64> = (0..60).map(|t| f64::from(t % 2)).collect();
        let slow: Vec<f64> = (0..60).map(|t| f64::from(t / 6 % 2)).collect();
        assert_eq!(block_length(&alternating, SampleSplit { split: 30 }), 1);
        assert!(block_length(&slow, SampleSplit { split: 30 }) > 3);
    }
}
