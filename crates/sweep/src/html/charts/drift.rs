//! The baseline over time, which shows the drift of the devices.

use super::super::view::PageView;
use super::speed::speed;
use page::charts::{Chart, Figure, axis, layout, rounded};
use page::plot::{Hover, Line, Marker, Mode, Shape, ShapeKind, Trace};
use ui::format;

/// The chart; `None` before the baseline was measured twice.
pub(super) fn chart(view: PageView<'_>) -> Option<Chart> {
    let drift = view.decision.drift.as_ref()?;
    let (figure, unit) = speed(view)?;
    let last = drift.points.last()?.0;
    // Short sweeps in minutes, long ones in hours.
    let (per, word) = if last < 5_400.0 {
        (60.0, "minutes")
    } else {
        (3_600.0, "hours")
    };
    let times: Vec<f64> = drift.points.iter().map(|(t, _)| rounded(t / per)).collect();
    let values: Vec<f64> = drift
        .points
        .iter()
        .map(|(_, value)| rounded(unit.scaled(*value)))
        .collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let tie = view.record.settings.tie;
    let (low, high) = (mean * (1.0 - tie), mean * (1.0 + tie));
    // The axis covers at least the band, since noise alone would look like large changes.
    let bottom = values.iter().copied().fold(low, f64::min);
    let top = values.iter().copied().fold(high, f64::max);
    let room = (top - bottom) * 0.25;
    let band = Shape::new()
        .kind(ShapeKind::Rect)
        .y0(rounded(low))
        .y1(rounded(high))
        .fill_color("var(--run-0) 14%");
    let text = drift.points.iter().map(|(_, value)| unit.show(*value));
    let trace = Trace::points(times, values)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color("var(--run-0)").width(2.0))
        .marker(Marker::new().color("var(--run-0)").size(8))
        .text_array(text.collect())
        .hover_template("%{text}")
        .nameless(true);
    let x = axis(&format!("{word} since the sweep began"));
    let y = axis(unit.name()).range(vec![rounded(bottom - room), rounded(top + room)]);
    Some(Chart {
        title: format!("{figure} of the baseline"),
        caption: format!(
            "{} Band: ±{} around the mean, within which layouts count as equal; the axis does not \
             begin at zero",
            drift.text,
            format::percent(tie)
        ),
        figure: Figure {
            layout: layout(x, y, false).hover(Hover::Closest).shapes(vec![band]),
            data: vec![trace],
        },
    })
}
