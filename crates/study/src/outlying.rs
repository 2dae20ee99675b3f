//! Outliers among many similar values.
//!
//! The distance from the median is compared with the median absolute deviation (MAD), on which up to half of the
//! values have no effect, however extreme they are. The threshold of 3.5 is that of Iglewicz and Hoaglin ("How to
//! Detect and Handle Outliers", 1993), where 0.6745 is the MAD of the standard normal distribution. Of simulated lists
//! of 30 independent normal values, 9 % have an outlier: more than the 1.4 % with a known spread, since the MAD of few
//! values is imprecise. A value near the median is never an outlier, however small the spread of the others.

use crate::median::median;

/// The distance, in standard deviations of most values, beyond which a value is outlying.
const OUTLYING_DEVIATIONS: f64 = 3.5;
/// The MAD of the standard normal distribution.
const NORMAL_MAD: f64 = 0.6745;
/// Minimum number of values for outliers.
pub const MIN_VALUES: usize = 5;

/// For each value, true if it is an outlier; a value within `near` of the median, as a share of it, is not. `None` for
/// fewer than [`MIN_VALUES`] values, or if one is not finite.
pub fn outlying(values: &[f64], near: f64) -> Option<Vec<bool>> {
    if values.len() < MIN_VALUES || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let middle = median(values.to_vec())?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let spread = median(distances.clone())? / NORMAL_MAD;
    let least = near * middle.abs();
    Some(
        distances
            .iter()
            .map(|distance| *distance > OUTLYING_DEVIATIONS * spread && *distance > least)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::random::SplitMix64 as Rng;

    #[test]
    fn outliers_are_marked_on_either_side() {
        let marked = outlying(&[100.0, 102.0, 98.0, 101.0, 99.0, 20.0, 300.0], 0.1).unwrap();
        assert_eq!(marked, [false, false, false, false, false, true, true]);
        // Nearly half of the values may be bad without hiding each other.
        let marked = outlying(&[100.0, 101.0, 99.0, 100.5, 10.0, 12.0, 11.0], 0.1).unwrap();
        assert_eq!(marked.iter().filter(|marked| **marked).count(), 3);
    }

    #[test]
    fn near_values_are_never_marked_and_few_values_show_nothing() {
        let marked = outlying(&[100.0, 100.0, 100.0, 100.0, 105.0], 0.1).unwrap();
        assert_eq!(marked, [false; 5]);
        let marked = outlying(&[100.0, 100.0, 100.0, 100.0, 115.0], 0.1).unwrap();
        assert_eq!(marked, [false, false, false, false, true]);
        assert_eq!(outlying(&[1.0, 2.0, 3.0, 400.0], 0.1), None);
        assert_eq!(outlying(&[1.0, 2.0, 3.0, 4.0, f64::NAN], 0.1), None);
    }

    #[test]
    fn alike_values_are_rarely_marked() {
        let mut rng = Rng::new(7);
        let mut lists = 0;
        for _ in 0..2000 {
            let values: Vec<f64> = (0..30)
                .map(|_| 1000.0 * (1.0 + 0.05 * rng.normal()))
                .collect();
            lists += usize::from(outlying(&values, 0.1).unwrap().contains(&true));
        }
        // The 9 % mentioned above.
        assert!((160..200).contains(&lists), "{lists} of 2000 lists");
    }
}
