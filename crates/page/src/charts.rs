//! Charts and their common parts.
//!
//! A colour is the name of a style property, such as `var(--run-0)`, or `var(--run-0) 20%` for a transparent one. The
//! page's script replaces it with the theme's colour, so that a figure is the same in light and dark mode.

use crate::plot::{
    Anchor, Annotation, Axis, Dash, Hover, Layout, Line, Scale, Shape, ShapeKind, Trace,
};
use serde::Serialize;

use crate::escape::plain;
use crate::ticks;
pub use crate::ticks::rounded;

/// Number of colours before they repeat.
const COLOURS: usize = 7;

/// Drawing of a chart.
#[derive(Serialize)]
pub struct Figure {
    /// Lines, bars and areas.
    pub data: Vec<Trace>,
    /// Axes, legend and marks.
    pub layout: Layout,
}

/// A chart with its title and caption.
pub struct Chart {
    /// Title above the chart.
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

/// An axis with a title, in the default style.
pub fn axis(title: &str) -> Axis {
    Axis::new().title(title)
}

/// A logarithmic axis of latency, in seconds, for values from `low` to `high` nanoseconds.
pub fn latency_axis(low: u64, high: u64) -> Axis {
    let (low, high) = (low.max(1) as f64 / 1e9, high.max(1) as f64 / 1e9);
    // Room at both ends, and for a single value too.
    let margin = (0.04 * (high / low).log10()).max(0.02);
    let (from, to) = (low.log10() - margin, high.log10() + margin);
    let ticks = ticks::logarithmic(from, to);
    axis("latency")
        .scale(Scale::Log)
        .range(vec![rounded(from), rounded(to)])
        .tick_text(ticks.iter().map(|(_, text)| text.clone()).collect())
        .tick_values(ticks.into_iter().map(|(seconds, _)| seconds).collect())
}

/// A named moment on a chart's time axis.
pub struct Marker<'a> {
    /// Position on the axis: a time of day, or seconds.
    pub place: String,
    /// Position as a share of the axis, from 0 to 1.
    pub share: f64,
    /// Name of the marker.
    pub name: &'a str,
}

/// Width of the narrowest plot, in pixels.
const PLOT_WIDTH: f64 = 270.0;
/// Width of a letter of a marker's name, in pixels.
const LETTER_WIDTH: f64 = 6.2;

/// A line for each marker, and its name at the upper end, left or right of the line where there is room. Names that
/// would overlap are put below each other.
pub fn markers(markers: &[Marker<'_>]) -> (Vec<Shape>, Vec<Annotation>) {
    let lines = markers.iter().map(|marker| {
        Shape::new()
            .kind(ShapeKind::Line)
            .x0(marker.place.clone())
            .x1(marker.place.clone())
            .line(
                Line::new()
                    .color("var(--marker)")
                    .width(1.2)
                    .dash(Dash::Dash),
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
            .row(row)
            .text(plain(marker.name))
            .anchor(anchor)
            .color("var(--marker)")
    });
    (lines.collect(), names.collect())
}

fn is_left_of_line(marker: &Marker<'_>) -> bool {
    marker.share > 0.5
}

/// Part of the axis that a marker's name takes: its start and end, 0 to 1.
fn span(marker: &Marker<'_>) -> (f64, f64) {
    let width = (marker.name.chars().count() + 1) as f64 * LETTER_WIDTH / PLOT_WIDTH;
    if is_left_of_line(marker) {
        (marker.share - width, marker.share)
    } else {
        (marker.share, marker.share + width)
    }
}

/// Row of each span: the first in which no other overlaps it.
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

/// The default layout of a chart.
pub fn layout(x: Axis, y: Axis, legend: bool) -> Layout {
    Layout::new()
        .x_axis(x)
        .y_axis(y)
        .legend(legend)
        .hover(Hover::X)
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
        // None of them extends beyond the right end of the chart.
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
