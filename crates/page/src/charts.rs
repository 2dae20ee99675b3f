//! Charts as Plotly figures.
//!
//! A colour is the name of a style property, such as `var(--run-0)`, or `var(--run-0) 20%` where it
//! is to be seen through; the page's script puts the theme's colour in its place, so that a figure
//! is the same in light and dark.

use plotly::Trace;
use plotly::common::{
    Anchor, ColorScale, ColorScaleElement, DashType, Font, Label, Orientation, Title,
};
use plotly::layout::{
    Annotation, Axis, AxisType, DragMode, HoverMode, Layout, Legend, Margin, Shape, ShapeLine,
    ShapeType,
};
use serde::Serialize;

use crate::escape::for_plotly;
use crate::ticks;

/// How many colours there are before they repeat.
const COLOURS: usize = 7;

/// What a chart draws.
#[derive(Serialize)]
pub struct Figure {
    /// Lines, bars and areas.
    pub data: Vec<Box<dyn Trace>>,
    /// Axes, legend and marks.
    pub layout: Layout,
}

/// A chart and what is written around it.
pub struct Chart {
    /// Title.
    pub title: String,
    /// Text below the title.
    pub caption: String,
    /// Lines and axes.
    pub figure: Figure,
}

/// The colour of the run at `slot`.
pub fn colour_index(slot: usize) -> usize {
    slot % COLOURS
}

/// Five significant digits: more than a chart can show, and a third of the bytes.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The font of all that is written in a chart.
pub fn font(size: usize) -> Font {
    Font::new()
        .family("system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif")
        .size(size)
        .color("var(--muted)")
}

/// The colours of a heatmap, from the least to the most.
pub fn heat_scale() -> ColorScale {
    let steps = [0.0, 0.25, 0.5, 0.75, 1.0];
    let colours = steps
        .iter()
        .enumerate()
        .map(|(i, &at)| ColorScaleElement(at, format!("var(--heat-{i})")));
    ColorScale::Vector(colours.collect())
}

/// An axis with a title and nothing that draws attention.
pub fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(font(12)))
        .grid_color("var(--grid)")
        .line_color("var(--grid)")
        .zero_line(false)
        .tick_font(font(11))
}

/// A logarithmic axis of latency, in seconds, that holds `low` to `high` nanoseconds.
pub fn latency_axis(low: u64, high: u64) -> Axis {
    let (low, high) = (low.max(1) as f64 / 1e9, high.max(1) as f64 / 1e9);
    // Room at both ends, and for a single value too.
    let margin = (0.04 * (high / low).log10()).max(0.02);
    let (from, to) = (low.log10() - margin, high.log10() + margin);
    let ticks = ticks::logarithmic(from, to);
    axis("latency")
        .type_(AxisType::Log)
        .range(vec![rounded(from), rounded(to)])
        .tick_text(ticks.iter().map(|(_, text)| text.clone()).collect())
        .tick_values(ticks.into_iter().map(|(seconds, _)| seconds).collect())
}

/// A line at a moment of the time axis that somebody gave a name, and the name. `place` is as the
/// axis has it: a time of day, or seconds.
pub fn mark(place: &str, text: &str) -> (Shape, Annotation) {
    let line = Shape::new()
        .shape_type(ShapeType::Line)
        .y_ref("paper")
        .x0(place)
        .x1(place)
        .y0(0.0)
        .y1(1.0)
        .line(
            ShapeLine::new()
                .color("var(--ink)")
                .width(1.2)
                .dash(DashType::Dash),
        );
    let name = Annotation::new()
        .x(place)
        .y(1.0)
        .y_ref("paper")
        .text(for_plotly(text))
        .show_arrow(false)
        .x_anchor(Anchor::Left)
        .y_anchor(Anchor::Top)
        .font(font(11).color("var(--ink)"));
    (line, name)
}

/// The layout of every chart.
pub fn layout(x: Axis, y: Axis, legend: bool) -> Layout {
    let label = Label::new()
        .background_color("var(--raised)")
        .border_color("var(--line)")
        .font(font(12).color("var(--ink)"))
        .name_length(40);
    Layout::new()
        .auto_size(true)
        .paper_background_color("var(--surface)")
        .plot_background_color("var(--surface)")
        .font(font(12))
        .margin(
            Margin::new()
                .left(72)
                .right(16)
                .top(if legend { 28 } else { 10 })
                .bottom(44),
        )
        .show_legend(legend)
        .legend(
            Legend::new()
                .orientation(Orientation::Horizontal)
                .x(0.0)
                .x_anchor(Anchor::Left)
                .y(1.02)
                .y_anchor(Anchor::Bottom)
                .font(font(11)),
        )
        .hover_mode(HoverMode::X)
        .drag_mode(DragMode::Zoom)
        .hover_label(label)
        .x_axis(x)
        .y_axis(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_five_digits() {
        assert_eq!(rounded(123_456.0), 123_460.0);
        assert_eq!(rounded(0.000_123_456_7), 0.000_123_46);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(-2.5), -2.5);
    }
}
