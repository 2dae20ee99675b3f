//! Progress of reading a long log.

use std::cell::{Cell, OnceCell};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use record::{Bytes, Nanos};

use ui::format;
use ui::progress::alone;

/// Time after which the bar appears.
const BAR_DELAY: Duration = Duration::from_secs(1);
/// Bytes after which the clock is read.
const STEP: u64 = 1 << 16;
const MIB: f64 = 1_048_576.0;

/// Progress bar on standard error, where that is a terminal.
pub(super) struct Progress {
    watched: bool,
    /// Length of the log; `None` where it comes through a pipe.
    total: Option<u64>,
    began: Instant,
    read: Cell<u64>,
    shown: Cell<u64>,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    /// Progress of a log of `total` bytes, if its length is known.
    pub(super) fn new(total: Option<u64>, watched: bool) -> Progress {
        Progress {
            watched,
            total,
            began: Instant::now(),
            read: Cell::new(0),
            shown: Cell::new(0),
            bar: OnceCell::new(),
        }
    }

    /// Adds bytes that were read.
    pub(super) fn add(&self, bytes: usize) {
        let read = self.read.get() + bytes as u64;
        self.read.set(read);
        if !self.watched || read - self.shown.get() < STEP {
            return;
        }
        self.shown.set(read);
        let passed = self.began.elapsed();
        if passed < BAR_DELAY {
            return;
        }
        self.draw(self.bar.get_or_init(|| self.bar()), passed);
    }

    /// Updates the bar while no data arrive, so that the rate falls.
    pub(super) fn wait(&self) {
        if let Some(bar) = self.bar.get() {
            self.draw(bar, self.began.elapsed());
        }
    }

    fn draw(&self, bar: &ProgressBar, passed: Duration) {
        let read = self.read.get();
        bar.set_position(read);
        bar.set_message(text(read, self.total, passed));
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> ProgressBar {
        let template = match self.total {
            Some(_) => "[{bar:20}] {wide_msg}",
            None => "{wide_msg}",
        };
        alone(self.total, template)
    }
}

/// Progress, speed, and time left.
fn text(read: u64, total: Option<u64>, passed: Duration) -> String {
    let rate = read as f64 / passed.as_secs_f64().max(1e-3);
    let speed = format!("at {} MiB/s", format::number(rate / MIB));
    match total {
        None => format!("{} read {speed}", Bytes(read)),
        Some(total) => {
            let left = total.saturating_sub(read) as f64 / rate.max(1.0);
            let left = Nanos((left * 1e9) as u64);
            format!(
                "{} of {} {speed}, about {left} left",
                Bytes(read),
                Bytes(total)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_far_how_fast_and_how_long() {
        let second = Duration::from_secs(1);
        let gib = 1 << 30;
        assert_eq!(
            text(gib, Some(4 * gib), 2 * second),
            "1 GiB of 4 GiB at 512 MiB/s, about 6.00 s left"
        );
        assert_eq!(text(gib / 2, None, 2 * second), "512 MiB read at 256 MiB/s");
        // A log that grows meanwhile.
        assert!(text(gib, Some(0), second).ends_with("about 0 ns left"));
        text(0, Some(1), Duration::ZERO);
    }

    #[test]
    fn a_file_that_is_read_at_once_has_no_bar() {
        // However long a busy host takes over it.
        let progress = Progress {
            began: Instant::now() + 1000 * BAR_DELAY,
            ..Progress::new(Some(1 << 30), true)
        };
        progress.add(1 << 29);
        assert!(progress.bar.get().is_none());
        let unwatched = Progress {
            began: Instant::now() - 2 * BAR_DELAY,
            ..Progress::new(None, false)
        };
        unwatched.add(1 << 29);
        assert!(unwatched.bar.get().is_none());
        let long = Progress {
            began: Instant::now() - 2 * BAR_DELAY,
            ..Progress::new(None, true)
        };
        long.add(1);
        assert!(long.bar.get().is_none());
        long.add(1 << 20);
        assert!(long.bar.get().is_some());
        long.end();
    }
}
