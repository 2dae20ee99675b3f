//! Autocorrelated noise of a series, estimated from the series itself.
//!
//! The model is a mixture of a first-order autoregressive process (each value keeps a share `phi` of the one before)
//! and white noise. Which memory and which mixture is unknown, and a short series says little about them: taking the
//! best fit as the truth is what makes textbook intervals too narrow. Therefore a grid of hypotheses is kept, each
//! weighted by its restricted likelihood (Harville 1974), that is, with the fitted mean or trend integrated out, which
//! removes the well-known downward bias of an estimated autocorrelation (Marriott and Pope 1954). Any statement about
//! the series is an average over the grid: a mixture of Student t distributions.

use crate::distribution::student_tail;

/// Maximum length of a series that the grid is fitted to. Longer ones are first averaged in batches, which shortens
/// their memory and bounds the cost.
pub(crate) const MAX_BATCHES: usize = 100;

/// A hypothesis about the noise.
struct State {
    weight: f64,
    /// Share of the preceding value that each value keeps.
    phi: f64,
    /// Share of the variance that is white noise.
    white: f64,
    /// The variance of one value under this hypothesis.
    variance: f64,
    /// Coefficient of the last shape by generalized least squares.
    last: f64,
    /// Standard error of this coefficient.
    last_error: f64,
}

/// Estimates of the noise of a series.
pub(crate) struct Noise {
    states: Vec<State>,
    degrees: f64,
}

/// Values of `phi` on the grid.
const MEMORIES: [f64; 13] = [
    -0.75, -0.5, -0.25, 0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.88, 0.94, 0.97, 0.99,
];
/// Shares of white noise on the grid, for hypotheses with a memory.
const WHITE: [f64; 3] = [0.0, 0.3, 0.6];
/// Prior weight of independence, relative to a hypothesis with a memory: without it a short independent series gets a
/// needlessly wide interval; with a much larger one a short series with a memory gets one that is too narrow. Chosen
/// by simulation.
const INDEPENDENCE_PRIOR: f64 = 50.0;
/// Exponent of the likelihood (a power likelihood, Holmes and Walker 2017). The likelihood is that of normal noise;
/// for rates that jump between levels it is overconfident.
const LIKELIHOOD_POWER: f64 = 0.7;

impl Noise {
    /// Estimates the noise of `series` around the least-squares fit of `shapes` (each as long as the series; a column
    /// of ones for the mean). `None` if the series has fewer than two values more than there are shapes, or if the
    /// shapes fit it exactly.
    pub(crate) fn learn(series: &[f64], shapes: &[Vec<f64>]) -> Option<Self> {
        if series.len() < shapes.len() + 2 {
            return None;
        }
        let degrees = (series.len() - shapes.len()) as f64;
        let mut states = Vec::new();
        for phi in MEMORIES {
            for white in WHITE {
                if white > 0.0 && phi <= 0.0 {
                    continue;
                }
                let fit = restricted_likelihood(series, shapes, phi, white)?;
                let prior: f64 = if phi == 0.0 { INDEPENDENCE_PRIOR } else { 1.0 };
                let variance = fit.residual / degrees;
                states.push(State {
                    weight: LIKELIHOOD_POWER * fit.ln_likelihood + prior.ln(),
                    phi,
                    white,
                    variance,
                    last: fit.last,
                    last_error: (variance / fit.last_precision).sqrt(),
                });
            }
        }
        let top = states
            .iter()
            .map(|state| state.weight)
            .fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            return None;
        }
        for state in &mut states {
            state.weight = (state.weight - top).exp();
        }
        let sum: f64 = states.iter().map(|state| state.weight).sum();
        for state in &mut states {
            state.weight /= sum;
        }
        // Most hypotheses are implausible for a given series; dropping them saves time.
        states.retain(|state| state.weight > 1e-5);
        Some(Self { states, degrees })
    }

    /// Probability that noise alone moves a weighted sum of the series by more than `deviation` in either
    /// direction, given its standard error under each hypothesis.
    fn tail_with(&self, deviation: f64, spreads: &[f64]) -> f64 {
        let tails = self.states.iter().zip(spreads);
        tails
            .map(|(state, spread)| state.weight * student_tail(deviation / spread, self.degrees))
            .sum()
    }

    /// Probability that noise alone moves the sum of the series weighted by `contrast` by more than
    /// `deviation` in either direction.
    pub(crate) fn tail(&self, contrast: &[f64], deviation: f64) -> f64 {
        self.tail_with(deviation.abs(), &self.spreads(contrast))
    }

    /// Probability of as large a coefficient of the last shape by noise alone, by generalized least squares: under
    /// noise with a long memory a sudden step shows in its jump, not in the levels around it, which wander anyway.
    pub(crate) fn tail_of_last(&self) -> f64 {
        let tail = |state: &State| {
            state.weight * student_tail(state.last / state.last_error, self.degrees)
        };
        self.states.iter().map(tail).sum()
    }

    /// The deviation of the sum of the series weighted by `contrast` that noise alone exceeds
    /// with probability `tail`.
    pub(crate) fn half_width(&self, contrast: &[f64], tail: f64) -> f64 {
        let spreads = self.spreads(contrast);
        let widest = spreads.iter().copied().fold(0.0, f64::max);
        let (mut low, mut high) = (0.0, widest);
        while self.tail_with(high, &spreads) > tail {
            low = high;
            high *= 2.0;
        }
        // Each step halves the bracket; twenty reduce it to a millionth.
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if self.tail_with(middle, &spreads) > tail {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The standard error of the weighted sum under each hypothesis.
    fn spreads(&self, contrast: &[f64]) -> Vec<f64> {
        let squares: f64 = contrast.iter().map(|c| c * c).sum();
        let spread = |state: &State| {
            let (mut carried, mut with_memory) = (0.0, 0.0);
            for c in contrast {
                with_memory += c * (c + 2.0 * carried);
                carried = state.phi * (carried + c);
            }
            (state.variance * ((1.0 - state.white) * with_memory + state.white * squares)).sqrt()
        };
        self.states.iter().map(spread).collect()
    }
}

/// Generalized least-squares fit of the shapes under one hypothesis about the noise.
struct Fit {
    /// Logarithm of the restricted likelihood, up to a constant.
    ln_likelihood: f64,
    /// Residual sum of squares in units of the variance of one value.
    residual: f64,
    /// Coefficient of the last shape; zero without shapes.
    last: f64,
    /// Variance of one value divided by that of this coefficient.
    last_precision: f64,
}

/// Fit under the noise `phi`, `white`. `None` if the residual is zero or something is not finite.
fn restricted_likelihood(series: &[f64], shapes: &[Vec<f64>], phi: f64, white: f64) -> Option<Fit> {
    let columns = shapes.len();
    // The Kalman filter transforms series and shapes into independent values of known variance; the gain does not
    // depend on the data, so one pass serves all columns.
    let mut predicted = vec![0.0; columns + 1];
    let mut innovations = vec![0.0; columns + 1];
    // Upper triangle of the products of the columns, with the series last.
    let mut products = vec![vec![0.0; columns + 1]; columns + 1];
    let mut ln_determinant = 0.0;
    let memory = 1.0 - white;
    let mut uncertainty = memory;
    for (t, value) in series.iter().enumerate() {
        let variance = uncertainty + white;
        let gain = uncertainty / variance;
        ln_determinant += variance.ln();
        for column in 0..=columns {
            let observed = shapes.get(column).map_or(*value, |shape| shape[t]);
            innovations[column] = observed - predicted[column];
            predicted[column] = phi * (predicted[column] + gain * innovations[column]);
        }
        for row in 0..=columns {
            for column in row..=columns {
                products[row][column] += innovations[row] * innovations[column] / variance;
            }
        }
        uncertainty = phi * phi * uncertainty * (1.0 - gain) + memory * (1.0 - phi * phi);
    }
    // Gaussian elimination leaves the residual sum of squares in the last corner.
    let mut ln_shapes = 0.0;
    for pivot in 0..columns {
        let head = products[pivot][pivot];
        if head <= 0.0 {
            return None;
        }
        ln_shapes += head.ln();
        for row in pivot + 1..=columns {
            let share = products[pivot][row] / head;
            let (above, below) = products.split_at_mut(row);
            for (value, head) in below[0].iter_mut().zip(&above[pivot]).skip(row) {
                *value -= share * head;
            }
        }
    }
    let residual = products[columns][columns];
    let degrees = (series.len() - columns) as f64;
    let ln_likelihood = -0.5 * (ln_determinant + ln_shapes + degrees * residual.ln());
    let last = columns.checked_sub(1);
    let last_precision = last.map_or(1.0, |last| products[last][last]);
    (residual > 0.0 && ln_likelihood.is_finite()).then_some(Fit {
        ln_likelihood,
        residual,
        last: last.map_or(0.0, |last| products[last][columns] / last_precision),
        last_precision,
    })
}

/// Averages `series` in batches of equal length, so that at most [`MAX_BATCHES`] remain; leading values that do not
/// fill a batch are left out. Also returns the length of a batch.
pub(crate) fn batch_means(series: &[f64]) -> (Vec<f64>, usize) {
    let length = series.len().div_ceil(MAX_BATCHES).max(1);
    let batches = series[series.len() % length..].chunks_exact(length);
    (batches.map(mean).collect(), length)
}

/// The constant shape: `count` ones. Its coefficient in a fit is the mean of the series.
pub(crate) fn ones(count: usize) -> Vec<f64> {
    vec![1.0; count]
}

/// The arithmetic mean; zero for an empty series.
pub(crate) fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len().max(1) as f64
}

/// A series with its mean subtracted, scaled to values of about one, so that no square overflows.
pub(crate) struct ScaledSeries {
    /// The mean of the series.
    pub(crate) mean: f64,
    /// Range of the series, highest less lowest value, in its unit; 0 where all values are equal.
    pub(crate) unit: f64,
    /// Deviations from the mean, as multiples of `unit`.
    pub(crate) values: Vec<f64>,
}

impl ScaledSeries {
    /// The scaled series; `None` if the series is empty or a value is not finite.
    pub(crate) fn new(series: &[f64]) -> Option<Self> {
        let (low, high) = series
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
                (l.min(*x), h.max(*x))
            });
        let unit = high - low;
        if !unit.is_finite() || series.iter().any(|x| !x.is_finite()) {
            return None;
        }
        if unit == 0.0 {
            return Some(Self {
                mean: low,
                unit,
                values: vec![0.0; series.len()],
            });
        }
        // Computed relative to the lowest value, the mean is between the extremes despite rounding.
        let above: Vec<f64> = series.iter().map(|x| (x - low) / unit).collect();
        let middle = mean(&above);
        let values = above.iter().map(|x| x - middle).collect();
        Some(Self {
            mean: low + unit * middle,
            unit,
            values,
        })
    }
}
