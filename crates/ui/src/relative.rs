//! Relative changes and the widths of intervals, in words that cannot be impossible.
//!
//! A fall is at most 100 %, and a rise beyond 100 % is a factor. An interval that is wider than its figure is
//! shown by its bounds, since ± 60 % of something that is never below zero says less than it seems to.

use crate::format::percent;

/// Ratio from which on a change is shown as a factor.
const MIN_FACTOR: f64 = 2.0;
/// Half the width of an interval, as a share of its mean, beyond which the bounds are shown.
const WIDE_INTERVAL: f64 = 0.5;
/// Factors beyond this, or below its inverse, are not shown: an interval that reaches there says nothing.
const MAX_FACTOR: f64 = 1000.0;

/// True if a change, of which this is the largest ratio shown, is shown as a factor.
pub fn is_factor(largest: f64) -> bool {
    largest >= MIN_FACTOR
}

/// A ratio as a factor: `3.2`, `0.04`, `more than 1,000`.
pub fn factor(ratio: f64) -> String {
    match ratio {
        r if r > MAX_FACTOR => "more than 1,000".to_owned(),
        r if r > 0.0 && r < 1.0 / MAX_FACTOR => "less than 0.001".to_owned(),
        r if r < 0.995 => format!("{r:.2}"),
        r => format!("{r:.1}"),
    }
}

/// The size of a change from 1 to `ratio`, with its bounds: `5 % (2 % to 8 %)`, `a factor of 3.2 (2.5 to 4.1)`.
/// All three lie on one side of 1.
pub fn by(ratio: f64, low: f64, high: f64) -> String {
    if is_factor(high) {
        return format!(
            "a factor of {} ({} to {})",
            factor(ratio),
            factor(low),
            factor(high)
        );
    }
    let share = |ratio: f64| percent((ratio - 1.0).abs());
    let (least, most) = if ratio > 1.0 {
        (low, high)
    } else {
        (high, low)
    };
    format!("{} ({} to {})", share(ratio), share(least), share(most))
}

/// A mean's 95 % interval: `±3 %`, or `12 to 1,234` where it is wide, with `shown` for each bound. `None`
/// without an interval.
pub fn interval(
    mean: f64,
    low: Option<f64>,
    high: Option<f64>,
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    // From the upper bound: the lower one does not go below zero.
    let (low, high) = low.zip(high)?;
    let half = (high - mean) / mean;
    if mean > 0.0 && half <= WIDE_INTERVAL {
        return Some(format!("±{}", percent(half)));
    }
    Some(format!("{} to {}", shown(low.max(0.0)), shown(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::number;
    use proptest::prelude::*;

    #[test]
    fn a_change_is_a_percentage_or_a_factor() {
        for (low, ratio, high, text) in [
            (1.02, 1.05, 1.08, "5 % (2 % to 8 %)"),
            (0.9, 0.95, 0.97, "5 % (3 % to 10 %)"),
            (0.0, 0.01, 0.2, "99 % (80 % to 100 %)"),
            (1.1, 1.5, 1.9, "50 % (10 % to 90 %)"),
            (1.2, 1.9, 2.5, "a factor of 1.9 (1.2 to 2.5)"),
            (2.5, 3.2, 4.1, "a factor of 3.2 (2.5 to 4.1)"),
            (
                1e-9,
                1.4,
                1e16,
                "a factor of 1.4 (less than 0.001 to more than 1,000)",
            ),
        ] {
            assert_eq!(by(ratio, low, high), text);
        }
    }

    #[test]
    fn a_wide_interval_is_shown_by_its_bounds() {
        let text =
            |mean: f64, low: f64, high: f64| interval(mean, Some(low), Some(high), number).unwrap();
        assert_eq!(text(1000.0, 970.0, 1030.0), "±3 %");
        assert_eq!(text(1000.0, 500.0, 1500.0), "±50 %");
        assert_eq!(text(1000.0, 0.0, 4624.0), "0.0 to 4,624");
        assert_eq!(text(1000.0, -3624.0, 4624.0), "0.0 to 4,624");
        assert_eq!(text(0.0, 0.0, 3.0), "0.0 to 3.0");
        assert_eq!(interval(1.0, None, Some(2.0), number), None);
    }

    /// Every percentage in a text.
    fn percentages(text: &str) -> Vec<f64> {
        let words: Vec<&str> = text.split(['(', ' ', '±', ')', '\u{a0}']).collect();
        let pairs = words.windows(2).filter(|pair| pair[1] == "%");
        pairs.map(|pair| pair[0].parse().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn no_percentage_is_above_one_hundred(
            low in 0.0..100.0_f64,
            more in 0.0..100.0_f64,
            most in 0.0..1000.0_f64,
        ) {
            let (ratio, high) = (low + more, low + more + most);
            for text in [
                by(ratio, low, high),
                interval(ratio, Some(low), Some(high), number).unwrap(),
            ] {
                prop_assert!(percentages(&text).iter().all(|share| *share <= 100.0), "{}", text);
            }
        }
    }
}
