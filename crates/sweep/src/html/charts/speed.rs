//! The figure of speed, and the intervals of its values.

use page::plot::Whiskers;

use super::super::view::PageView;
use crate::views::units::{FigureUnit, figure};
use crate::{Figure, Value};

/// The figure of speed and its unit: that of the objective, or for the objective cost that of the first requirement.
pub(super) fn speed(view: PageView<'_>) -> Option<(&Figure, FigureUnit)> {
    let settings = &view.record.settings;
    let required = settings.requires.first().map(|one| &one.figure);
    let figure = figure(&settings.objective).or(required)?;
    Some((figure, FigureUnit::of_metric(figure.metric)))
}

/// The whiskers of values that are drawn in `unit`; no whisker for a value without an interval.
pub(super) fn whiskers(values: &[Value], unit: FigureUnit) -> Whiskers {
    let up = |value: &Value| {
        value
            .high
            .map_or(0.0, |high| unit.scaled(high - value.mean))
    };
    let down = |value: &Value| value.low.map_or(0.0, |low| unit.scaled(value.mean - low));
    Whiskers::new()
        .array(values.iter().map(up).collect())
        .array_minus(values.iter().map(down).collect())
        .thickness(1.5)
}
