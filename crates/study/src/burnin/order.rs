//! Medians and quantiles.

/// The median; zero of nothing.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let upper = values.len() / 2;
    let (below, at, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    let at = *at;
    if below.len() == upper && upper > 0 && values.len().is_multiple_of(2) {
        let lower = values[..upper].iter().copied().max_by(f64::total_cmp);
        return 0.5 * (at + lower.unwrap_or(at));
    }
    at
}

/// The value that `share` of the others lie below, the upper one of two; zero of nothing.
pub(super) fn median_of(values: &[f32], share: f64) -> f64 {
    let mut values = values.to_vec();
    let place = (values.len() as f64 * share) as usize;
    if place >= values.len() {
        return 0.0;
    }
    let (_, at, _) = values.select_nth_unstable_by(place, f32::total_cmp);
    f64::from(*at)
}
