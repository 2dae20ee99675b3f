//! The charts of a phase as figures.
//!
//! A colour is the name of a style property, such as `var(--run-0)`, or `var(--run-0) 20%` where it
//! is to be seen through; the page's script puts the theme's colour in its place, so that a figure
//! is the same in light and dark.

mod cdf;
mod heatmap;
mod over_time;

use page::charts::{
    Chart, Figure, Marker, axis, colour_index, latency_axis, layout, markers, rounded,
};
use page::escape::plain;
use page::plot::{Axis, Dash, Layout, Line, Shape};
use record::Direction;

use super::groups::{Group, Member};

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
pub fn distribution(group: &Group<'_>, direction: Direction, runs: usize) -> Option<Chart> {
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

/// Look of the lines of one run and direction. Colour is the run's; where there is only one run it is the
/// direction's, which the dash tells apart as well.
struct Style {
    colour: usize,
    dash: Dash,
    /// Opacity of an area, in percent: less where several lie over each other.
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
                0 => Dash::Solid,
                1 => Dash::Dash,
                2 => Dash::Dot,
                _ => Dash::DashDot,
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
            .dash(self.dash)
    }
}

/// Name of a line in a legend: the run where there are several, and the direction where there are several of
/// those; then the run's short id has to do, for want of room.
fn line_name(member: &Member<'_>, direction: Option<&str>, runs: usize) -> String {
    match (runs > 1, direction) {
        (true, Some(direction)) => plain(&format!("{} {direction}", member.subject.short)),
        (true, None) => plain(&member.subject.label),
        (false, direction) => direction.unwrap_or_default().to_owned(),
    }
}

/// Nanoseconds as seconds, which is what latency axes are in.
fn as_seconds(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e9)
}

/// The time since a phase began, as far as the longest member went.
fn time_axis(group: &Group<'_>) -> Axis {
    axis("seconds since the phase began").range(vec![0.0, rounded(end_of(group))])
}

/// Seconds that the longest member took.
fn end_of(group: &Group<'_>) -> f64 {
    let members = group.members.iter();
    let ends = members.map(|member| over_time::end(member.phase));
    ends.fold(0.0, f64::max)
}

/// A layout over the time of a phase with these shapes, and the marks that were set meanwhile.
fn marked(layout: Layout, group: &Group<'_>, mut shapes: Vec<Shape>) -> Layout {
    let end = end_of(group).max(f64::MIN_POSITIVE);
    let marks: Vec<Marker<'_>> = group
        .marks
        .iter()
        .map(|(at, text)| Marker {
            place: rounded(*at).to_string(),
            share: at / end,
            name: text,
        })
        .collect();
    let (lines, names) = markers(&marks);
    if lines.is_empty() && shapes.is_empty() {
        return layout;
    }
    shapes.extend(lines);
    layout.shapes(shapes).annotations(names)
}
