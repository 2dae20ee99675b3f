//! Rate of background I/O beside a foreground: docs/design/pacing.md has the rule and its proofs.
//!
//! - [`ForegroundDetector`]: foreground I/O, from what the kernel counts less the background's own;
//! - [`Controller`]: samples in, the rate that the background is allowed out;
//! - `own`: latency and throughput of the foreground without the background;
//! - `guard`: integrators, one for each thing that is kept.
//!
//! Everything is deterministic: time is what the caller says has passed.

mod controller;
mod detector;
mod guard;
mod outcome;
mod own;

pub use controller::{Controller, ControllerStage, MAX_MIN_RATE, ROOM, min_rate};
pub use detector::{Foreground, ForegroundDetector, IoCounts};
pub use outcome::{HeldBy, Outcome, Slice};

/// Amount of I/O that the background may do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// As much as the device gives: there is no foreground.
    All,
    /// Bytes a second.
    Rate(f64),
    /// No new request, so that the foreground is measured by itself.
    Nothing,
}

/// Latencies to keep, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    /// Target of the mean latency.
    pub mean_s: Option<f64>,
    /// Target of the latency that 1 in 100 foreground requests exceeds.
    pub p99_s: Option<f64>,
}

impl Targets {
    /// True if no target is given.
    pub fn is_empty(&self) -> bool {
        self.mean_s.is_none() && self.p99_s.is_none()
    }

    /// Latency above which a single request is slow: the p99's target, or 4.6 times the mean's where there is no p99's.
    pub fn slow_s(&self) -> Option<f64> {
        /// A request of an exponential distribution exceeds this multiple of the mean once in a hundred.
        const OF_MEAN: f64 = 4.6;
        self.p99_s.or(self.mean_s.map(|mean| OF_MEAN * mean))
    }
}

/// Source of the targets that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSource {
    /// `--keep-p99`, `--keep-mean`.
    Asked,
    /// 1.5 times the foreground's latency without the background, and of the mean 1.3 times where the background goes
    /// in steps; or that latency and the wait for one background request, where that is more.
    Measured,
    /// The same as [`Measured`](Self::Measured), since the foreground alone exceeds the target that was asked for.
    Unreachable,
}

/// Measurements since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Foreground I/O.
    pub foreground: Foreground,
    /// Latencies of requests as the foreground makes them (probes), in seconds.
    pub latencies_s: &'a [f64],
    /// Time that a probe has waited which has not completed, in seconds.
    pub waiting_s: f64,
    /// Foreground requests that the kernel timed apart from the background's, and their latencies' sum.
    pub timed: Option<(f64, f64)>,
    /// Bytes that the background completed.
    pub background: f64,
    /// True if background requests are outstanding.
    pub is_busy: bool,
}

impl Sample<'_> {
    /// True if every number is one that can be measured.
    fn is_sane(&self) -> bool {
        /// More than any number here can be, in seconds, requests or bytes.
        const MAX_VALUE: f64 = 1e15;
        let (requests, seconds) = self.timed.unwrap_or_default();
        let others = [
            self.seconds,
            self.foreground.requests.unwrap_or_default(),
            self.foreground.waited_s,
            self.waiting_s,
            requests,
            seconds,
            self.background,
        ];
        let mut all = others.iter().chain(self.latencies_s);
        all.all(|value| (0.0..MAX_VALUE).contains(value))
    }
}

#[cfg(test)]
mod tests;
