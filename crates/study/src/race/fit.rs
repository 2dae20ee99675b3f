//! Estimated levels of the entrants of a race after some blocks, and the scatter of one cell.

use std::collections::BTreeMap;

use super::measurement::Measurement;
use crate::compare::RatioInterval;
use crate::distribution::{student_quantile, student_tail};
use crate::median::median;

/// Distance beyond the usual at which an entrant's scatter is an exception, in normal deviations. It is so large that
/// an entrant whose noise is merely three times that of others is none: leaving out the worst cell of a noisy layout
/// would favour it. Chosen by simulation.
const EXCEPTION_DEVIATIONS: f64 = 6.0;

/// Weight of the pooled noise in that of one entrant, in degrees of freedom.
const PRIOR: f64 = 4.0;
/// Divisor of the number of entrants: with more exceptions than the quotient, none is an exception, since the noise
/// itself is uneven or has heavy tails.
const EXCEPTIONS: usize = 3;

/// Measurements, by block and entrant.
pub(super) type Cells = BTreeMap<(usize, usize), Cell>;

/// Result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Measured(Value),
    Failed,
}

/// A measured value in the form used by the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    /// Logarithm of the value.
    pub(super) log: f64,
    /// The variance of the logarithm by the measurement's own interval; zero if unknown.
    pub(super) variance: f64,
}

impl Cell {
    /// The stored form of a measurement.
    pub(super) fn of(seen: &Measurement) -> Cell {
        if !(seen.value > 0.0 && seen.value.is_finite()) {
            return Cell::Failed;
        }
        let sensible = |half: &f64| half.is_finite() && *half > 0.0;
        let half = seen.half_width.filter(sensible).unwrap_or(0.0);
        Cell::Measured(Value {
            log: seen.value.ln(),
            variance: (half / 1.96).powi(2),
        })
    }

    /// The value; `None` for a failed measurement.
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Cell::Measured(value) => Some(value),
            Cell::Failed => None,
        }
    }
}

/// The noise of one cell, of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// Variance of the noise.
    pub(super) variance: f64,
    /// Degrees of freedom of the estimate.
    pub(super) degrees: f64,
}

/// Estimates of an entrant over the blocks.
struct Track {
    /// Mean distance from the medians of the blocks.
    mean: f64,
    /// Variance from block to block.
    variance: f64,
    /// True if the variance is significantly larger than usual.
    wild: bool,
    /// Block of a single cell that is an outlier, and is left out.
    stalled: Option<usize>,
}

/// A fit of entrants that were measured in the same blocks.
pub(super) struct Fit {
    tracks: BTreeMap<usize, Track>,
    /// The pooled noise; `None` with one block or one entrant.
    pub(super) noise: Option<Noise>,
    blocks: usize,
}

impl Fit {
    /// Fits `entrants` over the first `blocks` blocks. An entrant without a cell in one of them is left out.
    pub(super) fn new(cells: &Cells, entrants: &[usize], blocks: usize) -> Fit {
        let rows = centred(cells, entrants, blocks);
        let scatter = Scatter::usual(&rows, blocks);
        let exceptions = rows.values().filter(|row| scatter.is_exceeded(row)).count();
        let few = exceptions <= (rows.len() / EXCEPTIONS).max(1);
        let mut fit = Fit {
            tracks: BTreeMap::new(),
            noise: None,
            blocks,
        };
        let mut calm = Vec::new();
        for (entrant, row) in rows {
            let track = if few && scatter.is_exceeded(&row) {
                scatter.exception(&row)
            } else {
                calm.push(scatter.of(&row));
                scatter.track(&row)
            };
            fit.tracks.insert(entrant, track);
        }
        if blocks > 1 && calm.len() > 1 {
            fit.noise = Some(Noise {
                variance: mean(&calm),
                degrees: (calm.len() - 1) as f64 * (blocks - 1) as f64,
            });
        }
        fit
    }

    /// The entrants, the best first.
    pub(super) fn ranking(&self) -> impl Iterator<Item = usize> + '_ {
        let mut order: Vec<(usize, f64)> = self
            .tracks
            .iter()
            .map(|(entrant, track)| (*entrant, track.mean))
            .collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(entrant, _)| entrant)
    }

    /// True if an entrant scatters significantly more than usual, and not because of a single cell.
    pub(super) fn is_wild(&self, entrant: usize) -> bool {
        self.tracks.get(&entrant).is_some_and(|track| track.wild)
    }

    /// True if this is a single cell that is an outlier.
    pub(super) fn is_stalled(&self, entrant: usize, block: usize) -> bool {
        let track = self.tracks.get(&entrant);
        track.is_some_and(|track| track.stalled == Some(block))
    }

    /// The variance of the difference of two cells, and its degrees of freedom: for wild entrants their own, for
    /// others the pooled one.
    pub(super) fn variance_of_difference(&self, a: usize, b: usize, noise: Noise) -> (f64, f64) {
        let own = |entrant: usize| match self.tracks.get(&entrant) {
            Some(track) if track.wild => {
                (track.variance.max(noise.variance), (self.blocks - 1) as f64)
            }
            Some(track) => (self.moderated_variance(track, noise), noise.degrees),
            None => (noise.variance, noise.degrees),
        };
        let (a, b) = (own(a), own(b));
        (a.0 + b.0, a.1.min(b.1))
    }

    /// The variance of an entrant: above the pooled one if its own scatter is larger. The pooled one counts as
    /// [`PRIOR`] degrees of freedom, as in moderated t tests (Smyth 2004).
    fn moderated_variance(&self, track: &Track, noise: Noise) -> f64 {
        let own = (self.blocks - 1) as f64 - f64::from(u8::from(track.stalled.is_some()));
        let mixed = (PRIOR * noise.variance + own * track.variance) / (PRIOR + own);
        mixed.max(noise.variance)
    }
}

/// Lead of an entrant over another, in logarithms.
pub(super) struct Difference {
    pub(super) mean: f64,
    /// The standard error.
    pub(super) error: f64,
    /// Degrees of freedom.
    pub(super) degrees: f64,
}

impl Difference {
    /// Probability that noise reaches `errors` standard errors plus this difference, in either direction.
    pub(super) fn chance(&self, errors: f64) -> f64 {
        student_tail(self.mean / (errors * self.error), self.degrees)
    }

    /// The lead as a ratio, with the interval that is exceeded with the probability `tail`; `None` if it is not
    /// finite.
    pub(super) fn ratio(&self, tail: f64) -> Option<RatioInterval> {
        RatioInterval::of_logs(self.mean, student_quantile(tail, self.degrees) * self.error)
    }
}

/// The logarithms of the entrants that have all cells, minus the median of each block.
fn centred(cells: &Cells, entrants: &[usize], blocks: usize) -> BTreeMap<usize, Vec<f64>> {
    let mut rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for entrant in entrants {
        let log = |block| Some(cells.get(&(block, *entrant))?.value()?.log);
        if let Some(row) = (0..blocks).map(log).collect() {
            rows.insert(*entrant, row);
        }
    }
    for block in 0..blocks {
        let middle = median(rows.values().map(|row| row[block]).collect()).unwrap_or(0.0);
        for row in rows.values_mut() {
            row[block] -= middle;
        }
    }
    rows
}

/// Scatter of most entrants.
struct Scatter {
    /// The variance of a cell, on which a few with a wild scatter have no effect: the median of the variances divided
    /// by that of their distribution, by Wilson and Hilferty (1931).
    usual: f64,
    /// Factor on a variance that corrects for the variance removed with the medians of the blocks.
    widen: f64,
}

impl Scatter {
    fn usual(rows: &BTreeMap<usize, Vec<f64>>, blocks: usize) -> Scatter {
        let count = rows.len() as f64;
        let mut scatter = Scatter {
            usual: f64::NAN,
            widen: count / (count - 1.0),
        };
        let variances = rows.values().map(|row| scatter.of(row)).collect();
        scatter.usual = median(variances).unwrap_or(0.0) / chi_square_share(0.0, blocks);
        scatter
    }

    /// The variance of a row.
    fn of(&self, row: &[f64]) -> f64 {
        self.widen * variance(row)
    }

    /// True if a row scatters significantly more than usual.
    fn is_exceeded(&self, row: &[f64]) -> bool {
        self.of(row) > self.usual * chi_square_share(EXCEPTION_DEVIATIONS, row.len())
    }

    /// Track of an entrant with the usual scatter.
    fn track(&self, row: &[f64]) -> Track {
        Track {
            mean: mean(row),
            variance: self.of(row),
            wild: false,
            stalled: None,
        }
    }

    /// Track of an entrant with an exceptional scatter: without its worst cell if that is the only reason, otherwise
    /// marked as wild.
    fn exception(&self, row: &[f64]) -> Track {
        match without_farthest(row).filter(|(_, others)| !self.is_exceeded(others)) {
            Some((block, others)) => Track {
                stalled: Some(block),
                ..self.track(&others)
            },
            None => Track {
                wild: true,
                ..self.track(row)
            },
        }
    }
}

/// A variance estimated from `blocks` values, as a share of the true one, at the quantile of a normal value of
/// `deviation` standard deviations.
fn chi_square_share(deviation: f64, blocks: usize) -> f64 {
    let part = 2.0 / (9.0 * (blocks as f64 - 1.0));
    (1.0 - part + deviation * part.sqrt()).powi(3)
}

/// Index of the value farthest from the median, and the others. `None` for two values: it is unknown which of them is
/// the outlier.
fn without_farthest(row: &[f64]) -> Option<(usize, Vec<f64>)> {
    if row.len() < 3 {
        return None;
    }
    let middle = median(row.to_vec())?;
    let distance = |at: &usize| (row[*at] - middle).abs();
    let worst = (0..row.len()).max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let mut others = row.to_vec();
    others.remove(worst);
    Some((worst, others))
}

/// The arithmetic mean; zero without values.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The unbiased variance; not a number for fewer than two values.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}
