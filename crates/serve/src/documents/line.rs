//! Figures of a chart, rounded to what can be seen.

use serde::{Serialize, Serializer};

/// Digits of a figure: a chart of 3,000 pixels shows no more.
const DIGITS: i32 = 4;

/// A figure, written with four digits; what is not finite is `null`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "Option<f64>")
)]
pub(crate) struct RoundedFigure(pub(crate) f64);

impl RoundedFigure {
    /// The figure as it is written.
    pub(crate) fn rounded(self) -> Option<f64> {
        match self.0 {
            value if !value.is_finite() => None,
            0.0 => Some(0.0),
            value => {
                let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
                let scale = 10_f64.powi(digits.clamp(-300, 300));
                Some((value * scale).round() / scale)
            }
        }
    }
}

impl Serialize for RoundedFigure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.rounded() {
            // A whole number needs no point.
            Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
                to.serialize_i64(value as i64)
            }
            Some(value) => to.serialize_f64(value),
            None => to.serialize_none(),
        }
    }
}

/// Figures of some values.
pub(crate) fn figures(values: impl IntoIterator<Item = f64>) -> Vec<RoundedFigure> {
    values.into_iter().map(RoundedFigure).collect()
}

/// A figure over time: a value for each slot.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Line {
    /// Mean of each slot.
    pub(crate) mean: Vec<RoundedFigure>,
    /// Least of each slot; `None` where slots have one value each.
    pub(crate) min: Option<Vec<RoundedFigure>>,
    /// Most of each slot.
    pub(crate) max: Option<Vec<RoundedFigure>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        let written = |value| serde_json::to_string(&RoundedFigure(value)).unwrap();
        for (value, text) in [
            (0.0, "0"),
            (123_456.0, "123500"),
            (0.001_234_56, "0.001235"),
            (-1.0, "-1"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
            (2.5, "2.5"),
        ] {
            assert_eq!(written(value), text);
        }
    }
}
