//! Progress line of a disk.

use std::time::Instant;

use job::{EtaEstimator, Progress, ProgressLine, ProgressLines};
use record::Bytes;
use ui::format;
use ui::units::span;

use super::checkpoint::Disk;

/// The line of one disk.
pub(crate) struct DiskLine {
    line: ProgressLine,
    began: Instant,
    eta: EtaEstimator,
}

impl DiskLine {
    /// The line of a disk, from its current state.
    pub(crate) fn new(lines: &ProgressLines, disk: &Disk) -> DiskLine {
        DiskLine {
            line: lines.line(&disk.path.display().to_string()),
            began: Instant::now(),
            eta: EtaEstimator::new(disk.done_or_failed().0),
        }
    }

    /// Shows the state of the disk.
    pub(crate) fn show(&mut self, disk: &Disk, foreground: Option<String>) {
        let (settled, size) = (disk.done_or_failed(), disk.size);
        let failed = disk.failed.total();
        let rate = self.eta.rate(self.began.elapsed().as_secs_f64(), settled.0);
        self.line.show(move || Progress {
            position: settled.0,
            length: size.0,
            message: message(settled, size, failed, rate, foreground),
        });
    }

    /// Removes the line at the end of the work.
    pub(crate) fn end(self) {
        self.line.end();
    }
}

fn message(
    settled: Bytes,
    size: Bytes,
    failed: Bytes,
    rate: Option<f64>,
    foreground: Option<String>,
) -> String {
    let left = rate.map_or(String::new(), |rate| {
        let left = (size - settled).0 as f64 / rate;
        format!(", about {} left", span(left))
    });
    let bad = match failed {
        Bytes(0) => String::new(),
        failed => format!(", {failed} could not be written"),
    };
    let foreground = foreground.map_or(String::new(), |text| format!(", {text}"));
    format!(
        "{settled} of {size} at {} MiB/s{foreground}{left}{bad}",
        format::number(rate.unwrap_or(0.0) / 1_048_576.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_rate_time_left_and_what_failed() {
        let (done, size, rate) = (Bytes::mib(50), Bytes::mib(250), Bytes::mib(20).0 as f64);
        assert_eq!(
            message(
                done,
                size,
                Bytes::kib(4),
                Some(rate),
                Some("p99 3 ms of 5 ms".to_owned())
            ),
            "50 MiB of 250 MiB at 20.0 MiB/s, p99 3 ms of 5 ms, about 10 s left, 4 KiB could not be written"
        );
        assert_eq!(
            message(Bytes(0), size, Bytes(0), None, None),
            "0 B of 250 MiB at 0.0 MiB/s"
        );
    }
}
