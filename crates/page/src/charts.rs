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

/// Number of colours before they repeat.
const COLOURS: usize = 7;

/// Drawing of a chart.
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

/// A named moment of a chart's time axis.
pub struct Marker<'a> {
    /// Its place as the axis has it: a time of day, or seconds.
    pub place: String,
    /// The same as a share of the axis, from 0 to 1.
    pub share: f64,
    /// Its name.
    pub name: &'a str,
}

/// Width of the narrowest plot, in pixels, and of a letter of a marker's name.
const PLOT_WIDTH: f64 = 380.0;
const LETTER_WIDTH: f64 = 6.2;
/// Height of a marker's name, in pixels.
const LINE_HEIGHT: f64 = 14.0;

/// A line for each marker, and its name at the upper end, left or right of the line where there is room. Names
/// that would be printed over each other stand below each other.
pub fn markers(markers: &[Marker<'_>]) -> (Vec<Shape>, Vec<Annotation>) {
    let lines = markers.iter().map(|marker| {
        Shape::new()
            .shape_type(ShapeType::Line)
            .y_ref("paper")
            .x0(marker.place.clone())
            .x1(marker.place.clone())
            .y0(0.0)
            .y1(1.0)
            .line(
                ShapeLine::new()
                    .color("var(--ink)")
                    .width(1.2)
                    .dash(DashType::Dash),
            )
    });
    let spans: Vec<(f64, f64)> = markers.iter().map(span).collect();
    let names = markers.iter().zip(rows(&spans)).map(|(marker, row)| {
        let anchor = if is_left_of_line(marker) {
            Anchor::Right
        } else {
            Anchor::Left
        };
        Annotation::new()
            .x(marker.place.clone())
            .y(1.0)
            .y_ref("paper")
            .y_shift(-LINE_HEIGHT * row as f64)
            .text(for_plotly(marker.name))
            .show_arrow(false)
            .x_anchor(anchor)
            .y_anchor(Anchor::Top)
            .font(font(11).color("var(--ink)"))
    });
    (lines.collect(), names.collect())
}

fn is_left_of_line(marker: &Marker<'_>) -> bool {
    marker.share > 0.5
}

/// From where to where a marker's name takes the axis.
fn span(marker: &Marker<'_>) -> (f64, f64) {
    let width = (marker.name.chars().count() + 1) as f64 * LETTER_WIDTH / PLOT_WIDTH;
    if is_left_of_line(marker) {
        (marker.share - width, marker.share)
    } else {
        (marker.share, marker.share + width)
    }
}

/// The first row for each span in which no other overlaps it.
fn rows(spans: &[(f64, f64)]) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        let taken = |row: usize| {
            let others = spans.iter().zip(&rows);
            others
                .into_iter()
                .any(|((start, end), other)| *other == row && start < to && from < end)
        };
        let free = (0..).find(|row| !taken(*row)).unwrap_or(0);
        rows.push(free);
    }
    rows
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
    fn names_of_close_markers_stand_below_each_other() {
        let marker = |share, name| Marker {
            place: String::new(),
            share,
            name,
        };
        let rows_of = |markers: &[Marker<'_>]| rows(&markers.iter().map(span).collect::<Vec<_>>());
        let close = [
            marker(0.10, "deploy 1"),
            marker(0.11, "deploy 2"),
            marker(0.12, "deploy 3"),
            marker(0.45, "deploy 4"),
            marker(0.99, "deploy 5"),
            marker(0.98, "deploy 6"),
        ];
        assert_eq!(rows_of(&close), [0, 1, 2, 0, 0, 1]);
        // None of them leaves the chart at its right end.
        assert!(close.iter().all(|marker| span(marker).1 <= 1.0));
    }

    #[test]
    fn rounding_keeps_five_digits() {
        assert_eq!(rounded(123_456.0), 123_460.0);
        assert_eq!(rounded(0.000_123_456_7), 0.000_123_46);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(-2.5), -2.5);
    }
}
