//! Figures that hosts are ranked by: rates, and latencies.

use sweep::Figure;
use ui::format;

/// Kind of the figure that hosts are ranked by. A race needs figures of which a larger one is better: a latency is
/// inverted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RankedBy {
    /// A rate; a larger one is better.
    Rate,
    /// A latency in nanoseconds.
    Latency,
}

impl RankedBy {
    /// The kind of the first of these figures; a rate if there are none.
    pub(crate) fn of(figures: &[Figure]) -> RankedBy {
        match figures.first() {
            Some(figure) if figure.metric.is_latency() => RankedBy::Latency,
            _ => RankedBy::Rate,
        }
    }

    /// Converts a figure to that of the race, or back: the conversion is its own inverse.
    pub(crate) fn turned(self, value: f64) -> f64 {
        match self {
            RankedBy::Rate => value,
            RankedBy::Latency => 1e9 / value,
        }
    }

    /// A figure in its unit, as text.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            RankedBy::Rate => format::number(value),
            RankedBy::Latency => format::latency(value.max(0.0) as u64),
        }
    }

    /// The worse of two figures in their unit.
    pub(crate) fn worse(self, one: f64, other: f64) -> f64 {
        match self {
            RankedBy::Rate => one.min(other),
            RankedBy::Latency => one.max(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_a_rate_in_a_race_and_a_latency_to_the_user() {
        let by = RankedBy::of(&["replay.p99".parse().unwrap()]);
        assert_eq!(by.turned(by.turned(5e6)), 5e6);
        assert!(by.turned(1e6) > by.turned(2e6));
        assert_eq!(
            (by.worse(1.0, 2.0), by.text(5e6)),
            (2.0, "5.00 ms".to_owned())
        );
        let rate = RankedBy::of(&["replay.iops".parse().unwrap()]);
        assert_eq!((rate.turned(7.0), rate.worse(1.0, 2.0)), (7.0, 1.0));
    }
}
