//! Moments at which a series changed: E-divisive (Matteson and James, 2014), which finds any change of distribution,
//! any number of changes, and their positions.
//!
//! It uses ranks, and no segment is shorter than [`MIN_STRETCH_SLOTS`]: a single spike is no change. Permutations of
//! blocks give the significance, and a change must also exceed the jumps of autocorrelated noise.

use std::ops::Range;

use record::random::SplitMix64;

use crate::energy::{SampleSplit, block_length, shuffle_blocks};
use crate::shift::{MIN_SLOTS, jump_tail, ranks};

/// Minimum length of a segment between two changes, in slots: a shorter one could not be compared ([`MIN_SLOTS`], and
/// one slot for the change itself), and would separate a change from the values that it is compared with.
pub const MIN_STRETCH_SLOTS: usize = MIN_SLOTS + 1;

/// Number of permutations of one test: a p of 0.01 needs at least 99.
const PERMUTATIONS: usize = 199;
/// Maximum p of a change by permutations.
const LEVEL: f64 = 0.01;
/// Maximum p of a jump under autocorrelated noise. It is small, because the position was chosen to make the change
/// large.
const JUMP_LEVEL: f64 = 1e-4;
/// Maximum distance of the jump from the largest energy statistic, in slots.
const MAX_MISS_SLOTS: usize = 3;

/// A change of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first slot after the change.
    pub at: usize,
    /// Probability of as large a jump there under noise with the memory of the series.
    pub p: f64,
}

/// Changes of `values`, in order.
///
/// For series of up to some hundred values; the run time grows with the square of the length. Values that are not
/// finite count as zero. Empty for less than two segments.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let series = SeriesForms::new(values);
    let mut found = Vec::new();
    let mut open: Vec<Range<usize>> = std::iter::once(0..values.len()).collect();
    let mut random = SplitMix64::new(values.len() as u64);
    while let Some(stretch) = open.pop() {
        if let Some(change) = series.change_within(&stretch, &mut random) {
            let at = stretch.start + change.at;
            found.push(ChangePoint { at, ..change });
            open.push(stretch.start..at);
            open.push(at..stretch.end);
        }
    }
    found.sort_unstable_by_key(|change| change.at);
    found
}

/// A series in the forms used for comparison.
struct SeriesForms {
    ranks: Vec<f64>,
    /// Logarithms, if all values have one: ranks do not distinguish a jump far beyond the noise from one just beyond
    /// it.
    logs: Option<Vec<f64>>,
}

impl SeriesForms {
    fn new(values: &[f64]) -> Self {
        let finite = |x: &f64| if x.is_finite() { *x } else { 0.0 };
        let values: Vec<f64> = values.iter().map(finite).collect();
        let is_positive = values.iter().all(|x| *x > 0.0);
        Self {
            ranks: ranks(&values),
            logs: is_positive.then(|| values.iter().map(|x| x.ln()).collect()),
        }
    }

    /// The most likely change of one stretch, if it is one; its position counts from the start of the stretch.
    fn change_within(
        &self,
        stretch: &Range<usize>,
        random: &mut SplitMix64,
    ) -> Option<ChangePoint> {
        let values = &self.ranks[stretch.clone()];
        if values.len() < 2 * MIN_STRETCH_SLOTS {
            return None;
        }
        let order: Vec<usize> = (0..values.len()).collect();
        let best = best_split(values, &order)?;
        let jump = self.jump(stretch.start, &best);
        if jump.p > JUMP_LEVEL {
            return None;
        }
        let around = &values[..best.end];
        let length = block_length(around, SampleSplit { split: best.at });
        let as_large = (0..PERMUTATIONS).filter(|_| {
            let order: Vec<usize> = shuffle_blocks(values.len(), length, random).collect();
            best_split(values, &order).is_some_and(|other| other.statistic >= best.statistic)
        });
        let p = (as_large.count() + 1) as f64 / (PERMUTATIONS + 1) as f64;
        (p <= LEVEL).then_some(jump)
    }

    /// The largest jump at or near a split of the stretch that begins at `start`.
    fn jump(&self, start: usize, split: &Split) -> ChangePoint {
        let first = split
            .at
            .saturating_sub(MAX_MISS_SLOTS)
            .max(MIN_STRETCH_SLOTS);
        let last = (split.at + MAX_MISS_SLOTS).min(split.end - MIN_STRETCH_SLOTS);
        let stretch = start..start + split.end;
        let forms = std::iter::once(&self.ranks).chain(&self.logs);
        let jumps = forms.flat_map(|form| {
            let values = &form[stretch.clone()];
            (first..=last).map(|at| ChangePoint {
                at,
                p: jump_tail(values, at),
            })
        });
        let none = ChangePoint {
            at: split.at,
            p: 1.0,
        };
        jumps.fold(none, |best, jump| if jump.p < best.p { jump } else { best })
    }
}

/// A split of a stretch, with the energy statistic between the values before it and those from it to an end.
struct Split {
    at: usize,
    end: usize,
    statistic: f64,
}

/// The split with the largest energy statistic, over all positions and all ends of the values that follow.
fn best_split(values: &[f64], order: &[usize]) -> Option<Split> {
    let permuted: Vec<f64> = order.iter().map(|at| values[*at]).collect();
    let sums = Sums::new(&permuted);
    let mut best: Option<Split> = None;
    for at in MIN_STRETCH_SLOTS..=values.len() - MIN_STRETCH_SLOTS {
        for end in at + MIN_STRETCH_SLOTS..=values.len() {
            let statistic = sums.statistic(at, end);
            if best.as_ref().is_none_or(|best| statistic > best.statistic) {
                best = Some(Split { at, end, statistic });
            }
        }
    }
    best
}

/// Sums of the distances over all rectangles that begin at the first pair.
struct Sums {
    width: usize,
    of_corner: Vec<f64>,
}

impl Sums {
    fn new(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut of_corner = vec![0.0; width * width];
        for row in 0..values.len() {
            let mut of_row = 0.0;
            for column in 0..values.len() {
                of_row += (values[row] - values[column]).abs();
                of_corner[(row + 1) * width + column + 1] =
                    of_corner[row * width + column + 1] + of_row;
            }
        }
        Self { width, of_corner }
    }

    fn over(&self, rows: Range<usize>, columns: Range<usize>) -> f64 {
        let corner = |row: usize, column: usize| self.of_corner[row * self.width + column];
        corner(rows.end, columns.end)
            - corner(rows.start, columns.end)
            - corner(rows.end, columns.start)
            + corner(rows.start, columns.start)
    }

    fn statistic(&self, at: usize, end: usize) -> f64 {
        let (n, m) = (at as f64, (end - at) as f64);
        let between = 2.0 * self.over(0..at, at..end) / (n * m);
        let within = self.over(0..at, 0..at) / (n * n) + self.over(at..end, at..end) / (m * m);
        n * m / (n + m) * (between - within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::share;
    use crate::simulate::{Rng, StationaryProcess};

    fn levels(rng: &mut Rng, levels: &[(f64, usize)]) -> Vec<f64> {
        let stretch = |(level, count): &(f64, usize)| -> Vec<f64> {
            (0..*count)
                .map(|_| level * (0.1 * rng.normal()).exp())
                .collect()
        };
        levels.iter().flat_map(stretch).collect()
    }

    fn places(values: &[f64]) -> Vec<usize> {
        change_points(values)
            .iter()
            .map(|change| change.at)
            .collect()
    }

    #[test]
    fn short_and_constant_series_have_no_change() {
        for series in [&[][..], &[1.0, 9.0, 1.0], &[5.0; 60], &[f64::NAN; 60]] {
            assert_eq!(change_points(series), []);
        }
    }

    #[test]
    fn a_change_is_found_at_its_place() {
        let mut rng = Rng::new(1);
        let series = levels(&mut rng, &[(10.0, 45), (14.0, 45)]);
        let found = places(&series);
        assert!(found.len() == 1 && found[0].abs_diff(45) <= 1, "{found:?}");
    }

    #[test]
    fn a_change_that_ends_again_is_two() {
        let mut rng = Rng::new(2);
        let series = levels(&mut rng, &[(10.0, 50), (20.0, 20), (10.0, 30)]);
        let found = places(&series);
        assert!(
            found.len() == 2 && found[0].abs_diff(50) <= 1 && found[1].abs_diff(70) <= 1,
            "{found:?}"
        );
    }

    #[test]
    fn one_spike_is_no_change() {
        let found = share(20, 3, |rng| {
            let mut series = levels(rng, &[(10.0, 80)]);
            series[37] = 5000.0;
            !change_points(&series).is_empty()
        });
        assert!(found <= 0.05, "{found}");
    }

    #[test]
    fn memory_alone_is_seldom_a_change() {
        for (memory, most) in [(0.0, 0.05), (0.5, 0.05), (0.8, 0.1)] {
            let found = share(20, 4, |rng| {
                !change_points(&StationaryProcess::Ar(memory).series(rng, 80)).is_empty()
            });
            assert!(found <= most, "{memory}: {found}");
        }
    }
}
