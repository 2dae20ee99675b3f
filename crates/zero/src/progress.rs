//! The lines that a person watches, one for each disk. They go to standard error, and only to a
//! terminal.

use std::time::Instant;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use record::{Bytes, Nanos};

use super::kept::Disk;
use ui::progress::dress;
use ui::words;

/// How many steps a bar has.
const STEPS: u64 = 1000;

/// The lines, or nothing where nobody watches.
pub(crate) struct Progress {
    lines: Vec<Line>,
}

struct Line {
    bar: ProgressBar,
    began: Instant,
    /// What was settled when this start began.
    before: Bytes,
}

impl Progress {
    /// Shows progress if somebody watches.
    pub(crate) fn new(watched: bool, disks: &[Disk]) -> Progress {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let line = |disk: &Disk| {
            let bar = all.add(ProgressBar::new(STEPS));
            dress(&bar, "{prefix:<14} [{bar:10}] {wide_msg}");
            bar.set_prefix(disk.path.display().to_string());
            Line {
                bar,
                began: Instant::now(),
                before: disk.settled(),
            }
        };
        Progress {
            lines: if watched {
                disks.iter().map(line).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether there is anybody to show anything to.
    pub(crate) fn is_watched(&self) -> bool {
        !self.lines.is_empty()
    }

    /// A disk stands there now.
    pub(crate) fn show(&self, at: usize, disk: &Disk) {
        let Some(line) = self.lines.get(at) else {
            return;
        };
        let (settled, size) = (disk.settled(), disk.size);
        line.bar
            .set_position(settled.0.saturating_mul(STEPS) / size.0.max(1));
        let seconds = line.began.elapsed().as_secs_f64();
        let rate = (settled - line.before).0 as f64 / seconds.max(1e-3);
        let left = match rate {
            rate if rate > 0.0 => {
                let left = (size - settled).0 as f64 / rate;
                format!(", about {} left", Nanos((left * 1e9) as u64))
            }
            _ => String::new(),
        };
        let bad = match disk.failed.total() {
            Bytes(0) => String::new(),
            failed => format!(", {failed} could not be written"),
        };
        line.bar.set_message(format!(
            "{settled} of {size} at {} MiB/s{left}{bad}",
            words::number(rate / 1_048_576.0)
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.lines
            .iter()
            .for_each(|line| line.bar.finish_and_clear());
    }
}
