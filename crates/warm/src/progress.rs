//! The lines that a person watches, one a volume. They go to standard error, and only to a terminal.

use indicatif::ProgressBar;
use record::Bytes;

use super::reading::At;
use ui::progress::Bars;
use ui::units::{rate, span};
use ui::words::percent;

/// All lines.
pub(crate) struct Lines(Bars);

impl Lines {
    /// Lines, if somebody watches.
    pub(crate) fn new(watched: bool) -> Lines {
        Lines(Bars::new(watched))
    }

    /// The line of a volume of which so much is to be read.
    pub(crate) fn line(&self, name: &str, planned: Bytes) -> Line {
        Line {
            bar: self.0.add(name, planned.0),
            planned,
        }
    }
}

/// The line of one volume.
pub(crate) struct Line {
    bar: Option<ProgressBar>,
    planned: Bytes,
}

impl Line {
    /// Shows how the work stands.
    pub(crate) fn show(&self, at: &At<'_>) {
        let Some(bar) = &self.bar else { return };
        // What is used is counted in only once it is known.
        let planned = self.planned.0.max(at.left.0);
        bar.set_length(planned);
        bar.set_position(planned - at.left.0);
        bar.set_message(message(at));
    }

    /// The work is over; the line goes.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn message(at: &At<'_>) -> String {
    let mut parts = Vec::new();
    parts.extend(at.stage.map(|stage| format!("{}:", stage.word())));
    let speed = at.rate.filter(|rate| *rate > 0.0);
    if let Some(speed) = speed {
        parts.push(format!("{}, {} in flight,", rate(speed), at.depth));
    }
    parts.extend(at.cold.map(|cold| format!("{} cold,", percent(cold))));
    parts.push(match speed {
        Some(speed) => format!("{} left", span(at.left.0 as f64 / speed)),
        None => format!("{} left", at.left),
    });
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use record::Ranges;

    use super::super::plan::Stage;
    use super::*;

    #[test]
    fn a_line_says_rate_cold_share_and_time_left() {
        let at = At {
            done: &Ranges::new(),
            unreadable: &Ranges::new(),
            stage: Some(Stage::Rest),
            rate: Some(Bytes::mib(125).0 as f64),
            cold: Some(0.5),
            depth: 12,
            left: Bytes::gib(15),
        };
        assert_eq!(
            message(&at),
            "rest: 125 MiB/s, 12 in flight, 50 % cold, 2 min left"
        );
        let unknown = At {
            rate: None,
            cold: None,
            stage: None,
            ..at
        };
        assert_eq!(message(&unknown), "15 GiB left");
    }
}
