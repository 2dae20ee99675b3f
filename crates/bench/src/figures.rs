//! Figures of a run's phases, with their intervals.

use record::{DeviceCounts, Direction, Phase};
use serde::Serialize;
use study::interval::mean_interval;
use study::steady::warmup_end;
use ui::relative;

/// A mean and the bounds of its 95 % interval. The bounds are missing if they are unknown: with too few slices, and for
/// imported runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Mean, in the figure's unit.
    pub mean: f64,
    /// Lower bound of the interval; null where there are too few slices of the phase for one.
    pub low: Option<f64>,
    /// Upper bound of the interval; null where there are too few slices of the phase for one.
    pub high: Option<f64>,
}

impl Estimate {
    /// The interval in words (see [`relative::interval`]); `None` without one.
    pub(crate) fn width(&self, shown: impl Fn(f64) -> String) -> Option<String> {
        relative::interval(self.mean, self.low, self.high, shown)
    }
}

/// Figures of one direction of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowFigures {
    /// Direction of the figures.
    pub direction: Direction,
    /// Requests a second.
    pub iops: Estimate,
    /// Bytes a second.
    pub bytes_per_s: Estimate,
}

/// Figures of a phase; they have the same index as the phase in the run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseFigures {
    /// The phase's name.
    pub name: String,
    /// Slices at the start that were left out as warm-up.
    pub warmup_slices: usize,
    /// Figures of the directions that did anything, in the order in which they are shown.
    pub flows: Vec<FlowFigures>,
}

impl PhaseFigures {
    pub(crate) fn of(phase: &Phase) -> PhaseFigures {
        let warmup_slices = warmup_end(&phase.slice_ops());
        let flows = phase.directions().map(|(direction, flow)| {
            let (after, seconds) = phase.after_slices(direction);
            let estimate = |rates: &[f64], after: u64, all: u64| {
                let settled = rates.len().saturating_sub(warmup_slices) as f64;
                let rest = PartialSlice {
                    per_second: after as f64 / seconds.max(1e-9),
                    share: seconds / (seconds + settled * phase.slice_seconds()),
                };
                Estimate::with_rest(rates, warmup_slices, rest, all as f64 / phase.seconds)
            };
            FlowFigures {
                direction,
                iops: estimate(&phase.slice_rates(direction), after.ops, flow.ops),
                bytes_per_s: estimate(&phase.slice_byte_rates(direction), after.bytes, flow.bytes),
            }
        });
        PhaseFigures {
            name: phase.name.clone(),
            warmup_slices,
            flows: flows.collect(),
        }
    }

    /// Figures of a direction.
    pub fn flow(&self, direction: Direction) -> Option<&FlowFigures> {
        self.flows.iter().find(|flow| flow.direction == direction)
    }
}

/// Completions after the last complete slice.
struct PartialSlice {
    /// Rate of these completions, a second.
    per_second: f64,
    /// Share of the examined time that lies after that slice, 0 to 1.
    share: f64,
}

impl Estimate {
    /// The mean of `rates` without the warm-up, with its interval. With too few rates for an interval, the mean is
    /// `plain`, without bounds.
    pub fn of(rates: &[f64], warmup: usize, plain: f64) -> Estimate {
        let none = PartialSlice {
            per_second: 0.0,
            share: 0.0,
        };
        Estimate::with_rest(rates, warmup, none, plain)
    }

    /// Like [`Estimate::of`], where the measured time does not end with a slice. A fixed amount of work ends with its
    /// last completion: without the part after the last slice, all of its time would count but not all of its work.
    fn with_rest(rates: &[f64], warmup: usize, rest: PartialSlice, plain: f64) -> Estimate {
        match mean_interval(rates.get(warmup..).unwrap_or_default()) {
            Some(interval) => {
                let more = rest.share * (rest.per_second - interval.mean);
                Estimate {
                    mean: interval.mean + more,
                    // A rate is never negative, however wide the interval.
                    low: Some((interval.low + more).max(0.0)),
                    high: Some(interval.high + more),
                }
            }
            None => Estimate {
                mean: if plain.is_finite() { plain } else { 0.0 },
                low: None,
                high: None,
            },
        }
    }

    /// Half the width of the interval as a share of the mean.
    pub(crate) fn half_width(&self) -> Option<f64> {
        // From the upper bound, since the lower bound is cut off at zero.
        let half = self.high? - self.mean;
        (self.mean > 0.0).then(|| half / self.mean)
    }
}

/// Sum of the kernel's counts on the disks below over a phase, and the seconds that they cover. `None` if any window
/// has no counts.
pub(crate) fn device_totals(phase: &Phase) -> Option<(DeviceCounts, f64)> {
    let mut total = DeviceCounts::default();
    let mut seconds = 0.0;
    for window in &phase.windows {
        let counts = window.device?;
        total.reads += counts.reads;
        total.read_bytes += counts.read_bytes;
        total.writes += counts.writes;
        total.write_bytes += counts.write_bytes;
        total.flushes += counts.flushes;
        total.busy_ms += counts.busy_ms;
        seconds += window.seconds;
    }
    (seconds > 0.0).then_some((total, seconds))
}

/// The mean of values and their standard deviation. Zeros where there are no values.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}
