//! Ratios and their intervals as clauses.

use study::compare::RatioInterval;

use crate::figure::{Figure, Metric};
use ui::format::{count, latency, number};
use ui::relative;

/// A figure's value with its unit.
pub(crate) fn shown(figure: &Figure, value: f64) -> String {
    match figure.metric {
        Metric::Iops => format!("{} IOPS", number(value)),
        Metric::Bytes => format!("{}/s", record::Bytes(value.max(0.0) as u64)),
        _ => latency(value.max(0.0).round() as u64),
    }
}

/// A count of blocks.
pub(super) fn blocks(number: usize) -> String {
    count(number, "block")
}

/// A share in percent without the percent sign, with one decimal below ten.
pub(super) fn hundredths(share: f64) -> String {
    let value = share * 100.0;
    let text = if value.abs() < 9.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    };
    // A change that rounds to nothing has no sign.
    if text == "-0.0" {
        "0.0".to_owned()
    } else {
        text
    }
}

/// A change as a share, negative for a decrease: `-3.1 %`, and if the value at least doubles `a factor of 3.2`.
pub(super) fn amount(share: f64) -> String {
    match 1.0 + share {
        ratio if relative::is_factor(ratio) => format!("a factor of {}", relative::factor(ratio)),
        _ => format!("{} %", hundredths(share)),
    }
}

/// Changes from `low` to `high`, which are ratios: `-1.2 to 5.0 %`, and if a value at least doubles `factors of 0.70
/// to 3.2`.
pub(super) fn amounts(low: f64, high: f64) -> String {
    match relative::is_factor(high) {
        true => format!(
            "factors of {} to {}",
            relative::factor(low),
            relative::factor(high)
        ),
        false => range(low - 1.0, high - 1.0),
    }
}

/// Two shares in percent: `1.2 to 5.0 %`.
pub(super) fn range(low: f64, high: f64) -> String {
    format!("{} to {} %", hundredths(low), hundredths(high))
}

/// The ratio of a figure's own values for a ratio of scores: of scores, higher is better.
pub(super) fn own_ratio(figure: &Figure, score: RatioInterval) -> RatioInterval {
    if figure.metric.is_latency() {
        RatioInterval {
            ratio: 1.0 / score.ratio,
            low: 1.0 / score.high,
            high: 1.0 / score.low,
        }
    } else {
        score
    }
}

/// Word for a changed figure: `faster` or `lower latency` and their opposites.
pub(super) fn direction(figure: &Figure, is_more: bool) -> &'static str {
    match (figure.metric.is_latency(), is_more) {
        (true, true) => "higher latency",
        (true, false) => "lower latency",
        (false, true) => "faster",
        (false, false) => "slower",
    }
}

/// The change of a figure from the ratio of its own values, with its bounds: `3.1 % faster (1.2 to 5.0 %)`.
pub(super) fn changed(figure: &Figure, ratio: RatioInterval) -> String {
    let is_more = ratio.ratio >= 1.0;
    if relative::is_factor(ratio.high) {
        return format!(
            "{} by a factor of {} ({} to {})",
            direction(figure, is_more),
            relative::factor(ratio.ratio),
            relative::factor(ratio.low),
            relative::factor(ratio.high)
        );
    }
    let share = |ratio: f64| if is_more { ratio - 1.0 } else { 1.0 - ratio };
    let (a, b) = (share(ratio.low), share(ratio.high));
    format!(
        "{} % {} ({})",
        hundredths(share(ratio.ratio)),
        direction(figure, is_more),
        range(a.min(b), a.max(b))
    )
}

/// Difference of a layout from the best, by the bounds of a ratio: `12 to 15 % slower than the best`.
pub(super) fn behind(figure: &Figure, ratio: RatioInterval) -> String {
    let is_more = ratio.ratio >= 1.0;
    // A lower rate is never shown as a multiple.
    if is_more && relative::is_factor(ratio.high) {
        let (low, high) = (ratio.low, ratio.high);
        return format!("{low:.1} to {high:.1} times the latency of the best");
    }
    let share = |ratio: f64| if is_more { ratio - 1.0 } else { 1.0 - ratio };
    let (a, b) = (share(ratio.low), share(ratio.high));
    let how = direction(figure, is_more);
    format!("{} {how} than the best", range(a.min(b), a.max(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, ratio: f64, high: f64) -> RatioInterval {
        RatioInterval { ratio, low, high }
    }

    #[test]
    fn a_ratio_is_worded_for_its_figure() {
        let rate: Figure = "page-mixed.iops".parse().unwrap();
        let time: Figure = "page-mixed.p99".parse().unwrap();
        assert_eq!(
            changed(&rate, ratio(1.012, 1.031, 1.05)),
            "3.1 % faster (1.2 to 5.0 %)"
        );
        assert_eq!(
            changed(&rate, ratio(0.8, 0.9, 0.95)),
            "10 % slower (5.0 to 20 %)"
        );
        assert_eq!(
            changed(&time, ratio(1.1, 1.2, 1.3)),
            "20 % higher latency (10 to 30 %)"
        );
        assert_eq!(
            behind(&rate, ratio(0.85, 0.87, 0.88)),
            "12 to 15 % slower than the best"
        );
        assert_eq!(
            behind(&time, ratio(1.1, 1.2, 1.3)),
            "10 to 30 % higher latency than the best"
        );
        assert_eq!(
            behind(&time, ratio(2.1, 2.3, 2.5)),
            "2.1 to 2.5 times the latency of the best"
        );
        assert_eq!(hundredths(-0.0001), "0.0");
    }

    #[test]
    fn a_score_of_a_latency_is_its_inverse() {
        let time: Figure = "page-mixed.p99".parse().unwrap();
        assert_eq!(
            own_ratio(&time, ratio(0.25, 0.5, 0.8)),
            ratio(1.25, 2.0, 4.0)
        );
    }
}
