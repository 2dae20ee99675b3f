//! The progress line while a phase runs. It goes to standard error, and only to a terminal.

use std::time::Duration;

use indicatif::ProgressBar;
use record::{Bytes, Histogram, Window};

use ui::format;
use ui::progress::{alone, is_narrow};
use ui::units::span;

/// A progress line, which only a terminal gets.
pub(crate) struct Progress {
    watched: bool,
    line: Option<ProgressBar>,
    seconds: f64,
}

impl Progress {
    /// Progress, shown only if `watched` (standard error is a terminal).
    pub(crate) fn new(watched: bool) -> Progress {
        Progress {
            watched,
            line: None,
            seconds: 0.0,
        }
    }

    /// Begins a phase that takes at most so many seconds; infinite where that is not known.
    pub(crate) fn begin(&mut self, name: &str, seconds: f64) {
        self.end();
        self.seconds = seconds;
        if !self.watched {
            return;
        }
        let length = seconds.is_finite().then_some((seconds * 1000.0) as u64);
        let template = match is_narrow() {
            true => "{prefix} {wide_msg}",
            false => "{prefix:<10} [{bar:10}] {wide_msg}",
        };
        let line = alone(length, template);
        line.set_prefix(name.to_owned());
        line.set_message("starting");
        line.enable_steady_tick(Duration::from_millis(200));
        self.line = Some(line);
    }

    /// A window of a phase is over.
    pub(crate) fn window(&self, window: &Window) {
        let Some(line) = &self.line else { return };
        let mut latency = Histogram::new();
        let flows = [&window.read, &window.write, &window.commit];
        flows
            .into_iter()
            .flatten()
            .for_each(|flow| latency.merge(&flow.latency));
        let took = window.t_s + window.seconds;
        let time = match self.seconds.is_finite() {
            true => format!("≤ {} left", span((self.seconds - took).max(0.0))),
            false => span(took),
        };
        line.set_position((took * 1000.0) as u64);
        line.set_message(format!(
            "{} IOPS, p99 {}, {time}",
            format::number(window.ops() as f64 / window.seconds),
            format::latency(latency.quantile(0.99)),
        ));
    }

    /// Shows how many bytes of the test file are written, of at most `most`, `seconds` after the start of at most
    /// about `timeout` seconds.
    pub(crate) fn laid_out(&self, written: Bytes, most: Bytes, seconds: f64, timeout: f64) {
        let Some(line) = &self.line else { return };
        let share = written.0 as f64 / most.0 as f64;
        line.set_length(1000);
        line.set_position((share.max((seconds / timeout).min(1.0)) * 1000.0) as u64);
        let rate = written.0 as f64 / seconds.max(1e-9) / (1 << 20) as f64;
        line.set_message(format!("{written} at {} MiB/s", format::number(rate)));
    }

    /// Ends the phase: its line is removed.
    pub(crate) fn end(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
