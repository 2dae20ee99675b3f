//! Energy distance between two samples (Székely and Rizzo, 2013): zero where their distributions are equal, and
//! positive for any difference, of level, spread or shape. Its p comes from permutations of blocks, so that
//! neighbours that resemble each other do not look like a difference.

use record::random::SplitMix64;

/// Permutations of a test; the smallest p is one over one more.
const PERMUTATIONS: usize = 999;
/// Longest block as a share of the series: with fewer blocks than this there are too few permutations.
const LEAST_BLOCKS: usize = 10;

/// Division of a series into the sample before and the sample after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    /// Index of the first value after.
    pub(crate) split: usize,
}

/// Absolute differences of all pairs of a series, as sums over rectangles.
pub(crate) struct Distances {
    count: usize,
    of_pairs: Vec<f64>,
}

impl Distances {
    pub(crate) fn new(values: &[f64]) -> Self {
        let pairs = values
            .iter()
            .flat_map(|a| values.iter().map(move |b| (a - b).abs()));
        Self {
            count: values.len(),
            of_pairs: pairs.collect(),
        }
    }

    /// Difference of two values.
    pub(crate) fn between(&self, row: usize, column: usize) -> f64 {
        self.of_pairs[row * self.count + column]
    }

    /// The energy statistic of the values in `order` before and after a split.
    fn statistic(&self, order: &[usize], sides: Sides) -> f64 {
        let (before, after) = order.split_at(sides.split);
        let sum = |rows: &[usize], columns: &[usize]| -> f64 {
            let row = |at: &usize| {
                let row = &self.of_pairs[at * self.count..(at + 1) * self.count];
                columns.iter().map(|at| row[*at]).sum::<f64>()
            };
            rows.iter().map(row).sum()
        };
        let (n, m) = (before.len() as f64, after.len() as f64);
        let between = 2.0 * sum(before, after) / (n * m);
        let within = sum(before, before) / (n * n) + sum(after, after) / (m * m);
        n * m / (n + m) * (between - within)
    }
}

/// Probability of an energy distance as large where the two sides are of one distribution. 1 if a side is empty.
pub(crate) fn two_sample(values: &[f64], sides: Sides) -> f64 {
    if sides.split == 0 || sides.split >= values.len() {
        return 1.0;
    }
    let distances = Distances::new(values);
    let order: Vec<usize> = (0..values.len()).collect();
    let seen = distances.statistic(&order, sides);
    let length = block_length(values, sides);
    let mut random = SplitMix64::new(values.len() as u64);
    let as_large = (0..PERMUTATIONS).filter(|_| {
        let order = shuffle_blocks(values.len(), length, &mut random);
        // Rounding must not make an equal statistic a smaller one.
        distances.statistic(&order, sides) >= seen * (1.0 - 1e-9) - 1e-12
    });
    (as_large.count() + 1) as f64 / (PERMUTATIONS + 1) as f64
}

/// Length of the blocks within which values depend on each other: by the correlation of neighbours around the
/// level of their own side, corrected for the bias of a short series (Kendall, 1954).
pub(crate) fn block_length(values: &[f64], sides: Sides) -> usize {
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
    length.clamp(1, (values.len() / LEAST_BLOCKS).max(1))
}

/// Indices of a series cut into blocks at a random phase, in random order.
pub(crate) fn shuffle_blocks(count: usize, length: usize, random: &mut SplitMix64) -> Vec<usize> {
    let phase = random.below(length as u64) as usize;
    let starts = std::iter::once(0).chain((phase..count).step_by(length).filter(|at| *at > 0));
    let mut starts: Vec<usize> = starts.collect();
    starts.push(count);
    let mut blocks: Vec<(usize, usize)> = starts.windows(2).map(|w| (w[0], w[1])).collect();
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, random.below(at as u64 + 1) as usize);
    }
    blocks.into_iter().flat_map(|(from, to)| from..to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_of_two_points() {
        // 2 |0 - 3| less the distances within, which are none, times 1 · 1 / 2.
        let distances = Distances::new(&[0.0, 3.0]);
        let statistic = distances.statistic(&[0, 1], Sides { split: 1 });
        assert!((statistic - 3.0).abs() < 1e-12);
    }

    #[test]
    fn blocks_keep_all_indices() {
        let mut random = SplitMix64::new(4);
        for length in [1, 2, 3, 7] {
            let mut order = shuffle_blocks(20, length, &mut random);
            order.sort_unstable();
            assert_eq!(order, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_side_shows_nothing() {
        assert_eq!(two_sample(&[1.0, 2.0], Sides { split: 0 }), 1.0);
        assert_eq!(two_sample(&[1.0, 2.0], Sides { split: 2 }), 1.0);
    }

    #[test]
    fn blocks_are_longer_where_neighbours_resemble_each_other() {
        let alternating: Vec<f64> = (0..60).map(|t| f64::from(t % 2)).collect();
        let slow: Vec<f64> = (0..60).map(|t| f64::from(t / 6 % 2)).collect();
        assert_eq!(block_length(&alternating, Sides { split: 30 }), 1);
        assert!(block_length(&slow, Sides { split: 30 }) > 3);
    }
}
