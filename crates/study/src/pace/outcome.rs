//! Summary of what the foreground had, alone and beside the background.

use record::{Histogram, Nanos};

use super::{Source, Targets};

/// Latencies of a foreground, of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Their number.
    pub samples: u64,
    /// Seconds.
    pub mean_s: f64,
    /// Seconds.
    pub p50_s: f64,
    /// Seconds.
    pub p99_s: f64,
    /// Seconds.
    pub p999_s: f64,
}

impl Latency {
    fn of(histogram: &Histogram) -> Option<Latency> {
        let quantile = |share: f64| Nanos(histogram.quantile(share)).as_secs_f64();
        (!histogram.is_empty()).then(|| Latency {
            samples: histogram.count(),
            mean_s: histogram.mean() / 1e9,
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
        })
    }
}

/// Result of the foreground.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// While the background paused for it.
    pub alone: Option<Latency>,
    /// Beside the background.
    pub beside: Option<Latency>,
    /// Targets kept at last, and where they came from.
    pub targets: Option<(Targets, Source)>,
    /// Seconds with a foreground.
    pub foreground_s: f64,
    /// Seconds of those in which a target was exceeded.
    pub above_s: f64,
    /// Seconds of those in which the background had the least rate that there is.
    pub least_s: f64,
}

/// Collects an [`Outcome`].
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    alone: Histogram,
    beside: Histogram,
    pub(super) foreground_s: f64,
    pub(super) above_s: f64,
    pub(super) least_s: f64,
}

impl Collector {
    pub(super) fn take(&mut self, latencies_s: &[f64], is_alone: bool) {
        let of = if is_alone {
            &mut self.alone
        } else {
            &mut self.beside
        };
        latencies_s
            .iter()
            .for_each(|one| of.record((one * 1e9) as u64));
    }

    pub(super) fn outcome(&self, targets: Option<(Targets, Source)>) -> Outcome {
        Outcome {
            alone: Latency::of(&self.alone),
            beside: Latency::of(&self.beside),
            targets,
            foreground_s: self.foreground_s,
            above_s: self.above_s,
            least_s: self.least_s,
        }
    }
}
