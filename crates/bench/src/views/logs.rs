//! The windows of a run as logs of fio, each line an average over a window: fio's HOWTO, "Log File Formats".
//!
//! A line is `time, value, direction, block size, offset`: the time in milliseconds since the phase began,
//! and 0 for reads, 1 for writes and 2 for trims. Of averages fio gives 0 for block size and offset.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use record::{Activity, Direction, Phase, Window, WindowFlow};
use ui::exit::{ExitClass as _, Failure};
use ui::output::{OutputFile, OutputFormat};

/// A log of fio.
#[derive(Clone, Copy)]
enum Log {
    Iops,
    Bandwidth,
    Latency,
}

const LOGS: [Log; 3] = [Log::Iops, Log::Bandwidth, Log::Latency];

impl Log {
    /// Name of the log in fio.
    fn name(self) -> &'static str {
        match self {
            Log::Iops => "iops",
            Log::Bandwidth => "bw",
            Log::Latency => "lat",
        }
    }

    /// Value of a window: requests a second, KiB a second, or the mean latency in nanoseconds.
    fn value(self, flow: &WindowFlow, seconds: f64) -> f64 {
        match self {
            Log::Iops => flow.ops() as f64 / seconds,
            Log::Bandwidth => flow.bytes().0 as f64 / 1024.0 / seconds,
            Log::Latency => flow.latency.mean(),
        }
    }
}

/// Value of a window: requests a second, KiB a second, or the mean latency in nanoseconds.
pub(crate) struct Logs {
    prefix: PathBuf,
    force: bool,
}

impl Logs {
    /// Checks that the logs of a first phase can be written. The number of phases is not known before the run.
    ///
    /// # Errors
    /// Refused, if a log cannot be written, or would replace a file.
    pub(crate) fn check(prefix: &Path, force: bool, target: &Path) -> Result<Logs, Failure> {
        let logs = Logs {
            prefix: prefix.to_path_buf(),
            force,
        };
        for log in LOGS {
            logs.file(log, 1)?.is_not(target)?;
        }
        Ok(logs)
    }

    fn file(&self, log: Log, number: usize) -> Result<OutputFile, Failure> {
        let mut name = OsString::from(&self.prefix);
        name.push(format!("_{}.{number}.log", log.name()));
        OutputFile::check(Path::new(&name), OutputFormat::FioLog, self.force)
    }

    /// Writes the logs of all phases.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn write(&self, phases: &[Phase]) -> Result<(), Failure> {
        for (index, phase) in phases.iter().enumerate() {
            for log in LOGS {
                let file = self.file(log, index + 1).map_err(Failure::error).midway()?;
                file.write(text(log, phase).as_bytes()).midway()?;
            }
        }
        Ok(())
    }
}

fn text(log: Log, phase: &Phase) -> String {
    let mut text = String::new();
    for window in &phase.windows {
        for direction in [Direction::Read, Direction::Write, Direction::Trim] {
            let number = match phase.workload.activity(direction) {
                Activity::Read => 0,
                Activity::Trim => 2,
                _ => 1,
            };
            let flow = window.flow(direction).filter(|flow| flow.ops() > 0);
            if let Some(flow) = flow {
                let value = log.value(flow, window.seconds).round();
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}, {value}, {number}, 0, 0", end_ms(window));
            }
        }
    }
    text
}

fn end_ms(window: &Window) -> u64 {
    ((window.t_s + window.seconds) * 1e3).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::sample;

    #[test]
    fn each_window_is_a_line_for_each_direction() {
        let (run, _) = sample::database_run(1);
        let phase = &run.phases[0];
        let of = |log| -> Vec<Vec<u64>> {
            let line = |line: &str| line.split(", ").map(|part| part.parse().unwrap()).collect();
            text(log, phase).lines().map(line).collect()
        };
        for (at, window) in phase
            .windows
            .iter()
            .filter(|window| window.read.is_some())
            .enumerate()
        {
            let read = window.read.as_ref().unwrap();
            let reads = |log| {
                of(log)
                    .into_iter()
                    .filter(|line| line[2] == 0)
                    .nth(at)
                    .unwrap()
            };
            assert_eq!(reads(Log::Iops)[0], end_ms(window));
            let iops = read.ops() as f64 / window.seconds;
            assert!((reads(Log::Iops)[1] as f64 - iops).abs() <= 0.5);
            let kib = iops * phase.workload.block.0 as f64 / 1024.0;
            assert!((reads(Log::Bandwidth)[1] as f64 - kib).abs() <= 1.0);
            assert!((reads(Log::Latency)[1] as f64 - read.latency.mean()).abs() <= 0.5);
        }
    }
}
