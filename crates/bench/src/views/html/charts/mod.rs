//! The charts of a phase as figures.
//!
//! A colour is the name of a style property, such as `var(--run-0)`, or `var(--run-0) 20%` for a transparent one. The
//! page's script replaces it with the theme's colour, so that a figure is the same in light and dark mode.

mod cdf;
mod heatmap;
mod line;
mod over_time;
mod time;

use page::charts::Chart;
use record::Direction;

use super::groups::Group;

/// Charts of a group of phases, of a report on `runs` runs.
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

/// Directions that are shown over time. Where each write is followed by an fdatasync, only commits are shown, which
/// include both; a single fdatasync at the end is not shown.
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
        Direction::Trim => true,
    };
    present.into_iter().filter(wanted).collect()
}
