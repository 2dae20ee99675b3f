//! Response times of the same hours on earlier days: a rise that comes each morning is no news.

use super::inputs::{Windows, part};
use crate::noise::mean;
use crate::shift::{Shift, shift};

/// Change of a series beyond the usual one of these hours. The mean change of the earlier days is taken out, and
/// one that is no further from it than theirs are is none (its p is 1).
pub(crate) fn unusual_shift(values: &[f64], windows: &Windows) -> Option<Shift> {
    let before = part(values, &windows.before);
    let days = windows.days.iter();
    let earlier: Vec<f64> = days
        .filter_map(|(before, after)| {
            Some(log_mean(part(values, after))? - log_mean(part(values, before))?)
        })
        .collect();
    let usual = mean(&earlier);
    let after: Vec<f64> = part(values, &windows.after)
        .iter()
        .map(|value| value / usual.exp())
        .collect();
    let mut change = shift(before, &after)?;
    let as_far = |day: &f64| (day - usual).abs() >= change.size().abs();
    if earlier.iter().any(as_far) {
        change.p = 1.0;
    }
    Some(change)
}

/// Mean of the logarithms of the positive values; `None` if there is none.
fn log_mean(values: &[f64]) -> Option<f64> {
    let positive = values.iter().filter(|x| x.is_finite() && **x > 0.0);
    let logs: Vec<f64> = positive.map(|x| x.ln()).collect();
    (!logs.is_empty()).then(|| mean(&logs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(rises: &[f64]) -> (Vec<f64>, Windows) {
        let level = |slot: usize| {
            if slot % 100 < 50 {
                10.0
            } else {
                10.0 * rises[slot / 100]
            }
        };
        let wave = |slot: usize| 1.0 + 0.01 * (slot * 7 % 5) as f64;
        let values = (0..100 * rises.len()).map(|slot| level(slot) * wave(slot));
        let moment = 100 * (rises.len() - 1) + 50;
        let windows = Windows::around(moment, 30, 100 * rises.len(), 100, 0..usize::MAX);
        (values.collect(), windows)
    }

    #[test]
    fn a_rise_of_each_day_is_usual() {
        let (values, windows) = days(&[1.5, 1.52, 1.5, 1.51]);
        let change = unusual_shift(&values, &windows).unwrap();
        assert!(!change.shows(0.01, 1.1), "{change:?}");
    }

    #[test]
    fn a_rise_beyond_that_of_each_day_is_not() {
        let (values, windows) = days(&[1.5, 1.52, 1.5, 3.0]);
        let change = unusual_shift(&values, &windows).unwrap();
        assert!(change.shows(0.01, 1.1), "{change:?}");
        assert!((change.ratio.ratio - 2.0).abs() < 0.05, "{change:?}");
    }

    #[test]
    fn without_earlier_days_all_counts() {
        let (values, windows) = days(&[1.5]);
        assert!(unusual_shift(&values, &windows).unwrap().shows(0.01, 1.1));
    }
}
