//! Units and digits of the shown figures of a sweep.

use crate::{Figure, LayoutOutcome, Metric, Objective, ThresholdSide, Value};
use ui::format::number;

/// Unit of a shown figure. The record has requests, bytes, nanoseconds and dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FigureUnit {
    /// Requests a second.
    Iops,
    /// Bytes a second, shown as MiB/s.
    Bytes,
    /// Nanoseconds, shown as milliseconds.
    Time,
    /// Requests a second for each dollar a month.
    IopsPerDollar,
    /// Bytes a second for each dollar a month, shown as MiB/s.
    BytesPerDollar,
    /// Dollars a month.
    Dollars,
}

impl FigureUnit {
    /// The unit of a metric.
    pub(crate) fn of_metric(metric: Metric) -> FigureUnit {
        match metric {
            Metric::Iops => FigureUnit::Iops,
            Metric::Bytes => FigureUnit::Bytes,
            _ => FigureUnit::Time,
        }
    }

    /// The unit of the objective's value.
    pub(crate) fn of_objective(objective: &Objective) -> FigureUnit {
        match objective {
            Objective::Figure(figure) => FigureUnit::of_metric(figure.metric),
            Objective::PerDollar(figure) => FigureUnit::of_metric(figure.metric).per_dollar(),
            Objective::Cost => FigureUnit::Dollars,
        }
    }

    /// The unit for each dollar a month.
    pub(crate) fn per_dollar(self) -> FigureUnit {
        match self {
            FigureUnit::Bytes | FigureUnit::BytesPerDollar => FigureUnit::BytesPerDollar,
            _ => FigureUnit::IopsPerDollar,
        }
    }

    /// Name of the unit in the title of a column or after a number.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FigureUnit::Iops => "IOPS",
            FigureUnit::Bytes => "MiB/s",
            FigureUnit::Time => "ms",
            FigureUnit::IopsPerDollar => "IOPS/$",
            FigureUnit::BytesPerDollar => "MiB/s/$",
            FigureUnit::Dollars => "$/month",
        }
    }

    /// Code of the unit in JSON, where values are not converted.
    pub(crate) fn code(self) -> &'static str {
        match self {
            FigureUnit::Iops => "per_s",
            FigureUnit::Bytes => "bytes_per_s",
            FigureUnit::Time => "ns",
            FigureUnit::IopsPerDollar => "per_s_per_dollar",
            FigureUnit::BytesPerDollar => "bytes_per_s_per_dollar",
            FigureUnit::Dollars => "dollars_per_month",
        }
    }

    /// True if lower values in this unit are better.
    pub(crate) fn less_is_better(self) -> bool {
        matches!(self, FigureUnit::Time | FigureUnit::Dollars)
    }

    /// A recorded number in the unit that is shown.
    pub(crate) fn scaled(self, value: f64) -> f64 {
        match self {
            FigureUnit::Iops | FigureUnit::IopsPerDollar | FigureUnit::Dollars => value,
            FigureUnit::Bytes | FigureUnit::BytesPerDollar => value / (1 << 20) as f64,
            FigureUnit::Time => value / 1e6,
        }
    }

    /// A recorded number as digits alone.
    pub(crate) fn digits(self, value: f64) -> String {
        let value = self.scaled(value);
        match self {
            FigureUnit::Iops | FigureUnit::Bytes => number(value),
            _ => fine(value),
        }
    }

    /// A recorded number with its unit.
    pub(crate) fn show(self, value: f64) -> String {
        format!("{} {}", self.digits(value), self.name())
    }

    /// A value with its unit and, if it has one, its interval.
    pub(crate) fn show_value(self, value: Value) -> String {
        match (value.low, value.high) {
            (Some(low), Some(high)) => {
                let (low, high) = (self.digits(low), self.digits(high));
                format!("{} ({low} – {high})", self.show(value.mean))
            }
            _ => self.show(value.mean),
        }
    }
}

/// A number with three significant digits, since times and dollars are often below ten.
fn fine(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 || !v.is_finite() => number(value),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share in percent, with a fixed number of decimals for columns.
pub(crate) fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share's interval in percent: `97.1 – 99.3 %`. Empty without an interval.
pub(crate) fn share_interval(value: Value) -> String {
    match (value.low, value.high) {
        (Some(low), Some(high)) => format!("{:.1} – {}", low * 100.0, share(high)),
        _ => String::new(),
    }
}

/// The figure of an objective; `None` if the objective is the cost alone.
pub(crate) fn figure(objective: &Objective) -> Option<&Figure> {
    match objective {
        Objective::Figure(figure) | Objective::PerDollar(figure) => Some(figure),
        Objective::Cost => None,
    }
}

/// An objective as users write it.
pub(crate) fn objective(objective: &Objective) -> String {
    match objective {
        Objective::Figure(figure) => figure.to_string(),
        Objective::PerDollar(figure) => format!("{figure}/$"),
        Objective::Cost => "cost".to_owned(),
    }
}

/// Sign of a comparison on the command line.
pub(crate) fn side(side: ThresholdSide) -> &'static str {
    match side {
        ThresholdSide::Below => "<",
        ThresholdSide::AtMost => "<=",
        ThresholdSide::Above => ">",
        ThresholdSide::AtLeast => ">=",
    }
}

/// Outcome of a layout, in a word.
pub(crate) fn outcome_label(outcome: LayoutOutcome) -> &'static str {
    match outcome {
        LayoutOutcome::Winner => "best",
        LayoutOutcome::Tie => "tie",
        LayoutOutcome::Behind => "behind",
        LayoutOutcome::Dropped => "dropped",
        LayoutOutcome::Missed => "missed",
        LayoutOutcome::Failed => "failed",
        LayoutOutcome::Open => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_in_the_unit_of_their_metric() {
        let value = Value {
            mean: 2_345_678.0,
            low: Some(2.3e6),
            high: Some(2.4e6),
        };
        for (metric, text) in [
            (Metric::Iops, "2,345,678 IOPS (2,300,000 – 2,400,000)"),
            (Metric::Bytes, "2.2 MiB/s (2.2 – 2.3)"),
            (Metric::P99, "2.35 ms (2.30 – 2.40)"),
        ] {
            assert_eq!(FigureUnit::of_metric(metric).show_value(value), text);
        }
        assert_eq!(FigureUnit::Time.show(1e3), "0.001 ms");
        assert_eq!(FigureUnit::Dollars.show(1234.5), "1,234 $/month");
    }

    #[test]
    fn without_an_interval_nothing_is_shown() {
        assert_eq!(share_interval(Value::plain(1.0)), "");
    }
}
