//! Summary of the foreground's latency, alone and beside the background.

use record::Histogram;
use serde::{Deserialize, Serialize};

use super::{Sample, TargetSource, Targets};

/// Maximum number of slices that are kept; beyond it each two are merged into one of twice the length.
const MAX_SLICES: usize = 480;
/// Initial length of a slice, in seconds.
const SLICE_S: f64 = 1.0;
/// Length of the intervals over which targets are judged, in seconds.
const WINDOW_S: f64 = 5.0;

/// Limit of the background's rate beside a foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeldBy {
    /// The foreground was measured alone.
    Measuring,
    /// The rate was still rising in the search.
    Search,
    /// The mean's target.
    Mean,
    /// The p99's target.
    P99,
    /// The foreground's throughput.
    Throughput,
    /// The background used less than its allowed rate: its device, or another limit, limited it.
    Itself,
}

impl HeldBy {
    /// All limits, in the order of `held_s`.
    pub const ALL: [HeldBy; 6] = [
        HeldBy::Measuring,
        HeldBy::Search,
        HeldBy::Mean,
        HeldBy::P99,
        HeldBy::Throughput,
        HeldBy::Itself,
    ];
}

/// A slice of time with a foreground.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// Length, in seconds.
    pub seconds: f64,
    /// Number of latencies without the background, and their sum in seconds.
    pub alone: (f64, f64),
    /// Number of latencies beside the background, and their sum in seconds.
    pub beside: (f64, f64),
    /// Bytes that the background did.
    pub bytes: f64,
}

impl Slice {
    fn merge(&mut self, other: &Slice) {
        self.seconds += other.seconds;
        self.alone.0 += other.alone.0;
        self.alone.1 += other.alone.1;
        self.beside.0 += other.beside.0;
        self.beside.1 += other.beside.1;
        self.bytes += other.bytes;
    }
}

/// Summary of the foreground's latency. Latencies are those of probes, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Latencies while the background paused for the measurement.
    pub alone: Histogram,
    /// Latencies beside the background.
    pub beside: Histogram,
    /// The last targets, and their source.
    pub targets: Option<(Targets, TargetSource)>,
    /// Seconds with a foreground.
    pub foreground_s: f64,
    /// Seconds of these in which a target was exceeded.
    pub above_s: f64,
    /// Seconds of these in which the background had its minimum rate.
    pub least_s: f64,
    /// Bytes of the background in these seconds.
    pub bytes: f64,
    /// Throughput of the device in bytes a second, if known.
    pub device_rate: Option<f64>,
    /// Seconds of these for each of [`HeldBy::ALL`].
    pub held_s: [f64; HeldBy::ALL.len()],
    /// The seconds with a foreground, in slices of equal length.
    pub slices: Vec<Slice>,
    slice_s: f64,
    window: Window,
}

/// Latencies of the interval that is being judged.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    seconds: f64,
    requests: f64,
    slow: f64,
    sum_s: f64,
}

impl Outcome {
    /// The background's throughput beside the foreground as a share of the device's.
    pub fn device_share(&self) -> Option<f64> {
        let device_rate =
            self.device_rate.filter(|device_rate| *device_rate > 0.0)? * self.foreground_s;
        (device_rate > 0.0).then(|| (self.bytes / device_rate).min(1.0))
    }

    /// Adds an interval with a foreground.
    pub(super) fn pass(&mut self, interval: &Slice, latencies_s: &[f64], is_alone: bool) {
        let of = if is_alone {
            &mut self.alone
        } else {
            &mut self.beside
        };
        latencies_s
            .iter()
            .for_each(|one| of.record((one * 1e9) as u64));
        let sum = (latencies_s.len() as f64, latencies_s.iter().sum());
        let mut interval = *interval;
        if is_alone {
            interval.alone = sum;
        } else {
            interval.beside = sum;
        }
        self.foreground_s += interval.seconds;
        self.bytes += interval.bytes;
        self.slice_s = self.slice_s.max(SLICE_S);
        match self.slices.last_mut() {
            Some(last) if last.seconds < self.slice_s => last.merge(&interval),
            _ => self.slices.push(interval),
        }
        if self.slices.len() > MAX_SLICES {
            self.slice_s *= 2.0;
            self.slices = self
                .slices
                .chunks(2)
                .map(|pair| {
                    let mut one = pair[0];
                    pair[1..].iter().for_each(|other| one.merge(other));
                    one
                })
                .collect();
        }
    }

    /// Judges a sample of the background's work by the targets.
    pub(super) fn judge(&mut self, targets: &Targets, sample: &Sample<'_>) {
        let window = &mut self.window;
        window.seconds += sample.seconds;
        window.requests += sample.latencies_s.len() as f64;
        window.sum_s += sample.latencies_s.iter().sum::<f64>();
        let slow_s = targets.p99_s.unwrap_or(f64::INFINITY);
        let slow = sample.latencies_s.iter().filter(|one| **one > slow_s);
        window.slow += slow.count() as f64;
        if window.seconds >= WINDOW_S {
            let mean_s = targets.mean_s.unwrap_or(f64::INFINITY);
            let is_above =
                window.slow > 0.01 * window.requests || window.sum_s > mean_s * window.requests;
            if is_above {
                self.above_s += window.seconds;
            }
            self.window = Window::default();
        }
    }

    /// Adds seconds in which a limit determined the background's rate.
    pub(super) fn held(&mut self, by: HeldBy, seconds: f64) {
        self.held_s[by as usize] += seconds;
    }
}
