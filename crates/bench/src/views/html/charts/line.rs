//! Lines of a run and direction: their style and their name.

use page::charts::colour_index;
use page::escape::plain;
use page::plot::{Dash, Line};

use super::super::groups::Member;

/// Style of the lines of one run and direction. The colour is the run's; with only one run it is the direction's. The
/// dash shows the direction too.
pub(super) struct Style {
    pub(super) colour: usize,
    pub(super) dash: Dash,
    /// Opacity of an area, in percent: less where several lie over each other.
    pub(super) area: u32,
}

impl Style {
    /// The style of the `nth` direction of a chart.
    pub(super) fn new(member: &Member<'_>, nth: usize, runs: usize) -> Style {
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

    pub(super) fn colour(&self) -> String {
        format!("var(--run-{})", self.colour)
    }

    /// The colour with this opacity, in percent.
    pub(super) fn tint(&self, percent: u32) -> String {
        format!("var(--run-{}) {percent}%", self.colour)
    }

    pub(super) fn line(&self, width: f64) -> Line {
        Line::new()
            .color(self.colour())
            .width(width)
            .dash(self.dash)
    }
}

/// Name of a line in a legend: the run if there are several, and the direction if there are several; with both, the
/// run's short id, for lack of space.
pub(super) fn line_name(member: &Member<'_>, direction: Option<&str>, runs: usize) -> String {
    match (runs > 1, direction) {
        (true, Some(direction)) => plain(&format!("{} {direction}", member.subject.short)),
        (true, None) => plain(&member.subject.label),
        (false, direction) => direction.unwrap_or_default().to_owned(),
    }
}
