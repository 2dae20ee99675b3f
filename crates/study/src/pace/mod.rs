//! Rate of background I/O beside a foreground: docs/design/pacing.md has the rule and its proofs.
//!
//! - [`ForegroundDetector`]: foreground I/O, from the kernel's counts minus the background's own;
//! - [`Controller`]: samples in, the allowed rate of the background out;
//! - `own`: latency and throughput of the foreground without the background;
//! - `guard`: integrators, one for each latency target;
//! - `plateau`: the rate just below a limit of the device.
//!
//! Everything is deterministic: the caller passes the elapsed time.

mod controller;
mod detector;
mod guard;
mod outcome;
mod own;
mod plateau;

pub use controller::{Controller, ControllerStage, MAX_MIN_RATE, ROOM, min_rate};
pub use detector::{Foreground, ForegroundDetector, IoCounts};
pub use outcome::{HeldBy, Outcome, Slice};

/// Amount of background I/O that is allowed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// Without limit: there is no foreground.
    All,
    /// Bytes a second.
    Rate(f64),
    /// No new request, so that the foreground is measured alone.
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

    /// Latency above which a single request is slow, in seconds: the p99 target, or 4.6 times the mean target where there is
    /// no p99 target.
    pub fn slow_s(&self) -> Option<f64> {
        /// An exponentially distributed latency exceeds this multiple of its mean once in a hundred.
        const OF_MEAN: f64 = 4.6;
        self.p99_s.or(self.mean_s.map(|mean| OF_MEAN * mean))
    }
}

/// Source of the targets in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSource {
    /// `--keep-p99`, `--keep-mean`.
    Asked,
    /// 1.5 times the foreground's latency without the background, and of the mean 1.3 times where the background goes
    /// in steps; or that latency and the wait for one background request, where that is more.
    Measured,
    /// The same as [`Measured`](Self::Measured), since the foreground alone exceeds the target that was requested.
    Unreachable,
}

/// Measurements since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Foreground I/O.
    pub foreground: Foreground,
    /// Latencies of requests like those of the foreground (probes), in seconds.
    pub latencies_s: &'a [f64],
    /// Time that an outstanding probe has waited, in seconds.
    pub waiting_s: f64,
    /// Number of foreground requests that the kernel timed separately from the background's, and the sum of their
    /// latencies.
    pub timed: Option<(f64, f64)>,
    /// Bytes that the background completed.
    pub background: f64,
    /// True if background requests are outstanding.
    pub is_busy: bool,
}

impl Sample<'_> {
    /// True if every number is plausible.
    fn is_sane(&self) -> bool {
        /// Larger than any plausible number of seconds, requests or bytes.
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
