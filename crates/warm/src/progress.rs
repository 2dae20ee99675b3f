//! Progress line of a volume.

use job::{Progress, ProgressLine, ProgressLines};
use record::Bytes;

use super::reading::ReadingProgress;
use ui::format::percent;
use ui::units::{rate, span};

/// The line of one volume.
pub(crate) struct VolumeLine {
    line: ProgressLine,
    planned: Bytes,
}

impl VolumeLine {
    /// The line of a volume of which `planned` bytes are to be read.
    pub(crate) fn new(lines: &ProgressLines, name: &str, planned: Bytes) -> VolumeLine {
        VolumeLine {
            line: lines.line(name),
            planned,
        }
    }

    /// Shows the state of the work.
    pub(crate) fn show(&self, at: &ReadingProgress<'_>) {
        // Until the space in use is known, the plan does not include it.
        let planned = self.planned.0.max(at.left.0);
        let progress = Progress {
            position: planned - at.left.0,
            length: planned,
            message: message(at),
        };
        self.line.show(move || progress);
    }

    /// Removes the line at the end of the work.
    pub(crate) fn end(self) {
        self.line.end();
    }
}

fn message(at: &ReadingProgress<'_>) -> String {
    let mut parts = Vec::new();
    parts.extend(at.stage.map(|stage| format!("{}:", stage.name())));
    let speed = at.rate.filter(|rate| *rate > 0.0);
    if let Some(speed) = speed {
        parts.push(format!("{}, {} in flight,", rate(speed), at.depth));
    }
    parts.extend(at.cold.map(|cold| format!("{} cold,", percent(cold))));
    parts.extend(at.foreground.iter().map(|text| format!("{text},")));
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
        let at = ReadingProgress {
            done: &Ranges::new(),
            unreadable: &Ranges::new(),
            stage: Some(Stage::Rest),
            rate: Some(Bytes::mib(125).0 as f64),
            cold: Some(0.5),
            depth: 12,
            left: Bytes::gib(15),
            foreground: Some("p99 3.1 ms of 5 ms".to_owned()),
        };
        assert_eq!(
            message(&at),
            "rest: 125 MiB/s, 12 in flight, 50 % cold, p99 3.1 ms of 5 ms, 2 min left"
        );
        let unknown = ReadingProgress {
            rate: None,
            cold: None,
            stage: None,
            foreground: None,
            ..at
        };
        assert_eq!(message(&unknown), "15 GiB left");
    }
}
