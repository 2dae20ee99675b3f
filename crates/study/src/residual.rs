//! Residual sums of squares around simple models of a series.

use crate::noise::mean;

/// The residual sum of squares around one level.
pub(crate) fn residual(series: &[f64]) -> f64 {
    let mean = mean(series);
    series.iter().map(|x| (x - mean).powi(2)).sum()
}

/// The residual sum of squares around two levels.
pub(crate) fn residual_of_levels(series: &[f64], split: usize) -> f64 {
    residual(&series[..split]) + residual(&series[split..])
}

/// The residual sum of squares around the best straight line.
pub(crate) fn residual_of_line(series: &[f64]) -> f64 {
    let middle = 0.5 * (series.len() as f64 - 1.0);
    let (mut product, mut squares) = (0.0, 0.0);
    for (t, x) in series.iter().enumerate() {
        let time = t as f64 - middle;
        product += time * x;
        squares += time * time;
    }
    residual(series) - product * product / squares
}
