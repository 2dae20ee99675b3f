//! The time axis of a phase, and the marks on it.

use page::charts::{Marker, axis, markers, rounded};
use page::plot::{Axis, Layout, Shape};
use record::Phase;

use super::super::groups::Group;

/// Nanoseconds as seconds, the unit of latency axes.
pub(super) fn as_seconds(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e9)
}

/// The time since a phase began, up to the end of the longest member.
pub(super) fn time_axis(group: &Group<'_>) -> Axis {
    axis("seconds since the phase began").range(vec![0.0, rounded(end_of(group))])
}

/// End of a phase's windows, in seconds from its start.
pub(super) fn end(phase: &Phase) -> f64 {
    phase
        .windows
        .last()
        .map_or(0.0, |last| last.t_s + last.seconds)
}

/// Seconds that the longest member took.
pub(super) fn end_of(group: &Group<'_>) -> f64 {
    let members = group.members.iter();
    let ends = members.map(|member| end(member.phase));
    ends.fold(0.0, f64::max)
}

/// A layout over the time of a phase with these shapes, and the marks that were set during the phase.
pub(super) fn marked(layout: Layout, group: &Group<'_>, mut shapes: Vec<Shape>) -> Layout {
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
