//! The charts of a phase as Plotly figures.
//!
//! A colour is the name of a style property, such as `var(--run-0)`, or `var(--run-0) 20%` where it
//! is to be seen through; the page's script puts the theme's colour in its place, so that a figure
//! is the same in light and dark.

mod cdf;
mod heatmap;
mod over_time;
mod ticks;

use plotly::Trace;
use plotly::common::{
    Anchor, ColorScale, ColorScaleElement, DashType, Font, Label, Line, Orientation, Title,
};
use plotly::layout::{
    Annotation, Axis, AxisType, DragMode, HoverMode, Layout, Legend, Margin, Shape, ShapeLine,
    ShapeType,
};
use record::Direction;
use serde::Serialize;

use super::escape::for_plotly;
use super::phases::{Group, Member};

/// How many colours there are before they repeat.
const COLOURS: usize = 7;

/// What a chart draws.
#[derive(Serialize)]
pub(super) struct Figure {
    pub(super) data: Vec<Box<dyn Trace>>,
    pub(super) layout: Layout,
}

/// A chart and what is written around it.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) figure: Figure,
}

/// The colour of the run at `slot`.
pub(super) fn colour_index(slot: usize) -> usize {
    slot % COLOURS
}

/// All charts of a group of phases, of a report on `runs` runs.
pub(super) fn all(group: &Group<'_>, runs: usize) -> Vec<Chart> {
    let directions = directions_over_time(group);
    let mut charts = Vec::new();
    charts.extend(over_time::rates(group, &directions, runs));
    charts.extend(over_time::latencies(group, &directions, runs));
    charts.extend(heatmap::all(group, &directions, runs));
    charts.extend(cdf::all(group, runs));
    charts
}

/// The latency distributions of one direction of a group of phases, of a report on `runs` runs.
pub(super) fn distribution(group: &Group<'_>, direction: Direction, runs: usize) -> Option<Chart> {
    cdf::of(group, &[direction], runs)
}

/// The directions whose course is shown. Where each write is followed by an fdatasync, a commit
/// is both, and its course says it all; an fdatasync at the end has no course.
fn directions_over_time(group: &Group<'_>) -> Vec<Direction> {
    let present = group.directions_where(|flow| flow.ops > 0);
    let commits = present.contains(&Direction::Commit)
        && group
            .members
            .iter()
            .all(|member| member.phase.workload.sync_every == 1);
    let wanted = |direction: &Direction| match direction {
        Direction::Read => true,
        Direction::Write => !commits,
        Direction::Sync => false,
        Direction::Commit => commits,
    };
    present.into_iter().filter(wanted).collect()
}

/// How the lines of one run and direction look. Colour is the run's; where there is only one run
/// it is the direction's, which the dash tells apart as well.
struct Style {
    colour: usize,
    dash: DashType,
    /// How much an area shows, in percent: less where several lie over each other.
    area: u32,
}

impl Style {
    /// The style of the `nth` direction of a chart.
    fn new(member: &Member<'_>, nth: usize, runs: usize) -> Style {
        Style {
            colour: if runs > 1 {
                colour_index(member.subject.slot)
            } else {
                colour_index(nth)
            },
            dash: match nth {
                0 => DashType::Solid,
                1 => DashType::Dash,
                2 => DashType::Dot,
                _ => DashType::DashDot,
            },
            area: if runs > 1 { 6 } else { 14 },
        }
    }

    fn colour(&self) -> String {
        format!("var(--run-{})", self.colour)
    }

    /// The colour, seen through.
    fn tint(&self, percent: u32) -> String {
        format!("var(--run-{}) {percent}%", self.colour)
    }

    fn line(&self, width: f64) -> Line {
        Line::new()
            .color(self.colour())
            .width(width)
            .dash(self.dash.clone())
    }
}

/// What a legend calls a line: the run where there are several, and the direction where there are
/// several of those; then the run's short id has to do, for want of room.
fn line_name(member: &Member<'_>, direction: Option<&str>, runs: usize) -> String {
    match (runs > 1, direction) {
        (true, Some(direction)) => for_plotly(&format!("{} {direction}", member.subject.short)),
        (true, None) => for_plotly(&member.subject.label),
        (false, direction) => direction.unwrap_or_default().to_owned(),
    }
}

/// Five significant digits: more than a chart can show, and a third of the bytes.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// Nanoseconds as seconds, which is what latency axes are in.
fn as_seconds(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e9)
}

/// The font of all that is written in a chart.
pub(super) fn font(size: usize) -> Font {
    Font::new()
        .family("system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif")
        .size(size)
        .color("var(--muted)")
}

/// The colours of a heatmap, from the least to the most.
pub(super) fn heat_scale() -> ColorScale {
    let steps = [0.0, 0.25, 0.5, 0.75, 1.0];
    let colours = steps
        .iter()
        .enumerate()
        .map(|(i, &at)| ColorScaleElement(at, format!("var(--heat-{i})")));
    ColorScale::Vector(colours.collect())
}

/// An axis with a title and nothing that draws attention.
pub(super) fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(font(12)))
        .grid_color("var(--grid)")
        .line_color("var(--grid)")
        .zero_line(false)
        .tick_font(font(11))
}

/// The time since a phase began, as far as the longest member went.
fn time_axis(group: &Group<'_>) -> Axis {
    let ends = group
        .members
        .iter()
        .map(|member| over_time::end(member.phase));
    let end = ends.fold(0.0, f64::max);
    axis("seconds since the phase began").range(vec![0.0, rounded(end)])
}

/// A logarithmic axis of latency, in seconds, that holds `low` to `high` nanoseconds.
fn latency_axis(low: u64, high: u64) -> Axis {
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
pub(super) fn mark(place: &str, text: &str) -> (Shape, Annotation) {
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

/// A layout over the time of a phase with these shapes, and the marks that were set meanwhile.
fn marked(layout: Layout, group: &Group<'_>, mut shapes: Vec<Shape>) -> Layout {
    let marks = group
        .marks
        .iter()
        .map(|(at, text)| mark(&rounded(*at).to_string(), text));
    let (lines, names): (Vec<Shape>, Vec<Annotation>) = marks.unzip();
    if lines.is_empty() && shapes.is_empty() {
        return layout;
    }
    shapes.extend(lines);
    layout.shapes(shapes).annotations(names)
}

/// The layout of every chart.
pub(super) fn layout(x: Axis, y: Axis, legend: bool) -> Layout {
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
